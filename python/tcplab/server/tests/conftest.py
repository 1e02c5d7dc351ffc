"""A served directory with one scenario, and a client that has the token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient, WebSocketTestSession

from tcplab.server.app import create
from tcplab.server.folder import Folder
from tcplab.server.security import Gate

TOKEN = "a-token-for-tests"
SCENARIO = """# A comment.
tcplab: 1
name: small
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: 20 packets}
flows:
  - {name: bulk, kind: tcp, cc: reno}
duration: 3 s
"""
SHARED = """tcplab: 1
name: shared
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: {kind: codel, limit: 100 packets}}
flows:
  - {name: first, kind: tcp, cc: cubic}
  - {name: second, kind: tcp, cc: cubic, start: 1 s}
duration: 4 s
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    folder.mkdir()
    (folder / "small.yaml").write_text(SCENARIO)
    (tmp_path / "secret.yaml").write_text("tcplab: 1\nname: secret\n")
    return folder


@pytest.fixture
def gate() -> Gate:
    return Gate(TOKEN, 8020, frozenset({"127.0.0.1"}))


@pytest.fixture
def stranger(root: Path, gate: Gate) -> Iterator[TestClient]:
    """Someone without the token."""
    app = create(Folder(root.resolve()), gate)
    with TestClient(app, base_url="http://127.0.0.1:8020", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """The same server, to someone who has logged in."""
    assert stranger.post("/api/login", json={"token": TOKEN}).status_code == 200
    return stranger


def ended(socket: WebSocketTestSession, job: str) -> dict[str, Any]:
    """The last message of a job; the test's own time limit is pytest's."""
    while True:
        message: dict[str, Any] = socket.receive_json()
        if message.get("id") == job and message["state"] in ("done", "interrupted", "failed"):
            return message
