"""Programs in a lab behind WebSockets: each lives as long as its page's socket."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from tcplab.server.labs.rates import Rates

# Bytes read from a terminal or a capture at once.
_PIECE = 1 << 16
# Bytes of a terminal that a page may still have to show: Ctrl-C shall not wait for megabytes.
_MAX_UNREAD = 1 << 18
# A line of what is watched: a hundred nodes with thousands of sockets.
_LONGEST_LINE = 8 << 20
# A capture that a page has started ends at this size.
MAX_CAPTURED = 128 << 20
# Packets of a live list: how often they are sent, s, and how many at once; those between are only counted.
_PERIOD, _ROWS = 0.2, 200


async def while_open(socket: WebSocket, work: Awaitable[str | None], said: Callable[[Any], None]) -> None:
    """Do `work` until it ends or the page leaves; `said` gets what the page says meanwhile.

    What `work` returns is the reason that the page is given for the end.
    """

    async def listen() -> None:
        with contextlib.suppress(WebSocketDisconnect):
            while True:
                message = await socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                said(message.get("bytes") or message.get("text") or "")

    tasks = [asyncio.ensure_future(work), asyncio.create_task(listen())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        reason, _ = await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        await socket.close(reason=reason if isinstance(reason, str) else None)


async def terminal(
    socket: WebSocket,
    command: list[str],
    environment: Mapping[str, str],
    why: Callable[[int], Awaitable[str]],
) -> None:
    """A program on a terminal of its own.

    Bytes are what it says and what is typed; text is `{"size": [columns, rows]}` or `{"read": bytes}`, what
    the page has shown since it last said so. `why` is given the program's exit code, negative for a signal,
    and returns the reason with which the socket is closed.
    """
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )
    finally:
        os.close(theirs)
    typed: asyncio.Queue[bytes] = asyncio.Queue()
    unread = 0
    has_read = asyncio.Event()

    def said(message: Any) -> None:
        nonlocal unread
        if isinstance(message, bytes):
            typed.put_nowait(message)
            return
        with contextlib.suppress(ValueError, KeyError, TypeError, struct.error, OSError):
            order = json.loads(message)
            if "read" in order:
                unread = max(0, unread - int(order["read"]))
                has_read.set()
            else:
                columns, rows = order["size"]
                fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def show() -> str:
        nonlocal unread
        while data := await _read(ours):
            await socket.send_bytes(data)
            unread += len(data)
            while unread > _MAX_UNREAD:
                has_read.clear()
                await has_read.wait()
        return await why(await _ended(process))

    async def write() -> None:
        while True:
            data = await typed.get()
            while data:
                try:
                    data = data[os.write(ours, data) :]
                except BlockingIOError:
                    # The program does not read yet.
                    await asyncio.sleep(0.02)

    writing = asyncio.create_task(write())
    try:
        await while_open(socket, show(), said)
    finally:
        writing.cancel()
        # The terminal hangs up: a shell ends with what it has started.
        os.close(ours)
        await _ended(process)


async def _read(terminal: int) -> bytes:
    """The terminal's next output; empty when its programs have ended."""
    loop = asyncio.get_running_loop()
    while True:
        ready = asyncio.Event()
        loop.add_reader(terminal, ready.set)
        try:
            await ready.wait()
            return os.read(terminal, _PIECE)
        except BlockingIOError:
            continue
        except OSError:
            # EIO: the last one that had it open is gone.
            return b""
        finally:
            loop.remove_reader(terminal)


async def watch(socket: WebSocket, command: list[str], links: Mapping[str, Any]) -> None:
    """A message each tenth of a second: the traffic on a lab's links and the state of its TCP sockets."""
    rates = Rates(links)

    async def send() -> None:
        async with _running(command, subprocess.PIPE) as process:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                if message := rates.after(json.loads(line)):
                    await socket.send_text(json.dumps(message))

    await while_open(socket, send(), lambda _: None)


async def capture(socket: WebSocket, command: list[str], file: Path, listing: list[str]) -> None:
    """Capture into a file until the page leaves or says stop, and list the packets as they come.

    `listing` is a program that reads the capture from its input and writes a packet a line, as JSON.
    """

    async def send() -> None:
        async with _running(command, subprocess.PIPE) as source, _running(listing, subprocess.PIPE) as lister:
            copying = asyncio.create_task(_copy(source, lister, file))
            try:
                await _rows(socket, lister)
            finally:
                copying.cancel()
                await asyncio.gather(copying, return_exceptions=True)

    await while_open(socket, send(), lambda _: None)


async def _copy(source: asyncio.subprocess.Process, lister: asyncio.subprocess.Process, file: Path) -> None:
    assert source.stdout is not None
    assert lister.stdin is not None
    size = 0
    with file.open("wb", buffering=0) as out:
        while size < MAX_CAPTURED and (data := await source.stdout.read(_PIECE)):
            out.write(data)
            size += len(data)
            lister.stdin.write(data)
            await lister.stdin.drain()
    lister.stdin.close()


async def _rows(socket: WebSocket, lister: asyncio.subprocess.Process) -> None:
    assert lister.stdout is not None
    loop = asyncio.get_running_loop()
    rows: list[Any] = []
    count, due = 0, loop.time()

    async def send() -> None:
        await socket.send_text(json.dumps({"count": count, "rows": rows[-_ROWS:]}))
        rows.clear()

    while True:
        try:
            line = await asyncio.wait_for(lister.stdout.readline(), _PERIOD if rows else None)
        except TimeoutError:
            await send()
            continue
        if not line:
            break
        rows.append(json.loads(line))
        count += 1
        if loop.time() >= due:
            await send()
            due = loop.time() + _PERIOD
    await send()


@contextlib.asynccontextmanager
async def _running(command: list[str], output: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that ends with what is done with it."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=output, limit=_LONGEST_LINE, start_new_session=True
    )
    try:
        yield process
    finally:
        _signal(process, signal.SIGTERM)
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> int:
    try:
        return await asyncio.wait_for(process.wait(), 3)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        return await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """As `send_signal`, which would take the exit code from the one that waits for it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
