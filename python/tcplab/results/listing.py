"""Finding results below a directory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tcplab.results.errors import ResultsError
from tcplab.results.manifest import FILE, moment, read_manifest
from tcplab.results.run import find_run_dirs
from tcplab.results.writer import STUDY_INDEX

# The data set, which a study writes at its end.
_STUDY_RESULTS = "results.parquet"


@dataclass(frozen=True)
class Listed:
    """One result directory, or one study, as `tcplab list` shows it."""

    path: Path
    kind: str
    """run or study."""
    name: str
    engine: str
    repetitions: int
    """Of a study: the runs of all its cells."""
    status: str
    started: str
    """ISO 8601; empty if the run left no manifest."""
    warnings: int
    message: str = ""
    """Why it is damaged."""


def list_results(
    root: Path | str, on_error: Callable[[ResultsError], None] = lambda _: None, *, studies: bool = True
) -> list[Listed]:
    """Every result directory and every study at or below `root`, newest first.

    A result whose manifest cannot be read is `damaged`, and says why: a listing shows what is there.
    `on_error` gets an error for each other directory that cannot be read. Without `studies`, whose runs are
    many, these are left out.
    """
    found: list[Listed] = []
    for folder, below, files in walk(root, on_error):
        below[:] = sorted(name for name in below if not name.startswith("."))
        if STUDY_INDEX in files:
            below.clear()
            if studies:
                found.append(_study(Path(folder)))
            continue
        listed = _result(Path(folder))
        if listed is not None:
            below.clear()
            found.append(listed)
    return sorted(found, key=lambda listed: moment(listed.started), reverse=True)


def walk(
    root: Path | str, on_error: Callable[[ResultsError], None]
) -> Iterator[tuple[str, list[str], list[str]]]:
    """`os.walk`, with an error for each directory that cannot be read, but not for one that has gone."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            on_error(ResultsError.unreadable(Path(error.filename), error))

    return os.walk(root, onerror=note)


def is_study(path: Path) -> bool:
    """Whether a directory is a study's; no where it cannot be read: whoever reads it says why."""
    try:
        return (path / STUDY_INDEX).is_file()
    except PermissionError:
        return False


def _result(path: Path) -> Listed | None:
    """A directory as a result; None if it is none."""
    try:
        run_dirs = list(find_run_dirs(path).values())
    except ResultsError as error:
        return _damaged(path, error)
    return _listed(path, run_dirs) if run_dirs else None


def _study(path: Path) -> Listed:
    try:
        listed = _listed(path, [run for cell in _cells(path) for run in find_run_dirs(cell).values()])
    except ResultsError as error:
        listed = _damaged(path, error)
    try:
        name = _study_name(path / STUDY_INDEX)
    except ResultsError as error:
        return replace(_damaged(path, error, listed.repetitions), kind="study")
    # Runs of a study that is under way, or was killed, may all be done: others are missing.
    whole = (path / _STUDY_RESULTS).exists() or listed.status in ("failed", "damaged")
    return replace(listed, kind="study", name=name, status=listed.status if whole else "interrupted")


def _cells(path: Path) -> list[Path]:
    cells = path / "cells"
    try:
        return sorted(cells.iterdir()) if cells.exists() else []
    except OSError as error:
        raise ResultsError.unreadable(cells, error) from error


def _study_name(index: Path) -> str:
    try:
        return str(json.loads(index.read_bytes())["study"])
    except OSError as error:
        raise ResultsError.unreadable(index, error) from error
    except (ValueError, LookupError, TypeError) as error:
        raise ResultsError(index, f"not a study's index: {error}") from error


def _damaged(path: Path, error: ResultsError, runs: int = 1) -> Listed:
    return Listed(path, "run", path.name, "", runs, "damaged", "", 0, str(error))


def _listed(path: Path, run_dirs: Sequence[Path]) -> Listed:
    try:
        entries = [_entry(run_dir) for run_dir in run_dirs]
    except ResultsError as error:
        return _damaged(path, error, len(run_dirs))
    states = {entry.status for entry in entries}
    return Listed(
        path=path,
        kind="run",
        name=next((entry.scenario for entry in entries if entry.scenario), path.name),
        engine=", ".join(dict.fromkeys(entry.engine for entry in entries if entry.engine)),
        repetitions=len(entries),
        status=next((status for status in ("failed", "interrupted", "done") if status in states), "empty"),
        started=min((entry.started for entry in entries), default="", key=moment),
        warnings=len({text for entry in entries for text in entry.warnings}),
    )


class _Entry(NamedTuple):
    """Entries of a manifest that a listing takes."""

    status: str
    scenario: str
    engine: str
    started: str
    warnings: tuple[str, ...]


def _entry(run_dir: Path) -> _Entry:
    try:
        file = (run_dir / FILE).stat()
    except OSError:
        # Either it is missing, or the error names it.
        return _read_entry(run_dir)
    return _unchanged_entry(run_dir, (file.st_ino, file.st_size, file.st_ctime_ns))


@lru_cache(maxsize=50_000)
def _unchanged_entry(run_dir: Path, _file: tuple[int, int, int]) -> _Entry:
    """Parse a manifest once per change of its file: a server lists a directory again and again."""
    return _read_entry(run_dir)


def _read_entry(run_dir: Path) -> _Entry:
    manifest = read_manifest(run_dir)
    warnings = tuple(manifest.warnings)
    return _Entry(manifest.status, manifest.scenario, manifest.engine, manifest.started, warnings)
