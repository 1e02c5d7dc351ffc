"""The same scenario on the kernel and in the simulator gives the same figures."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab.results import Run

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# Mean goodput and mean RTT may differ by these shares.
GOODPUT, RTT = 0.05, 0.10


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("four-controls")
    scenario = str(SCENARIOS / "four-controls.yaml")
    # The kernel has no bbr2 of its own.
    settings = {"flows.bbr2.cc": "bbr1"}
    return {
        engine: tcplab.run(scenario, engine=engine, set=settings, out=folder / engine)
        for engine in ("sim", "kernel")
    }


@pytest.fixture
def unspoilt(runs: dict[str, Run]) -> dict[str, Run]:
    """Both runs, unless the machine was too busy for its figures to be TCP's."""
    overload = runs["kernel"].manifest.overload
    if overload:
        pytest.skip(overload)
    return runs


def goodput(run: Run, flow: str) -> float:
    rows = run.intervals.filter((pl.col("flow") == flow) & (pl.col("time") > 5_000_000_000))
    return float(rows["bytes_received"].sum()) * 8e9 / float(rows["duration"].sum())


def rtt(run: Run, flow: str) -> float:
    rows = run.sockets.filter((pl.col("flow") == flow) & (pl.col("time") > 5_000_000_000))
    return float(rows["srtt"].to_numpy().mean())


@pytest.mark.parametrize("flow", ["reno", "cubic", "bbr1"])
def test_the_mean_goodput_agrees(unspoilt: dict[str, Run], flow: str) -> None:
    assert goodput(unspoilt["kernel"], flow) == pytest.approx(goodput(unspoilt["sim"], flow), rel=GOODPUT)


@pytest.mark.parametrize("flow", ["reno", "cubic", "bbr1"])
def test_the_mean_rtt_agrees(unspoilt: dict[str, Run], flow: str) -> None:
    assert rtt(unspoilt["kernel"], flow) == pytest.approx(rtt(unspoilt["sim"], flow), rel=RTT)


def test_the_tables_have_the_same_columns_and_flows(runs: dict[str, Run]) -> None:
    for name in runs["sim"].tables:
        assert runs["sim"].tables[name].schema == runs["kernel"].tables[name].schema
    for name in ("flows", "intervals", "sockets", "queues"):
        keys = [
            key for key in ("flow", "stream", "link", "direction") if key in runs["sim"].tables[name].columns
        ]
        ours, theirs = (set(runs[engine].tables[name].select(keys).unique().rows()) for engine in runs)
        assert ours == theirs
