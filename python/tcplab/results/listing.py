"""Finding results below a directory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tcplab.results.manifest import Manifest, read_manifest
from tcplab.results.run import find_run_dirs


@dataclass(frozen=True)
class Listed:
    """One result directory, as `tcplab list` shows it."""

    path: Path
    name: str
    engine: str
    repetitions: int
    status: str
    started: str
    """ISO 8601; empty if the run left no manifest."""
    warnings: int


def list_results(root: Path | str) -> list[Listed]:
    """Every result directory at or below `root`, newest first.

    Directories that cannot be read are passed over: a listing shows what is there.
    """
    found: list[Listed] = []
    for folder, below, _files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        run_dirs = find_run_dirs(Path(folder))
        if run_dirs:
            below.clear()
            found.append(_listed(Path(folder), [read_manifest(path) for path in run_dirs.values()]))
    return sorted(found, key=lambda listed: listed.started, reverse=True)


def _listed(path: Path, manifests: list[Manifest]) -> Listed:
    states = {manifest.status for manifest in manifests}
    first = manifests[0]
    return Listed(
        path=path,
        name=first.scenario or path.name,
        engine=first.engine,
        repetitions=len(manifests),
        status=next(status for status in ("failed", "interrupted", "done") if status in states),
        started=first.started,
        warnings=len({text for manifest in manifests for text in manifest.warnings}),
    )
