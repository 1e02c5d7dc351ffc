"""Starting the server: the socket, the address to open, and the end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from tcplab.server.app import create
from tcplab.server.folder import Folder
from tcplab.server.security import Gate, is_loopback, kept_token


@dataclass(frozen=True)
class Settings:
    """The options of the command line."""

    root: Path
    host: str = "127.0.0.1"
    port: int = 8020
    read_only: bool = False
    allow_run: bool = False
    base_path: str = ""
    names: tuple[str, ...] = ()
    """Further host names under which the server is reached."""
    open_browser: bool = True


def serve(settings: Settings) -> None:
    """Serve until interrupted; raises OSError when the port is taken."""
    listening = _listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    loopback = is_loopback(settings.host)
    hosts = frozenset(
        name.lower()
        for name in (settings.host, *settings.names, *([] if loopback else [socket.gethostname()]))
    )
    base = "/" + settings.base_path.strip("/") if settings.base_path.strip("/") else ""
    # On all addresses no list can hold the names by which they are known: the token alone decides.
    everywhere = settings.host in ("0.0.0.0", "::") and not settings.names  # noqa: S104 - compared with
    gate = Gate(kept_token(), port, frozenset() if everywhere else hosts, base)
    folder = Folder(settings.root.resolve(), settings.read_only)
    app = create(folder, gate, may_run=(loopback or settings.allow_run) and not settings.read_only)
    shown = settings.host if not everywhere else socket.gethostname()
    shown = f"[{shown}]" if ":" in shown else shown
    address = f"http://{shown}:{port}{base}/#token={gate.token}"
    sys.stdout.write(f"tcplab ui shows {folder.root}\n  {address}\nCtrl-C ends it.\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws_max_size=1 << 16,
        # A browser on a busy machine may answer late; one that is gone without a word is noticed then.
        ws_ping_timeout=120,
        timeout_graceful_shutdown=3,
        proxy_headers=False,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = uvicorn.Server(config)
    if settings.open_browser:
        webbrowser.open(address)
    server.run(sockets=[listening])


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a log line is more than that Ctrl-C has ended a request which took long."""
    problem = record.exc_info[1] if record.exc_info else None
    ended = isinstance(problem, asyncio.CancelledError) or "timeout graceful shutdown" in record.getMessage()
    return not ended


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From now on who connects waits: the address that is printed next can be opened at once.
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    listening.set_inheritable(True)
    return listening
