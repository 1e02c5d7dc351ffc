"""Finding results below a directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tcplab.results.errors import ResultsError
from tcplab.results.manifest import read_manifest
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

    A result whose manifest cannot be read is `damaged`: a listing shows what is there.
    """
    found: list[Listed] = []
    for folder, below, _files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        try:
            run_dirs = find_run_dirs(Path(folder))
        except ResultsError:
            # Its manifest is no manifest, which is said below.
            run_dirs = {1: Path(folder)}
        if run_dirs:
            below.clear()
            found.append(_listed(Path(folder), run_dirs))
    return sorted(found, key=lambda listed: listed.started, reverse=True)


def _listed(path: Path, run_dirs: Mapping[int, Path]) -> Listed:
    try:
        manifests = [read_manifest(run_dir) for run_dir in run_dirs.values()]
    except ResultsError:
        return Listed(path, path.name, "", len(run_dirs), "damaged", "", 0)
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
