"""The same scenario on the kernel and in the simulator gives the same figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab.results import Run

pytestmark = pytest.mark.alone

SCENARIOS = Path(__file__).parents[2] / "scenarios"
# Mean goodput and mean RTT may differ by these shares.
GOODPUT, RTT = 0.05, 0.10


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: Callable[[Callable[[], Run]], Run]
) -> dict[str, Run]:
    def run_it(engine: str) -> Run:
        return run(engine, tmp_path_factory.mktemp(engine))

    return {"sim": run_it("sim"), "kernel": undisturbed(lambda: run_it("kernel"))}


def run(engine: str, folder: Path, **settings: object) -> Run:
    # The kernel has no bbr2 of its own.
    settings |= {"flows.bbr2.cc": "bbr1"}
    return tcplab.run(
        str(SCENARIOS / "four-controls.yaml"), engine=engine, set=settings, output=folder / engine
    )


def goodput(run: Run, flow: str) -> float:
    rows = run.intervals.filter((pl.col("flow") == flow) & (pl.col("time") > 5_000_000_000))
    return float(rows["bytes_received"].sum()) * 8e9 / float(rows["duration"].sum())


def rtt(run: Run, flow: str) -> float:
    rows = run.sockets.filter((pl.col("flow") == flow) & (pl.col("time") > 5_000_000_000))
    return float(rows["srtt"].to_numpy().mean())


@pytest.mark.parametrize("flow", ["reno", "cubic", "bbr1"])
def test_the_mean_goodput_agrees(runs: dict[str, Run], flow: str) -> None:
    assert goodput(runs["kernel"], flow) == pytest.approx(goodput(runs["sim"], flow), rel=GOODPUT)


@pytest.mark.parametrize("flow", ["reno", "cubic", "bbr1"])
def test_the_mean_rtt_agrees(runs: dict[str, Run], flow: str) -> None:
    assert rtt(runs["kernel"], flow) == pytest.approx(rtt(runs["sim"], flow), rel=RTT)


def test_the_tables_have_the_same_columns_and_flows(tmp_path: Path) -> None:
    runs = {engine: run(engine, tmp_path, duration="3 s") for engine in ("sim", "kernel")}
    for name in runs["sim"].tables:
        assert runs["sim"].tables[name].schema == runs["kernel"].tables[name].schema
    for name in ("flows", "intervals", "sockets", "queues"):
        keys = [
            key for key in ("flow", "stream", "link", "direction") if key in runs["sim"].tables[name].columns
        ]
        ours, theirs = (set(runs[engine].tables[name].select(keys).unique().rows()) for engine in runs)
        assert ours == theirs
