"""Networks that stay up: who may use them, and what their counters come to."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from tcplab.server.app import create
from tcplab.server.folder import Folder
from tcplab.server.labs import sockets
from tcplab.server.labs.rates import Rates
from tcplab.server.security import Gate

HOST = "lab.example"


def test_without_allow_run_nothing_is_built_entered_or_listed(tmp_path: Path) -> None:
    app = create(Folder(tmp_path.resolve()), Gate("token", 8020, frozenset({HOST})), may_run=False)
    with TestClient(app, base_url=f"http://{HOST}:8020") as client:
        client.post("/api/login", json={"token": "token"})
        assert client.get("/api/labs").json() == []
        text = "tcplab: 1\nname: x\nnetwork: {path: {rate: 1 Mbit/s, rtt: 1 ms}}\n"
        for address in ("labs", "labs/x/down", "labs/x/change", "labs/x/traffic"):
            refused = client.post(f"/api/{address}", json={"text": text})
            assert refused.status_code == 403, address
            assert "--allow-run" in refused.json()["error"]
        assert client.get("/api/labs/x/tables?node=a").status_code == 403
        assert client.get("/api/captures/1").status_code == 403
        for what in ("watch", "terminal?node=a", "capture?link=a-b"):
            with (
                client.websocket_connect(f"ws://{HOST}:8020/api/labs/x/{what}") as socket,
                pytest.raises(WebSocketDisconnect) as closed,
            ):
                socket.receive_text()
            assert "--allow-run" in closed.value.reason


def test_a_lab_that_is_not_there_is_rejected_with_a_message(tmp_path: Path) -> None:
    app = create(Folder(tmp_path.resolve()), Gate("token", 8020, frozenset({HOST})))
    with TestClient(app, base_url=f"http://{HOST}:8020") as client:
        client.post("/api/login", json={"token": "token"})
        with (
            client.websocket_connect(f"ws://{HOST}:8020/api/labs/no-such-lab/watch") as socket,
            pytest.raises(WebSocketDisconnect) as closed,
        ):
            socket.receive_text()
        assert "unknown lab 'no-such-lab'" in closed.value.reason
        refused = client.post("/api/labs/no-such-lab/down")
        assert refused.status_code == 404
        assert "unknown lab 'no-such-lab'" in refused.json()["error"]


class SlowPage:
    """A page's end of a terminal: what it was sent, and what it says."""

    def __init__(self) -> None:
        self.sent = 0
        self.says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send_bytes(self, data: bytes) -> None:
        self.sent += len(data)

    async def receive(self) -> dict[str, Any]:
        return await self.says.get()

    async def close(self, reason: str | None = None) -> None:
        pass

    def shows(self, amount: int) -> None:
        self.says.put_nowait({"type": "websocket.receive", "text": json.dumps({"read": amount})})

    async def is_sent_more_than(self, amount: int) -> None:
        while self.sent <= amount:
            await asyncio.sleep(0.01)


def test_a_terminal_waits_for_a_page_that_shows_its_output_slowly() -> None:
    most = sockets._MAX_UNREAD

    async def why(_: int) -> str:
        return ""

    async def scroll() -> None:
        page = SlowPage()
        work = sockets.terminal(cast(WebSocket, page), ["yes"], os.environ, why)
        terminal = asyncio.create_task(work)
        await page.is_sent_more_than(most)
        await asyncio.sleep(0.1)
        assert page.sent <= most + sockets._PIECE
        page.shows(page.sent)
        await page.is_sent_more_than(2 * most)
        page.says.put_nowait({"type": "websocket.disconnect"})
        await terminal

    # In a thread of its own: Playwright's loop runs in this one when its tests came before.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, asyncio.wait_for(scroll(), 60)).result()


def _line(time: float, received: int, acked: int) -> dict[str, object]:
    socket = {"local_port": 1, "remote_port": 2, "cwnd": 10, "inflight": 3, "srtt": 5_000_000}
    sockets = [{**socket, "acked": acked, "retransmits": 0, "phase": None}]
    return {
        "time": int(time * 1e9),
        "nodes": {
            "a": {"interfaces": {"eth0": [0, received]}, "sockets": sockets},
            "b": {"interfaces": {"eth0": [received, 0]}, "sockets": []},
        },
    }


def test_rates_are_what_arrives_at_the_ends_of_a_link_and_what_senders_have_acknowledged() -> None:
    rates = Rates({"a-b": {"ends": [["a", "eth0"], ["b", "eth0"]]}})
    assert rates.after(_line(5, 0, 0)) is None
    update = rates.after(_line(5.5, 1000, 5000))
    assert update is not None
    assert update["time"] == 0.5
    assert update["links"] == {"a-b": [16_000, 0]}
    assert update["sockets"]["a 1>2"]["acked"] == 80_000


def test_a_socket_that_sends_nothing_is_not_a_sender() -> None:
    rates = Rates({})
    rates.after(_line(1, 0, 0))
    update = rates.after(_line(2, 0, 500))
    assert update is not None
    assert update["sockets"] == {}
