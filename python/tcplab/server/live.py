"""The open pages: the messages each receives while it is open."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

# A page that does not read so many messages receives the newest only.
_BACKLOG = 256


class Hub:
    """Sends to every open page; may be called from any thread."""

    def __init__(self) -> None:
        self._pages: dict[WebSocket, asyncio.Queue[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def broadcast(self, message: dict[str, Any]) -> None:
        """Send to all pages."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._put, json.dumps(message))

    def _put(self, text: str) -> None:
        for queue in self._pages.values():
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(text)

    async def serve(self, socket: WebSocket, hello: dict[str, Any]) -> None:
        """Send to one page until it leaves."""
        self._loop = asyncio.get_running_loop()
        await socket.accept()
        queue: asyncio.Queue[str] = asyncio.Queue(_BACKLOG)
        self._pages[socket] = queue
        self._announce()
        queue.put_nowait(json.dumps(hello))
        sender = asyncio.create_task(self._send(socket, queue))
        try:
            while True:
                # Pages say nothing; this notices that one has left.
                await socket.receive_text()
        except WebSocketDisconnect:
            pass
        finally:
            del self._pages[socket]
            sender.cancel()
            self._announce()

    def _announce(self) -> None:
        self._put(json.dumps({"type": "pages", "count": len(self._pages)}))

    async def _send(self, socket: WebSocket, queue: asyncio.Queue[str]) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            while socket.client_state is WebSocketState.CONNECTED:
                await socket.send_text(await queue.get())
