"""Jain's index over time, from series whose index is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from tcplab.figures.model import Chart
from tcplab.results import RunWriter
from tcplab.results.tests.synthetic import MS, plan
from tcplab.study.fairness_figure import over_time
from tcplab.study.store import Store
from tcplab.study.summary import CellSummary


@dataclass(frozen=True)
class Folders:
    """The part of a store that is asked: where a cell's runs are."""

    path: Path

    def cell_dir(self, cell: Any) -> Path:
        return self.path / str(cell.title)


def row(name: str) -> CellSummary:
    return cast("CellSummary", SimpleNamespace(cell=SimpleNamespace(title=name)))


def measured(
    folder: Path, rates: Mapping[str, list[list[float]]], kinds: Mapping[str, str] | None = None
) -> None:
    """A cell whose flows have one goodput a second, by stream."""
    seconds = len(next(iter(rates.values()))[0])
    made = plan(dict.fromkeys(rates, "reno"), shared=True, seconds=seconds)
    for flow in made["flows"]:
        flow["kind"] = (kinds or {}).get(flow["name"], "tcp")
    time = np.arange(1, seconds * 10 + 1) * 100 * MS
    frames = [
        pl.DataFrame(
            {
                "time": time,
                "duration": [100 * MS] * len(time),
                "flow": [name] * len(time),
                "stream": [stream] * len(time),
                "goodput": np.repeat(series, 10) * 1e6,
            }
        )
        for name, streams in rates.items()
        for stream, series in enumerate(streams)
    ]
    RunWriter(folder, made).write_table("intervals", pl.concat(frames))


def drawn(folder: Path, *cells: str) -> Chart | None:
    return over_time([row(name) for name in cells], cast("Store", Folders(folder)), "fairness")


def index(folder: Path, rates: Mapping[str, list[list[float]]], **more: Any) -> list[float]:
    """Jain's index at the end of each second."""
    measured(folder / "cell", rates, **more)
    chart = drawn(folder, "cell")
    assert chart is not None
    (trace,) = chart.traces
    assert trace.x[9::10].tolist() == pytest.approx(list(range(1, len(trace.x) // 10 + 1)))
    return [float(value) for value in trace.y[9::10]]


def test_it_is_that_of_the_second_before(tmp_path: Path) -> None:
    # (3 + 1)^2 / 2 (9 + 1), then all to one, then alike.
    found = index(tmp_path, {"one": [[3, 9, 5]], "two": [[1, 0, 5]]})
    assert found == pytest.approx([0.8, 0.5, 1.0])


def test_each_stream_is_a_source(tmp_path: Path) -> None:
    # Two flows have 4 each, but three sources have 4, 2 and 2: 64 / 3 / 24.
    assert index(tmp_path, {"one": [[4]], "two": [[2], [2]]}) == pytest.approx([64 / 72])


def test_datagrams_share_and_pings_do_not(tmp_path: Path) -> None:
    rates: dict[str, list[list[float]]] = {"one": [[3]], "two": [[1]], "three": [[100]]}
    assert index(tmp_path, rates, kinds={"two": "udp", "three": "ping"}) == pytest.approx([0.8])


def test_a_cell_where_nobody_shares_or_that_was_not_run_has_no_line(tmp_path: Path) -> None:
    measured(tmp_path / "alone", {"one": [[5, 5]]})
    measured(tmp_path / "silent", {"one": [[0, 0]], "two": [[0, 0]]})
    assert drawn(tmp_path, "alone", "silent", "missing") is None
    measured(tmp_path / "two", {"one": [[5, 5]], "two": [[5, 5]]})
    chart = drawn(tmp_path, "alone", "silent", "missing", "two")
    assert chart is not None
    assert [trace.key for trace in chart.traces] == ["two"]


def test_more_cells_than_can_be_distinguished_are_counted(tmp_path: Path) -> None:
    measured(tmp_path / "cell", {"one": [[5]], "two": [[5]]})
    few, many = drawn(tmp_path, *["cell"] * 10), drawn(tmp_path, *["cell"] * 12)
    assert few is not None
    assert many is not None
    assert (len(few.traces), len(many.traces)) == (10, 10)
    assert "2 more cells are not drawn." in many.notes
    assert not any("not drawn" in note for note in few.notes)
