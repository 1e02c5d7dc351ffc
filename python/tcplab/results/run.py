"""A finished run, ready to be looked at: its tables, manifests and plan, over all repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.plan.types import Plan
from tcplab.results.errors import ResultsError
from tcplab.results.manifest import FILE, Manifest, read_manifest
from tcplab.results.schema import TABLES
from tcplab.results.tables import read_table
from tcplab.results.writer import PLAN_FILE, SCENARIO_FILE
from tcplab.safe_text import visible_data

_RUN_DIR = re.compile(r"run-(\d+)$")


class Tables(Mapping[str, pl.DataFrame]):
    """The tables of all repetitions, read when first asked for; a `repetition` column comes first."""

    def __init__(self, run_dirs: Mapping[int, Path]) -> None:
        self._run_dirs = dict(sorted(run_dirs.items()))
        self._frames: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in TABLES:
            raise KeyError(f"unknown table {name!r} (tables: {', '.join(TABLES)})")
        if name not in self._frames:
            self._frames[name] = pl.concat(
                read_table(run_dir, name).select(
                    pl.lit(repetition, dtype=pl.Int64()).alias("repetition"), pl.all()
                )
                for repetition, run_dir in self._run_dirs.items()
            )
        return self._frames[name]

    def of(self, repetition: int, name: str) -> pl.DataFrame:
        """The rows of one repetition: a slice of the table, not a copy."""
        whole = self[name]
        numbers = whole["repetition"]
        first = numbers.search_sorted(repetition, side="left")
        return whole.slice(first, numbers.search_sorted(repetition, side="right") - first)

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)


def directory_name(path: Path) -> str:
    """The name of a directory, also where it is given as `.` or `..`."""
    return path.name if path.name not in ("", "..") else path.resolve().name


# Tables that every run has, of whatever version.
_ALWAYS = ("flows", "intervals", "sockets", "queues")


class Run:
    """One scenario's results: one or more repetitions of one plan.

    Each table is an attribute too: `run.flows`, `run.intervals`, `run.sockets`, `run.queues`, ...
    """

    def __init__(self, path: Path, run_dirs: Mapping[int, Path], plan: Plan | None = None) -> None:
        """Results in run directories by repetition; `plan` saves reading it back where it is at hand."""
        if plan is not None:
            self.__dict__["plan"] = plan
        self.path = path
        """The directory it was loaded from."""
        self.run_dirs = dict(run_dirs)
        """Run directory by repetition."""
        self.tables = Tables(self.run_dirs)
        """Table name to frame, read when first asked for."""
        self.computed: dict[int, Any] = {}
        """By repetition, what the analysis keeps for the next question about it."""

    @property
    def directory(self) -> str:
        """The name of that directory."""
        return directory_name(self.path)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name in TABLES:
            return self.tables[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *TABLES]

    @cached_property
    def manifests(self) -> dict[int, Manifest]:
        """Manifest by repetition."""
        return {repetition: read_manifest(path) for repetition, path in self.run_dirs.items()}

    @property
    def manifest(self) -> Manifest:
        """The first repetition's manifest."""
        return next(iter(self.manifests.values()))

    @cached_property
    def plan(self) -> Plan:
        """The plan of the first repetition; the others differ in seed and phases."""
        return _read_plan(next(iter(self.run_dirs.values())) / PLAN_FILE)

    @property
    def repetitions(self) -> list[int]:
        """The repetitions there are."""
        return list(self.run_dirs)

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.plan.get("name") or self.path.name)

    @property
    def engine(self) -> str:
        """The engine that ran it."""
        return self.manifest.engine

    @property
    def status(self) -> str:
        """`done` when every repetition is; else the worst of them."""
        found = {manifest.status for manifest in self.manifests.values()}
        return next(status for status in ("failed", "interrupted", "done") if status in found)

    @property
    def warnings(self) -> list[str]:
        """Every repetition's warnings, each once."""
        recorded = (text for m in self.manifests.values() for text in m.warnings)
        return list(dict.fromkeys([*recorded, *self.lost_files]))

    @property
    def lost_files(self) -> list[str]:
        """The files that runs which are done have lost, in words."""
        ended = [path for number, path in self.run_dirs.items() if self.manifests[number].status == "done"]
        files = [run_dir / f"{table}.parquet" for run_dir in ended for table in _ALWAYS]
        return [
            f"{file} is missing: figures made of it are absent or less exact"
            for file in files
            if not file.exists()
        ]

    @property
    def scenario_text(self) -> str | None:
        """The scenario as it was given; null for a run directory on its own."""
        for place in (self.path, self.path.parent):
            path = place / SCENARIO_FILE
            if path.is_file():
                return path.read_text(encoding="utf-8")
        return None

    def __repr__(self) -> str:
        n = len(self.run_dirs)
        return f"<Run {self.name!r}: {self.engine}, {n} repetition{'s' if n > 1 else ''}, {self.status}>"


def load(path: Path | str, *, plan: Plan | None = None) -> Run:
    """Load a result directory (every repetition) or one run directory; `plan` saves reading it back.

    Raises ResultsError when the path holds neither.
    """
    path = Path(path)
    if not path.is_dir():
        reason = "is a file, not a result directory" if path.exists() else "no such directory"
        raise ResultsError(path, reason)
    run_dirs = find_run_dirs(path)
    if not run_dirs:
        raise ResultsError(path, "holds no results (no run-1, and no manifest.json)")
    return Run(path, run_dirs, plan)


def find_run_dirs(path: Path) -> dict[int, Path]:
    """Run directory by repetition: those below `path`, or `path` itself; empty when there is none."""
    if _holds(path, FILE):
        return {read_manifest(path).repetition: path}
    try:
        below = [(match, child) for child in path.iterdir() if (match := _RUN_DIR.match(child.name))]
    except OSError as error:
        raise ResultsError.unreadable(path, error) from error
    return {
        int(match.group(1)): child
        for match, child in sorted(below, key=lambda pair: int(pair[0].group(1)))
        if _holds(child, PLAN_FILE)
    }


def _holds(directory: Path, name: str) -> bool:
    """Whether a directory has a file of this name; raises ResultsError where it may not be searched."""
    try:
        return (directory / name).is_file()
    except OSError as error:
        raise ResultsError.unreadable(directory, error) from error


def _read_plan(path: Path) -> Plan:
    from tcplab.plan.yaml_text import load_plan_yaml
    from tcplab.shapes import ShapeError

    try:
        plan = load_plan_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError.unreadable(path, error) from error
    except ShapeError as wrong:
        raise ResultsError(path, f"not a plan of tcplab: {wrong}") from wrong
    except ValueError as error:
        raise ResultsError(path, f"not a plan: {error}") from error
    description = plan.get("description")
    shown: Plan = visible_data(plan)
    return {**shown, "description": visible_data(description, lines=True)} if description else shown
