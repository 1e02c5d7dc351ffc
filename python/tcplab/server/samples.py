"""A run's samples in a window of time, and what the report's figures ask of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tcplab.analysis.echo import echoes_of
from tcplab.analysis.samples import Samples
from tcplab.analysis.statistics import empirical_cdf, jain_over_time
from tcplab.figures.runs.source import Source
from tcplab.plan.paths import Hop
from tcplab.plan.types import Plan
from tcplab.results import TABLES, Run, conform
from tcplab.results.run import Tables

__all__ = ["Hop", "Samples", "bottlenecks", "echoes_of", "empirical_cdf", "in_window", "jain_over_time"]


def in_window(run_dir: Path, plan: Plan, start: int, end: int) -> Samples:
    """A run's samples from `start` to `end` ns; rows without a time, such as flows, are all there."""
    run = Run(run_dir, {1: run_dir}, plan)
    run.tables = _Window(run_dir, start, end)
    return Samples(run, 1)


def bottlenecks(samples: Samples) -> dict[Hop, list[str]]:
    """The bottlenecks of a run's flows, each with the flows that it limits, as figures have them."""
    return Source(samples, {}).bottlenecks()


# Of a flow of very many echoes only the first have a time each.
_WHOLE = ("echoes", "echo_batches")


class _Window(Tables):
    """The tables of one run, of which the rest of each file is not read."""

    def __init__(self, run_dir: Path, start: int, end: int) -> None:
        super().__init__({1: run_dir})
        self._place, self._start, self._end = run_dir, start, end

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self._frames:
            file = self._place / f"{name}.parquet"
            inside = pl.col("time").is_between(self._start, self._end)
            timed = name not in _WHOLE and any(column.name == "time" for column in TABLES[name])
            if not timed or not file.exists():
                whole = super().__getitem__(name)
                self._frames[name] = whole.filter(inside) if timed else whole
            else:
                rows = pl.scan_parquet(file, glob=False).filter(inside).collect()
                found = conform(name, rows, read=True)
                self._frames[name] = found.select(pl.lit(1, dtype=pl.Int64()).alias("repetition"), pl.all())
        return self._frames[name]
