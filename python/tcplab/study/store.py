"""A study's directory: what was asked, a result directory for each cell, and the data set of all."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.results.errors import ResultsError
from tcplab.results.files import write_text, write_whole
from tcplab.results.manifest import FILE as MANIFEST_FILE
from tcplab.results.manifest import read_manifest
from tcplab.results.writer import (
    PLAN_FILE,
    REPORT_FILE,
    SCENARIO_FILE,
    STUDY_INDEX,
    TAKEN,
    holds_runs,
    in_the_way,
    run_dir_of,
)
from tcplab.shapes import ShapeError, by_name, each, fields, optional, switch, text, whole
from tcplab.study import seal
from tcplab.study.grid import Cell
from tcplab.study.load import Study
from tcplab.study.metrics import METRICS, Row

STUDY_FILE = "study.yaml"
RESULTS_FILE = "results.parquet"
UNFINISHED = "the study has not ended: --resume goes on with it"
CELLS = "cells"
METRICS_FILE = "metrics.json"
_ASKED = {
    "engines": each(text),
    "sets": each(text),
    "repeat": optional(whole(1, 2**63)),
    "seed": optional(whole(0, 2**64)),
    "quick": switch,
}
_CELL = {"id": text, "engine": text, "labels": by_name(text)}
_INDEX = fields(
    {
        "study": text,
        "source": text,
        "source_from_here": text,
        "asked": fields(_ASKED, ("engines", "sets")),
        "cells": each(fields(_CELL, tuple(_CELL))),
    },
    ("source", "asked", "cells"),
)


@dataclass(frozen=True)
class Done:
    """One run of one cell that was made, or tried."""

    cell: str
    """The cell's id."""
    repetition: int
    status: str
    """done, failed or interrupted."""
    message: str
    overload: str | None
    wall: float | None
    """Seconds."""
    rows: tuple[Row, ...]
    """Its metrics by flow; empty unless it is done."""


class Store:
    """Reads and writes a study's directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cell_dir(self, cell: Cell) -> Path:
        """The cell's result directory."""
        return self.path / CELLS / cell.id

    def run_dir(self, cell: Cell, repetition: int) -> Path:
        """The run directory of one repetition of a cell."""
        return run_dir_of(self.cell_dir(cell), repetition)

    @property
    def taken(self) -> bool:
        """Whether a study is here already."""
        return (self.path / STUDY_INDEX).exists()

    @property
    def occupied(self) -> bool:
        """Whether a study or other results are here already."""
        return self.taken or holds_runs(self.path)

    def create(self, study: Study) -> None:
        """Write what was asked; raises ResultsError when that cannot be, or other results are here."""
        if holds_runs(self.path):
            raise ResultsError(self.path, TAKEN)
        own = (STUDY_FILE, REPORT_FILE, RESULTS_FILE, CELLS)
        if not self.taken and (foreign := in_the_way(self.path, *own)):
            raise ResultsError(self.path, foreign)
        if self.taken and (name := self.index().get("study")) != study.name:
            raise ResultsError(self.path, f"holds the study {name}, not {study.name}")
        try:
            (self.path / CELLS).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ResultsError.from_os(self.path, problem) from problem
        write_text(self.path / STUDY_FILE, study.text)
        self.write_index(study, study.cells)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from running the study meanwhile; raises ResultsError where one does."""
        try:
            directory = os.open(self.path, os.O_RDONLY)
        except OSError as problem:
            raise ResultsError.from_os(self.path, problem) from problem
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(directory)
            raise ResultsError(self.path, "another process is running this study") from None
        except OSError:
            # A file system without locks.
            pass
        try:
            yield
        finally:
            os.close(directory)

    def write_index(self, study: Study, cells: tuple[Cell, ...]) -> None:
        """Write the cells, and what is the same for all."""
        index = {
            "study": study.name,
            "source": str(Path(study.source).absolute()),
            # As seen from here: still right once both have been moved together.
            "source_from_here": os.path.relpath(study.source, self.path),
            "asked": study.asked.to_json(),
            "sets": list(study.sets),
            "axes": {axis.name: [value.label for value in axis.values] for axis in study.axes},
            "cells": [
                {"id": cell.id, "engine": cell.engine, "group": cell.group, "labels": cell.labels}
                for cell in cells
            ],
        }
        write_text(self.path / STUDY_INDEX, json.dumps(index, indent=1) + "\n")

    def index(self) -> dict[str, Any]:
        """Read the index that `write_index` wrote; raises ResultsError."""
        path = self.path / STUDY_INDEX
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise ResultsError.unreadable(path, problem) from problem
        except ValueError as problem:
            raise ResultsError(path, f"not a study's index: {problem}") from problem
        try:
            _INDEX(found)
        except ShapeError as wrong:
            raise ResultsError(path, f"not a study's index: {wrong}") from None
        return found

    def source(self) -> str:
        """The study's file; raises ResultsError when it is not there any more."""
        index = self.index()
        given = str(index["source"])
        for place in (given, os.path.normpath(self.path / str(index.get("source_from_here", given)))):
            if Path(place).exists():
                return place
        raise ResultsError(self.path, f"its study was read from {given}, which does not exist any more")

    def claim(self, cell: Cell, scenario_text: str) -> None:
        """Make a cell's result directory."""
        path = self.cell_dir(cell)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ResultsError.from_os(path, problem) from problem
        if not (path / SCENARIO_FILE).exists():
            write_text(path / SCENARIO_FILE, scenario_text)

    def discard(self, cell: Cell, repetition: int) -> None:
        """Remove what an earlier, unfinished or outdated run of this cell left."""
        shutil.rmtree(self.run_dir(cell, repetition), ignore_errors=True)

    def state(self, cell: Cell, repetition: int, digest: str) -> str:
        """The state of a run on disk.

        `done`: made from this plan, and whole. `changed`: made from another plan. `damaged`: it was done, and
        its files are no longer as they were written, or its manifest cannot be read. `failed`: it was tried.
        Else `missing`.
        """
        run_dir = self.run_dir(cell, repetition)
        if not run_dir.is_dir():
            return "missing"
        try:
            manifest = read_manifest(run_dir)
        except ResultsError:
            return "damaged"
        if manifest.status != "done":
            # A run that was done has a seal, unless it was stopped between its manifest and its figures.
            if (run_dir / seal.FILE).exists():
                return "damaged"
            return "failed" if manifest.status == "failed" else "missing"
        if manifest.plan_digest != digest:
            return "changed"
        if _cut_off(run_dir):
            return "missing"
        return "done" if seal.whole(run_dir, (PLAN_FILE, MANIFEST_FILE, METRICS_FILE)) else "damaged"

    def read(self, cell: Cell, repetition: int) -> Done:
        """A run that is there; raises ResultsError."""
        run_dir = self.run_dir(cell, repetition)
        manifest = read_manifest(run_dir)
        rows: tuple[Row, ...] = ()
        status = manifest.status
        if status == "done" and _cut_off(run_dir):
            status = "interrupted"
        elif status == "done":
            path = run_dir / METRICS_FILE
            try:
                rows = _rows(json.loads(path.read_text(encoding="utf-8")))
            except OSError as problem:
                raise ResultsError.unreadable(path, problem) from problem
            except ValueError as problem:
                raise ResultsError(path, f"not a run's metrics: {problem}") from problem
        return Done(
            cell.id,
            repetition,
            status,
            manifest.message,
            manifest.overload,
            manifest.wall_duration,
            rows,
        )

    def write_results(self, cells: tuple[Cell, ...], done: list[Done], axes: list[str]) -> pl.DataFrame:
        """Write the data set: a row for each run and flow, and one of all flows together (`flow` null).

        A run that failed has one row, with its reason and without metrics.
        """
        frame = dataset(cells, done, axes)
        write_whole(self.path / RESULTS_FILE, lambda beside: frame.write_parquet(beside))
        return frame

    def results(self) -> pl.DataFrame:
        """The data set; raises ResultsError when there is none."""
        path = self.path / RESULTS_FILE
        try:
            return pl.read_parquet(path, glob=False)
        except FileNotFoundError:
            raise ResultsError(self.path, UNFINISHED) from None
        except OSError as problem:
            raise ResultsError.unreadable(path, problem) from problem
        except pl.exceptions.PolarsError as problem:
            raise ResultsError(path, f"not a study's results: {problem}") from problem


def _cut_off(run_dir: Path) -> bool:
    """Whether a run was stopped between its manifest and its figures."""
    return not (run_dir / METRICS_FILE).exists() and not (run_dir / seal.FILE).exists()


def _rows(read: Any) -> tuple[Row, ...]:
    """The rows of a metrics file; raises ValueError for anything else."""
    if not isinstance(read, list) or not all(isinstance(row, dict) for row in read):
        raise ValueError("a list of rows is expected")
    for row in read:
        if "flow" not in row:
            raise ValueError("a row has no flow")
        if any(not isinstance(row.get(name), int | float | None) for name in METRICS):
            raise ValueError("a metric is not a number")
    return tuple(read)


def with_copies(done: Sequence[Done]) -> list[Done]:
    """The runs, where a cell's copies (`tcplab.analysis.copies`) have the figures of its first repetition."""
    whole = [one for one in done if one.rows]
    firsts = {one.cell: one for one in sorted(whole, key=lambda one: -one.repetition)}
    prints = {cell: {str(o.rows[0].get("copy")) for o in whole if o.cell == cell} for cell in firsts}
    return [
        replace(one, rows=firsts[one.cell].rows)
        if one.rows and len(prints[one.cell]) == 1 and one.rows[0].get("copy")
        else one
        for one in done
    ]


def dataset(cells: tuple[Cell, ...], done: list[Done], axes: list[str]) -> pl.DataFrame:
    """Rows of all runs, in the order of the cells; see `Store.write_results`."""
    by_id = {cell.id: (number, cell) for number, cell in enumerate(cells)}
    schema: dict[str, Any] = {
        "cell": pl.String(),
        "group": pl.String(),
        "engine": pl.String(),
        **{axis: pl.String() for axis in axes if axis != "engine"},
        "repetition": pl.Int64(),
        "status": pl.String(),
        "message": pl.String(),
        "overload": pl.String(),
        "wall": pl.Float64(),
        "flow": pl.String(),
        "kind": pl.String(),
        "cc": pl.String(),
        "streams": pl.Int64(),
        "limited_by": pl.String(),
        **{name: pl.Float64() for name in METRICS},
    }
    # An axis may have the name of a column the run knows as well (`cc`, `streams`): the axis' label wins.
    own = set(axes)
    rows = []
    for one in sorted(with_copies(done), key=lambda one: (by_id[one.cell][0], one.repetition)):
        cell = by_id[one.cell][1]
        common = {
            "cell": cell.id,
            "group": cell.group or None,
            "engine": cell.engine,
            "repetition": one.repetition,
            "status": one.status,
            "message": one.message or None,
            "overload": one.overload,
            "wall": one.wall,
        }
        labels = {axis: cell.labels.get(axis) for axis in axes if axis != "engine"}
        for row in one.rows or ({},):
            rows.append(
                {**common, **{k: v for k, v in row.items() if k not in own and k != "copy"}, **labels}
            )
    for axis in own & {"streams"}:
        schema[axis] = pl.String()
    return pl.DataFrame(rows, schema=schema)
