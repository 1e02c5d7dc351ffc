"""Changes of a project's files by other programs, of which open pages are notified."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcplab.server.folder import Folder
from tcplab.server.live import Hub

_WATCHED = (".yaml", ".yml", ".layout.json", "/manifest.json")


async def notify_of_changes(folder: Folder, hub: Hub) -> None:
    """Notify pages when another hand changes scenarios and results, until cancelled.

    The kernel reports changes; nothing is polled.
    """
    from watchfiles import awatch

    def wanted(_: Any, path: str) -> bool:
        # A run writes its manifest at its beginning and at its end. Studies announce their runs themselves.
        ends = _WATCHED[:-1] if "/cells/" in path else _WATCHED
        return path.endswith(ends) and "/." not in path

    with suppress(asyncio.CancelledError):
        async for changes in awatch(
            folder.root, watch_filter=wanted, ignore_permission_denied=True, step=100
        ):
            names = sorted({folder.name(Path(path)) for _, path in changes if _concerns_listing(path)})
            if names:
                hub.broadcast({"type": "files", "paths": names[:100]})


def _concerns_listing(path: str) -> bool:
    """Whether a listing may differ once this file has changed: of a run's files, its manifest."""
    return "/run-" not in path or path.endswith("/manifest.json")
