"""Studies that pages start: their cells, what is left of them, and how they go on."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tcplab import runner
from tcplab.server.tests.conftest import ended


def test_a_study_runs_and_shows_its_cells(client: TestClient, root: Path) -> None:
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [reno, cubic]}\nrepeat: 1\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        job = client.post("/api/studies", json={"path": "grid.yaml"}).json()
        # After each run its cell is announced, and the study can be looked at while it goes on.
        while (event := socket.receive_json()).get("type") != "study" or "cell" not in event:
            assert event.get("state") != "failed", event
        early = client.get("/api/study", params={"path": event["path"]}).json()
        last = ended(socket, job["id"])
    assert last["state"] == "done", last["message"]
    assert early["axes"] == {"cc": ["reno", "cubic"]}
    assert len(early["cells"]) == 2
    assert event["cell"] in {run["cell"] for run in early["runs"]}
    found = client.get("/api/study", params={"path": last["path"]}).json()
    assert found["axes"] == {"cc": ["reno", "cubic"]}
    assert len(found["cells"]) == 2
    assert found["left"] == {"missing": 0, "failed": 0, "refused": 0}
    place = found["places"][found["cells"][0]["cell"]]
    assert client.get("/api/result", params={"path": place}).json()["status"] == "done"
    assert client.get("/api/files").json()["study_results"] == [last["path"]]


def test_an_interrupted_study_is_resumed_where_it_ended(client: TestClient, root: Path) -> None:
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [reno, cubic, vegas]}\nrepeat: 1\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        first = ended(socket, client.post("/api/studies", json={"path": "grid.yaml"}).json()["id"])
        assert first["state"] == "done", first["message"]
        cells = client.get("/api/study", params={"path": first["path"]}).json()["places"]
        kept, *lost = cells.values()
        for place in lost:
            shutil.rmtree(root / place / "run-1")
        before = (root / kept / "run-1" / "manifest.json").stat().st_mtime_ns
        assert client.get("/api/study", params={"path": first["path"]}).json()["left"]["missing"] == 2
        resumed = client.post("/api/studies", json={"resume": first["path"]}).json()
        last = ended(socket, resumed["id"])
    assert (last["state"], last["path"], last["repeat"]) == ("done", first["path"], 2), last["message"]
    assert client.get("/api/study", params={"path": first["path"]}).json()["left"]["missing"] == 0
    assert (root / kept / "run-1" / "manifest.json").stat().st_mtime_ns == before


def test_a_failed_run_is_repeated_unless_the_engine_refuses_it(client: TestClient, root: Path) -> None:
    # The simulator has no iperf3.
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  by: {set: flows.bulk.generator, values: [native, iperf3]}\nrepeat: 3\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        last = ended(socket, client.post("/api/studies", json={"path": "grid.yaml"}).json()["id"])
    found = client.get("/api/study", params={"path": last["path"]}).json()
    assert found["left"] == {"missing": 0, "failed": 0, "refused": 3}
    places = dict(zip(("native", "iperf3"), sorted(found["places"].values(), reverse=True), strict=True))
    for name in places:
        shutil.rmtree(root / places[name] / "run-2")
    manifest = root / places["native"] / "run-1" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "status": "failed"}))
    (manifest.parent / "SHA256SUMS").unlink()
    found = client.get("/api/study", params={"path": last["path"]}).json()
    assert found["left"] == {"missing": 1, "failed": 1, "refused": 3}


def test_a_study_that_left_nothing_has_no_results(client: TestClient, root: Path) -> None:
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [./absent.c]}\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        job = client.post("/api/studies", json={"path": "grid.yaml"}).json()
        assert client.get("/api/study", params={"path": job["path"]}).status_code == 204
        last = ended(socket, job["id"])
    assert last["state"] == "failed"
    assert not (root / job["path"]).exists()
    assert client.get("/api/study", params={"path": job["path"]}).status_code == 204
    assert client.get("/api/study", params={"path": "runs/none"}).status_code == 404


def test_studies_of_one_second_have_a_directory_each(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(runner, "datetime", Clock)
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [reno, cubic]}\nrepeat: 1\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        jobs = [client.post("/api/studies", json={"path": "grid.yaml"}).json() for _ in range(2)]
        assert len({job["path"] for job in jobs}) == 2
        left = {job["id"] for job in jobs}
        while left:
            event = socket.receive_json()
            if event.get("state") in ("done", "interrupted", "failed"):
                assert event["state"] == "done", event["message"]
                left.discard(event["id"])


def test_a_study_may_write_any_number_of_errors(
    client: TestClient, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe holds 64 KiB."""
    (root / "grid.yaml").write_text("study: grid\n")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nyes warning | head -c 1000000 >&2\necho the last line >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        last = ended(socket, client.post("/api/studies", json={"path": "grid.yaml"}).json()["id"])
    assert (last["state"], last["message"]) == ("failed", "the last line")


def test_a_study_says_that_its_report_is_being_written(client: TestClient, root: Path) -> None:
    (root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [reno, cubic]}\nrepeat: 1\n"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        name = client.post("/api/studies", json={"path": "grid.yaml"}).json()["id"]
        jobs: list[dict[str, Any]] = []
        while not jobs or jobs[-1]["state"] not in ("done", "failed"):
            event = socket.receive_json()
            jobs += [event] if event.get("id") == name else []
    assert [job["reporting"] for job in jobs if job["repetition"] < 2].count(True) == 0
    assert (jobs[-2]["reporting"], jobs[-2]["repetition"]) == (True, 2)
    assert (jobs[-1]["reporting"], jobs[-1]["state"]) == (False, "done")


def test_a_study_of_another_directory_is_not_resumed(client: TestClient, root: Path) -> None:
    place = root / "runs" / "theirs"
    place.mkdir(parents=True)
    index = {
        "study": "x",
        "source": str(root.parent / "secret.yaml"),
        "asked": {"engines": [], "sets": []},
        "cells": [],
    }
    (place / "study.json").write_text(json.dumps(index))
    refused = client.post("/api/studies", json={"resume": "runs/theirs"})
    assert refused.status_code == 403
    assert "outside the served directory" in refused.json()["error"]
    assert client.post("/api/studies", json={"resume": "runs/none"}).status_code == 404
