"""One run of one cell: what a worker process, here or on another machine, is given and gives back."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tcplab.engine.base import Progress, Status
from tcplab.plan.types import Plan
from tcplab.results.errors import ResultsError
from tcplab.results.files import write_text
from tcplab.results.writer import run_dir_of


@dataclass(frozen=True)
class Task:
    """A run to be made."""

    cell: str
    """The cell's id."""
    engine: str
    plan: Plan
    """With the seed and phases of this repetition."""
    repetition: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Made:
    """The outcome of a task."""

    cell: str
    repetition: int
    status: str
    """done, failed or interrupted."""
    message: str
    wall: float
    """How long it took with its tables and figures, seconds."""


def make(task: Task, run_dir: Path, progress: Callable[[Progress], None] | None = None) -> Made:
    """Execute a task into its run directory, and write its metrics there.

    What goes wrong with the run is an answer, not an exception: a study goes on. Raises ResultsError when
    the directory cannot be written.
    """
    from tcplab import engine as engines
    from tcplab.results.manifest import read_manifest
    from tcplab.runner import run_once
    from tcplab.study.metrics import measure
    from tcplab.study.seal import seal
    from tcplab.study.store import METRICS_FILE

    began = time.monotonic()
    try:
        engine = engines.load(task.engine)
        outcome, _ = run_once(
            task.plan,
            engine,
            run_dir,
            repetition=task.repetition,
            warnings=task.warnings,
            progress=progress or _nothing,
        )
        status, message = outcome.status, outcome.message
        if status is Status.DONE:
            rows = measure(run_dir, task.repetition, engine.executed(task.plan))
            write_text(run_dir / METRICS_FILE, json.dumps(rows) + "\n")
            seal(run_dir)
    except ResultsError:
        raise
    except Exception as problem:
        status, message = Status.FAILED, f"{type(problem).__name__}: {problem}"
        if not read_manifest(run_dir).message:
            _fail(run_dir, message)
    return Made(task.cell, task.repetition, status.value, message, time.monotonic() - began)


def refuse(task: Task, run_dir: Path, message: str) -> Made:
    """Record a run that cannot be made, with the reason."""
    from tcplab.results.writer import RunWriter

    RunWriter(run_dir, task.plan, engine=task.engine, repetition=task.repetition).finish(
        Status.FAILED.value, message=message, wall_duration=0.0
    )
    return Made(task.cell, task.repetition, Status.FAILED.value, message, 0.0)


def make_away(task: Task, storage: str | None = None) -> tuple[Made, dict[str, bytes]]:
    """Execute a task where its study's directory is not: the files of its run directory come back, by name.

    With `storage` (an fsspec path, such as `s3://bucket/study`) they go there instead, under
    `CELL/run-N`, and nothing comes back.
    """
    with tempfile.TemporaryDirectory(prefix="tcplab-study-") as temporary:
        run_dir = run_dir_of(Path(temporary), task.repetition)
        made = make(task, run_dir)
        if storage is not None:
            _put(run_dir, f"{storage.rstrip('/')}/{task.cell}/{run_dir.name}")
            return made, {}
        files = (path for path in run_dir.rglob("*") if path.is_file())
        return made, {path.relative_to(run_dir).as_posix(): path.read_bytes() for path in files}


def place(files: dict[str, bytes], run_dir: Path) -> None:
    """Put a run directory that came back in its place: written beside, and renamed."""
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{run_dir.name}.", dir=run_dir.parent) as temporary:
        whole = Path(temporary) / run_dir.name
        whole.mkdir()
        for name, data in files.items():
            path = whole / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        whole.replace(run_dir)


def fetch(where: str, run_dir: Path) -> None:
    """Copy a run directory from shared storage (an fsspec path) into its place."""
    import fsspec

    system, path = fsspec.core.url_to_fs(where)
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{run_dir.name}.", dir=run_dir.parent) as temporary:
        whole = Path(temporary) / run_dir.name
        system.get(path.rstrip("/") + "/", str(whole) + "/", recursive=True)
        whole.replace(run_dir)


def _put(run_dir: Path, where: str) -> None:
    import fsspec

    system, path = fsspec.core.url_to_fs(where)
    system.makedirs(path, exist_ok=True)
    for file in sorted(run_dir.rglob("*")):
        if file.is_file():
            target = f"{path}/{file.relative_to(run_dir)}"
            system.makedirs(target.rpartition("/")[0], exist_ok=True)
            system.put_file(str(file), target)


def _fail(run_dir: Path, message: str) -> None:
    """Mark a run whose own figures could not be made."""
    from tcplab.results.manifest import FILE, read_manifest

    manifest = replace(read_manifest(run_dir), status=Status.FAILED.value, message=message)
    write_text(run_dir / FILE, manifest.to_json())


def _nothing(progress: Progress) -> None:
    pass
