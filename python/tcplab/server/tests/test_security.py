"""Who may talk to the server, and to which files."""

from __future__ import annotations

import hmac
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tcplab.server import security, serve
from tcplab.server.app import create
from tcplab.server.folder import LAYOUT_BYTES, Folder
from tcplab.server.security import Gate, kept_token
from tcplab.server.tests.conftest import SCENARIO, TOKEN

READS = [
    "/api/session",
    "/api/schema",
    "/api/files",
    "/api/file?path=small.yaml",
    "/api/result?path=runs",
    "/api/curves?run=runs",
    "/api/packets?run=runs",
    "/api/report?path=runs",
    "/api/archive?path=runs",
    "/api/study?path=runs",
]


@pytest.mark.parametrize("address", READS)
def test_nothing_is_read_without_the_token(stranger: TestClient, address: str) -> None:
    assert stranger.get(address).status_code == 401
    assert stranger.get(address, headers={"authorization": "Bearer wrong"}).status_code == 401
    assert stranger.get(address, headers={"authorization": f"Bearer {TOKEN}"}).status_code != 401


@pytest.mark.parametrize("address", ["check", "preview", "runs", "studies", "jobs/run-1/stop"])
def test_nothing_is_done_without_the_token(stranger: TestClient, address: str) -> None:
    assert stranger.post(f"/api/{address}", json={"text": SCENARIO}).status_code == 401


def test_the_token_is_handed_in_once_for_a_cookie_that_no_script_reads(stranger: TestClient) -> None:
    assert stranger.post("/api/login", json={"token": "wrong"}).status_code == 401
    answer = stranger.post("/api/login", json={"token": TOKEN})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/api/session").status_code == 200


def test_a_token_of_half_a_character_is_wrong(stranger: TestClient) -> None:
    body = b'{"token": "\\ud800"}'
    answer = stranger.post("/api/login", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 401


def test_a_websocket_needs_the_token(stranger: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), stranger.websocket_connect("ws://127.0.0.1:8020/api/live"):
        pass
    stranger.post("/api/login", json={"token": TOKEN})
    with stranger.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        assert {socket.receive_json()["type"] for _ in range(2)} == {"hello", "pages"}


def test_a_name_that_was_rebound_to_this_machine_is_refused(client: TestClient) -> None:
    refused = client.get("/api/session", headers={"host": "evil.example:8020"})
    assert refused.status_code == 403
    assert "add it with --server-name" in refused.json()["error"]
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    with pytest.raises(WebSocketDisconnect):
        client.websocket_connect("/api/live", headers={"host": "evil.example"}).__enter__()


def test_another_sites_page_is_refused(client: TestClient) -> None:
    theirs = {"origin": "http://evil.example"}
    assert client.get("/api/session", headers=theirs).status_code == 403
    assert client.post("/api/runs", json={"text": SCENARIO}, headers=theirs).status_code == 403
    with pytest.raises(WebSocketDisconnect):
        client.websocket_connect("ws://127.0.0.1:8020/api/live", headers=theirs).__enter__()
    # Another port of this machine is another origin.
    assert client.get("/api/session", headers={"origin": "http://127.0.0.1:9999"}).status_code == 403
    assert client.get("/api/session", headers={"origin": "http://127.0.0.1:8020"}).status_code == 200


def test_a_form_of_another_site_cannot_speak_json(client: TestClient) -> None:
    sent = client.post("/api/runs", content='{"text": ""}', headers={"content-type": "text/plain"})
    assert sent.status_code == 415


def test_every_answer_says_what_its_page_may_do(client: TestClient) -> None:
    for address in ("/", "/api/session", "/api/nothing"):
        headers = client.get(address).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.yaml",
        "a/../../secret.yaml",
        "/etc/passwd.yaml",
        "~/x.yaml",
        "..%2fsecret.yaml",
        "link.yaml",
        "below/secret.yaml",
        ".hidden.yaml",
        "small.yaml\0.yaml",
        "notes.txt",
        "",
    ],
)
def test_only_scenarios_below_the_directory_are_read_or_written(
    client: TestClient, root: Path, path: str
) -> None:
    (root / "link.yaml").symlink_to(root.parent / "secret.yaml")
    (root / "below").symlink_to(root.parent)
    (root / "notes.txt").write_text("mine")
    before = (root.parent / "secret.yaml").read_text()
    assert client.get("/api/file", params={"path": path}).status_code in (400, 403, 404)
    written = client.put("/api/file", json={"path": path, "text": "x", "version": None, "layout": {}})
    if path != "..%2fsecret.yaml":  # a file of that very name is one below the directory
        assert written.status_code in (400, 403)
    assert (root.parent / "secret.yaml").read_text() == before


@pytest.mark.parametrize("address", ["result", "curves", "report", "archive", "study"])
def test_results_outside_the_directory_are_not_shown(client: TestClient, address: str) -> None:
    assert client.get(f"/api/{address}", params={"path": "..", "run": ".."}).status_code == 403


@pytest.mark.parametrize("path", ["/assets/../../app.py", "/assets/..%2f..%2fapp.py", "/../app.py"])
def test_the_page_gives_no_other_file(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 401)
    assert "starlette" not in answer.text


@pytest.mark.parametrize(
    "line", ["trace: ../secret.trace", "trace: /etc/hostname", "trace: below/secret.trace"]
)
def test_a_scenario_names_no_file_outside_the_directory(client: TestClient, root: Path, line: str) -> None:
    (root / "below").symlink_to(root.parent)
    text = SCENARIO.replace("{rate: 10 Mbit/s,", "{" + line + ",")
    found = client.post("/api/check", json={"text": text, "path": "small.yaml"}).json()
    assert not found["ok"]
    assert "outside the served directory" in found["problems"][0]["message"]
    refused = client.post("/api/preview", json={"text": text, "path": "small.yaml"}).json()["refused"]
    assert "outside the served directory" in refused


def test_a_server_for_others_runs_nothing_unless_allowed_to(root: Path, gate: Gate) -> None:
    with TestClient(
        create(Folder(root.resolve()), gate, may_run=False), base_url="http://127.0.0.1"
    ) as shown:
        shown.post("/api/login", json={"token": TOKEN})
        assert shown.get("/api/session").json()["engines"] == ["sim"]
        assert shown.post("/api/runs", json={"text": SCENARIO, "engine": "kernel"}).status_code == 403
        assert shown.post("/api/studies", json={"shipped": "tuning"}).status_code == 403
        own = SCENARIO.replace("cc: reno", "cc: ./mine.c")
        assert "--allow-run" in shown.post("/api/check", json={"text": own}).text


def test_a_read_only_server_changes_nothing(root: Path, gate: Gate) -> None:
    before = sorted(root.rglob("*"))
    with TestClient(
        create(Folder(root.resolve(), read_only=True), gate), base_url="http://127.0.0.1"
    ) as shown:
        shown.post("/api/login", json={"token": TOKEN})
        saved = shown.put("/api/file", json={"path": "new.yaml", "text": "x", "version": None, "layout": {}})
        assert saved.status_code == 403
        assert shown.post("/api/runs", json={"text": SCENARIO}).status_code == 403
        # To look is allowed: a simulation that is not kept.
        assert shown.post("/api/preview", json={"text": SCENARIO}).status_code == 200
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize("address", ["login", "check", "preview", "import", "runs", "studies", "labs"])
def test_too_large_a_request_is_refused(client: TestClient, address: str) -> None:
    large = {"token": "x", "text": "x" * (5 << 20), "name": "x.mn"}
    refused = client.post(f"/api/{address}", json=large)
    assert refused.status_code == 413
    assert refused.json() == {"error": "the request is larger than 4 MiB"}
    assert client.get("/api/session").status_code == 200


def test_too_large_a_file_is_not_written(client: TestClient, root: Path) -> None:
    before = sorted(root.rglob("*"))
    body = {"path": "large.yaml", "text": "x", "version": None, "layout": None}
    assert client.put("/api/file", json={**body, "text": "x" * (2 << 20)}).status_code == 413
    assert client.put("/api/file", json={**body, "text": "x" * (5 << 20)}).status_code == 413
    wide = {"places": {"n": "x" * LAYOUT_BYTES}}
    assert client.put("/api/file", json={**body, "path": "small.yaml", "layout": wide}).status_code in (
        409,
        413,
    )
    assert sorted(root.rglob("*")) == before


def test_every_way_to_hand_in_a_token_compares_it_in_constant_time(
    stranger: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def spy(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr(security, "hmac", type("Spied", (), {"compare_digest": staticmethod(spy)}))
    stranger.post("/api/login", json={"token": "by login"})
    stranger.get("/api/session", headers={"authorization": "Bearer by-header"})
    stranger.get("/api/session", headers={"cookie": "tcplab-8020=by-cookie"})
    token = TOKEN.encode()
    assert compared == [(b"by login", token), (b"by-header", token), (b"by-cookie", token)]


def test_below_a_base_path_the_same_guards_stand(root: Path) -> None:
    gate = Gate(TOKEN, 8020, frozenset({"127.0.0.1"}), "/lab")
    with TestClient(create(Folder(root.resolve()), gate), base_url="http://127.0.0.1:8020") as shown:
        assert shown.get("/lab/api/session").status_code == 401
        # Only below the path is anything served without the token, and the path opens nothing else.
        assert shown.get("/api/session").status_code == 401
        assert shown.get("/lab/api/files/assets/").status_code == 401
        answer = shown.post("/lab/api/login", json={"token": TOKEN})
        assert "path=/lab" in answer.headers["set-cookie"].lower()
        assert shown.get("/lab/api/session").status_code == 200
        assert shown.get("/lab/api/session", headers={"host": "evil.example"}).status_code == 403
        with shown.websocket_connect("ws://127.0.0.1:8020/lab/api/live") as socket:
            assert socket.receive_json()["type"] in ("hello", "pages")


@pytest.mark.parametrize(
    ("host", "allow_run", "read_only", "may_run"),
    [
        ("127.0.0.1", False, False, True),
        ("::1", False, False, True),
        ("127.0.0.1", True, True, False),
        ("0.0.0.0", False, False, False),
        ("0.0.0.0", True, False, True),
        ("0.0.0.0", True, True, False),
    ],
)
def test_programs_run_on_loopback_or_where_allowed_but_never_read_only(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    allow_run: bool,
    read_only: bool,
    may_run: bool,
) -> None:
    made: list[bool] = []
    monkeypatch.setenv("TCPLAB_UI_TOKEN", TOKEN)
    monkeypatch.setattr(
        serve, "_listen", lambda *_: type("Bound", (), {"getsockname": lambda _: (host, 1)})()
    )
    monkeypatch.setattr(serve, "create", lambda *_, may_run: made.append(may_run))
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    settings = serve.Settings(root, host=host, allow_run=allow_run, read_only=read_only, open_browser=False)
    serve.serve(settings)
    assert made == [may_run]


def test_the_token_is_printed_once_and_logged_never(root: Path) -> None:
    command = [sys.executable, "-m", "tcplab", "ui", str(root), "--no-browser", "--port", "0"]
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TCPLAB_UI_TOKEN": TOKEN},
    )
    assert server.stdout is not None
    server.stdout.readline()
    address, _, fragment = server.stdout.readline().strip().partition("#")
    assert fragment == f"token={TOKEN}"
    answers = []
    for path in ("api/session", "api/nothing", f"api/file?path={TOKEN}.yaml", "api/curves?run=none"):
        asked = urllib.request.Request(address + path, headers={"authorization": f"Bearer {TOKEN}"})
        try:
            with urllib.request.urlopen(asked) as answer:
                answers.append(answer.status)
        except urllib.error.HTTPError as refused:
            answers.append(refused.code)
    server.terminate()
    out, err = server.communicate()
    assert answers == [200, 404, 404, 404]
    assert TOKEN not in out + err


def test_the_kept_token_is_the_users_alone_and_outlives_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("TCPLAB_UI_TOKEN", raising=False)
    token = kept_token()
    file = tmp_path / "tcplab" / "ui-token"
    assert len(token) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept_token() == token
    # One that others could read is replaced.
    file.chmod(0o644)
    assert kept_token() != token
