"""The shipped studies on the running kernel, quick and once: every cell can be run."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tcplab import runner, study
from tcplab.shipped import study_names
from tcplab.study import execute
from tcplab.study.load import load
from tcplab.study.task import Made, Task, make

# Long enough for every flow to begin and to be sampled; what the studies find is not judged here.
SHORT: dict[str, dict[str, object]] = {
    "aqm": {"duration": "1 s", "omit": "200 ms"},
    "bufferbloat": {"duration": "1 s", "omit": "200 ms"},
    "bbr2-mininet": {"duration": "1 s"},
    "bgp-two-as": {"duration": "1 s", "flows.bulk.start": "200 ms"},
    "echo": {"flows.echo.iterations": 100},
    "incast": {"duration": "2 s", "omit": "200 ms"},
    "l4s": {"duration": "1 s", "omit": "200 ms"},
    "latency": {"duration": "2 s", "flows.check.duration": "500 ms", "flows.bulk.start": "200 ms"},
    "pepsal": {"duration": "1 s"},
    "remedies": {"duration": "1 s"},
    "starvation": {"duration": "1 s", "omit": "200 ms"},
    "tuning": {"duration": "1 s", "omit": "200 ms"},
}
STUDIES = Path(__file__).parents[2] / "studies"
# Axes of a large study, and their values that are run here. Others use prague, or start after these runs end.
ONLY = {
    "aqm": {"test": {"5.3 unresponsive", "7.2 bursts"}, "knob": {"codel, target 5 ms"}},
    "pepsal": {"path": {"100 ms 0 %, 1 ms 4 %, 20 Mbit/s"}, "cc": {"CUBIC", "CUBIC, split"}},
}
# Studies that are not run here, and why.
LEFT_OUT = {
    "routing-failure": "eight routers take up to 20 s to converge in each of 40 cells; see test_routing.py",
}


class Here:
    """Makes runs in this process: starting another takes as long as a run of these."""

    def __init__(self, run_dir: Callable[[Task], Path], jobs: int) -> None:
        self._run_dir = run_dir

    def make(self, tasks: Sequence[Task], stop: threading.Event) -> Iterator[Made]:
        return (make(task, self._run_dir(task)) for task in tasks)


def shortened(name: str, tmp_path: Path) -> str | Path:
    """The study's name, or a file of it whose `quick` skips the values that are not run here."""
    if name not in ONLY:
        return name
    whole = load(str(STUDIES / name / "study.yaml"))
    left = {
        axis.name: [value.label for value in axis.values if value.label not in ONLY[name][axis.name]]
        for axis in whole.axes
        if axis.name in ONLY[name]
    }
    before, found, _ = whole.text.rpartition("  skip:")
    assert found, "no values that --quick skips"
    study_file = tmp_path / "study.yaml"
    study_file.write_text(f"{before}  skip: {json.dumps(left)}\n", encoding="utf-8")
    return study_file


@pytest.mark.parametrize("name", [name for name in study_names() if name not in LEFT_OUT])
def test_a_shipped_study_runs_on_the_kernel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "LocalPool", Here)
    # No figure is judged, so no run is repeated for the sake of its figures.
    monkeypatch.setattr(runner, "run_once", partial(runner.run_once, attempts=1))
    source = shortened(name, tmp_path)
    found = study.run(
        source, engines=["kernel"], set=SHORT[name], quick=True, repeat=1, output=tmp_path / "out"
    )
    failed = [(one.cell, one.message) for one in found.outcome.done if one.status != "done"]
    assert not failed
    moved = found.results.filter(pl.col("flow").is_null() & pl.col("goodput").is_not_null())
    assert len(moved) == len(found.outcome.cells)
    # On a machine without a CPU to spare for a second nothing may move.
    overloaded = [one.cell for one in found.outcome.done if one.overload]
    assert (moved.filter(~pl.col("cell").is_in(overloaded))["goodput"] > 0).all()
