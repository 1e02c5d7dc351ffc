"""The shipped study of BBRv2: every scenario of it runs in the simulator, and shows what its page says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab.results import Run

STUDY = Path(__file__).parent.parent / "studies" / "bbr2-mininet"
SCENARIOS = {
    path.stem.split("-")[0] + ("n" if "netem" in path.stem else ""): path
    for path in STUDY.glob("[1-5]*.yaml")
}
CONTROLS = ("reno", "cubic", "bbr1", "bbr2", "bbr3")
Runs = Callable[[str], Run]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run one of the scenarios, once."""
    done: dict[str, Run] = {}

    def run(name: str) -> Run:
        if name not in done:
            done[name] = tcplab.run(SCENARIOS[name], output=tmp_path_factory.mktemp("study") / name)
        return done[name]

    return run


def goodput(run: Run, flow: str, after: float = 2.0) -> float:
    """Mbit/s from some seconds after the flow's start."""
    start = run.flows.filter(flow=flow)["start"][0]
    rows = run.intervals.filter((pl.col("flow") == flow) & (pl.col("time") > start + after * 1e9))
    return float(rows["bytes_received"].sum()) * 8e3 / float(rows["duration"].sum())


def retransmitted(run: Run, flow: str) -> float:
    """Share of segments."""
    row = run.flows.filter(flow=flow).row(0, named=True)
    return float(row["retransmits"] / row["segments_sent"])


def queued(run: Run, flow: str) -> float:
    """Mean bytes in the flow's queue after 5 s."""
    rows = run.queues.filter(
        (pl.col("link") == f"path-{flow}") & (pl.col("direction") == "forward") & (pl.col("time") > 5e9)
    )
    return float(rows["bytes"].to_numpy().mean())


def probes(run: Run, flow: str) -> tuple[int, int]:
    """How often a flow drains the path for its RTT, and the minimum it then has in flight."""
    events = run.tables["events"].filter(flow=flow, event="phase", detail="PROBE_RTT")
    rows = run.sockets.filter(flow=flow, phase="PROBE_RTT")
    return len(events), int(rows["inflight"].drop_nulls().to_numpy().min())


def test_the_study_is_whole() -> None:
    assert set(SCENARIOS) == {"1", "2", "3", "3n", "4", "5", "5b"}


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_every_control_carries_its_flow(simulated: Runs, name: str) -> None:
    run = simulated(name)
    assert run.flows["flow"].to_list() == list(CONTROLS)
    assert all(goodput(run, flow) > 1 for flow in CONTROLS)


def test_1_reno_and_cubic_saw_and_the_bbrs_keep_the_queue_short(simulated: Runs) -> None:
    run = simulated("1")
    assert all(goodput(run, flow, after=5) > 9 for flow in CONTROLS)
    assert min(queued(run, "reno"), queued(run, "cubic")) > 1.5 * max(
        queued(run, flow) for flow in CONTROLS[2:]
    )


def test_2_bbr2_drains_more_often_and_less_deeply_and_queues_less(simulated: Runs) -> None:
    run = simulated("2")
    (often1, least1), (often2, least2) = probes(run, "bbr1"), probes(run, "bbr2")
    assert often1 in (5, 6)
    assert often2 in (11, 12)
    # Four packets, or three while one that was acknowledged by itself leaves no room for a burst of two.
    assert least1 in (3, 4)
    assert least2 > 100
    assert queued(run, "bbr1") > 3 * queued(run, "bbr2")


def test_3_loss_stops_reno_and_cubic_and_netems_does_not(simulated: Runs) -> None:
    lossy = {flow: goodput(simulated("3"), flow) for flow in CONTROLS}
    assert max(lossy["reno"], lossy["cubic"]) < 5
    assert lossy["bbr2"] < lossy["bbr1"]
    assert min(lossy["bbr1"], lossy["bbr2"], lossy["bbr3"]) > 70
    assert all(goodput(simulated("3n"), flow) > 90 for flow in CONTROLS)


def test_5_bbr1_overflows_a_tiny_buffer_and_bbr2_seldom_does(simulated: Runs) -> None:
    for name in ("5", "5b"):
        run = simulated(name)
        assert retransmitted(run, "bbr1") > 0.02
        assert retransmitted(run, "bbr2") < 0.01
        assert goodput(run, "bbr2", after=5) > 80
        assert goodput(run, "reno", after=5) < 30
