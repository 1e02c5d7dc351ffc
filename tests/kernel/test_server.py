"""The server of `tcplab ui` runs scenarios on the kernel, reports their progress, and stops them."""

from __future__ import annotations

from pathlib import Path

from starlette.testclient import TestClient

import tcplab
from tcplab.server.app import create
from tcplab.server.folder import Folder
from tcplab.server.security import Gate

SCENARIO = """\
tcplab: 1
name: long
network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
flows: [{name: bulk, kind: tcp, cc: reno}]
duration: 600 s
"""


def test_a_run_is_reported_live_and_keeps_what_it_has_when_it_is_stopped(tmp_path: Path) -> None:
    app = create(Folder(tmp_path.resolve()), Gate("token", 8020, frozenset({"127.0.0.1"})))
    with TestClient(app, base_url="http://127.0.0.1:8020") as client:
        assert client.post("/api/login", json={"token": "token"}).status_code == 200
        with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
            job = client.post(
                "/api/runs", json={"text": SCENARIO, "path": "long.yaml", "engine": "kernel"}
            ).json()
            times: list[int] = []
            has_received = False
            while len(times) < 3 or not has_received:
                event = socket.receive_json()
                assert event.get("state") != "failed", event
                if event.get("time", 0) > max(times, default=0):
                    times.append(event["time"])
                has_received |= event.get("goodput", {}).get("bulk", 0) > 0
            client.post(f"/api/jobs/{job['id']}/stop")
            while event.get("state") not in ("done", "interrupted", "failed"):
                event = socket.receive_json()
    assert event["state"] == "interrupted"
    run = tcplab.load(tmp_path / event["path"])
    assert run.status == "interrupted"
    assert run.intervals["bytes_received"].sum() > 0
