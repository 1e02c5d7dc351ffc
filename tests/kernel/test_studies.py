"""The shipped studies on the running kernel, quick and once: every cell can be run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tcplab import runner, study
from tcplab.shipped import study_names
from tcplab.study import execute
from tcplab.study.task import Made, Task, make

# Long enough for every flow to begin and to be sampled; what the studies find is not judged here.
SHORT: dict[str, dict[str, object]] = {
    "aqm": {"duration": "1 s", "omit": "200 ms"},
    "bufferbloat": {"duration": "1 s", "omit": "200 ms"},
    "bbr2-mininet": {"duration": "1 s"},
    "echo": {"flows.echo.iterations": 100},
    "latency": {"duration": "1 s", "flows.check.duration": "500 ms", "flows.bulk.start": "200 ms"},
    "remedies": {"duration": "1 s"},
    "starvation": {"duration": "1 s", "omit": "200 ms"},
    "tuning": {"duration": "1 s", "omit": "200 ms"},
}


class Here:
    """Makes runs in this process: starting another takes as long as a run of these."""

    def __init__(self, run_dir: Callable[[Task], Path], jobs: int) -> None:
        self._run_dir = run_dir

    def make(self, tasks: Sequence[Task], stop: threading.Event) -> Iterator[Made]:
        return (make(task, self._run_dir(task)) for task in tasks)


@pytest.mark.parametrize("name", study_names())
def test_a_shipped_study_runs_on_the_kernel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "LocalPool", Here)
    # No figure is judged, so no run is repeated for the sake of its figures.
    monkeypatch.setattr(runner, "run_once", partial(runner.run_once, attempts=1))
    found = study.run(name, engines=["kernel"], set=SHORT[name], quick=True, repeat=1, out=tmp_path / "out")
    failed = [(one.cell, one.message) for one in found.outcome.done if one.status != "done"]
    assert not failed
    moved = found.results.filter(pl.col("flow").is_null() & pl.col("goodput").is_not_null())
    assert len(moved) == len(found.outcome.cells)
    assert moved["goodput"].min() > 0  # type: ignore[operator]
