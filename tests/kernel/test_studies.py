"""The shipped studies on the running kernel, quick and once: every cell can be run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pytest

from tcplab import runner, study
from tcplab.shipped import study_names

# Long enough for every flow to begin and to be sampled; what the studies find is not judged here.
SHORT: dict[str, dict[str, object]] = {
    "bbr2-mininet": {"duration": "3 s"},
    "echo": {"flows.echo.iterations": 100},
    "latency": {"duration": "4 s"},
    "starvation": {"duration": "3 s", "omit": "1 s"},
    "tuning": {"duration": "2 s", "omit": "500 ms"},
}


@pytest.mark.parametrize("name", study_names())
def test_a_shipped_study_runs_on_the_kernel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No figure is judged, so no run is repeated for the sake of its figures.
    monkeypatch.setattr(runner, "run_once", partial(runner.run_once, attempts=1))
    found = study.run(name, engines=["kernel"], set=SHORT[name], quick=True, repeat=1, out=tmp_path / "out")
    failed = [(one.cell, one.message) for one in found.outcome.done if one.status != "done"]
    assert not failed
    moved = found.results.filter(pl.col("flow").is_null() & pl.col("goodput").is_not_null())
    assert len(moved) == len(found.outcome.cells)
    assert moved["goodput"].min() > 0  # type: ignore[operator]
