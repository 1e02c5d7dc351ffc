"""The files of the folder: listed, saved, removed."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import tcplab
from tcplab.server.tests.conftest import SCENARIO


def test_the_listing_shows_what_is_there(client: TestClient, root: Path) -> None:
    (root / "study.yaml").write_text("study: s\nscenario: small.yaml\n")
    (root / "other.yaml").write_text("key: value\n")
    tcplab.run(root / "small.yaml", output=root / "runs" / "one")
    found = client.get("/api/files").json()
    assert found["scenarios"] == ["small.yaml"]
    assert found["studies"] == ["study.yaml"]
    assert [result["path"] for result in found["results"]] == ["runs/one"]
    assert "tuning" in [study["name"] for study in found["shipped_studies"]]


def test_a_directory_that_may_not_be_read_is_named(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, to whom every directory is open."""
    for name in ("secret", "unsearchable"):
        (root / name).mkdir()
        (root / name / "hidden.yaml").write_text(SCENARIO)
    scan, stat = os.scandir, os.stat

    def scandir(path: Any = ".") -> Any:
        if Path(path).name == "secret":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    def status(path: Any, *arguments: Any, **more: Any) -> Any:
        if isinstance(path, Path) and path.parent.name == "unsearchable":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, *arguments, **more)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "stat", status)
    found = client.get("/api/files").json()
    assert found["scenarios"] == ["small.yaml"]
    assert found["unreadable"] == [
        "secret: cannot be read: Permission denied",
        "unsearchable: cannot be read: Permission denied",
    ]
    # Said once: it is not a damaged result, too.
    assert found["results"] == []


def test_a_damaged_result_says_why(client: TestClient, root: Path) -> None:
    tcplab.run(root / "small.yaml", output=root / "runs" / "one")
    (root / "runs" / "one" / "run-1" / "manifest.json").write_text("{")
    (result,) = client.get("/api/files").json()["results"]
    assert result["status"] == "damaged"
    assert result["message"].startswith("runs/one/run-1/manifest.json: not a manifest: ")


def test_a_scenario_is_saved_unless_another_hand_was_faster(client: TestClient, root: Path) -> None:
    opened = client.get("/api/file", params={"path": "small.yaml"}).json()
    assert opened["text"] == SCENARIO
    (root / "small.yaml").write_text(SCENARIO + "# theirs\n")
    body = {"path": "small.yaml", "text": SCENARIO + "# mine\n", "version": opened["version"], "layout": None}
    assert client.put("/api/file", json=body).status_code == 409
    assert "# theirs" in (root / "small.yaml").read_text()
    newer = client.get("/api/file", params={"path": "small.yaml"}).json()["version"]
    saved = client.put(
        "/api/file", json={**body, "version": newer, "layout": {"places": {"left": {"x": 1, "y": 2}}}}
    )
    assert saved.status_code == 200
    opened = client.get("/api/file", params={"path": "small.yaml"}).json()
    assert opened["text"].endswith("# mine\n")
    assert opened["layout"] == {"places": {"left": {"x": 1, "y": 2}}}
    assert (root / "small.layout.json").is_file()


def test_a_new_file_replaces_none_that_is_there(client: TestClient, root: Path) -> None:
    body = {"path": "small.yaml", "text": "tcplab: 1\n", "version": None, "layout": None}
    assert client.put("/api/file", json=body).status_code == 409
    assert client.put("/api/file", json={**body, "path": "new/deep.yaml"}).status_code == 200
    assert (root / "new" / "deep.yaml").read_text() == "tcplab: 1\n"


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("small.yaml/below.yaml", "tcplab: 1\n", "small.yaml/below.yaml cannot be written: file exists"),
        ("x" * 300 + ".yaml", "tcplab: 1\n", "file name too long"),
        ("\ud800.yaml", "tcplab: 1\n", "?.yaml: half a character"),
        ("half.yaml", "name: \ud800\n", "half.yaml cannot be written: half a character"),
        (".hidden/a.yaml", "tcplab: 1\n", "no part of a scenario's name begins with a dot"),
    ],
)
def test_a_file_that_cannot_be_written_is_reported(
    client: TestClient, path: str, text: str, why: str
) -> None:
    body = json.dumps({"path": path, "text": text, "version": None, "layout": None})
    answer = client.put("/api/file", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_a_file_that_was_removed_is_reported(client: TestClient, root: Path) -> None:
    opened = client.get("/api/file", params={"path": "small.yaml"}).json()
    (root / "small.yaml").unlink()
    body = {"path": "small.yaml", "text": SCENARIO + "# mine\n", "version": opened["version"], "layout": None}
    answer = client.put("/api/file", json=body)
    assert (answer.status_code, answer.json()["error"]) == (409, "small.yaml was removed")


def test_a_file_keeps_its_line_ends(client: TestClient, root: Path) -> None:
    (root / "small.yaml").write_bytes(SCENARIO.replace("\n", "\r\n").encode())
    opened = client.get("/api/file", params={"path": "small.yaml"}).json()
    assert opened["text"] == SCENARIO
    body = {"path": "small.yaml", "text": SCENARIO + "# mine\n", "version": opened["version"], "layout": None}
    version = client.put("/api/file", json=body).json()["version"]
    written = (root / "small.yaml").read_bytes()
    assert written == (SCENARIO + "# mine\n").replace("\n", "\r\n").encode()
    assert client.get("/api/file", params={"path": "small.yaml"}).json()["version"] == version
