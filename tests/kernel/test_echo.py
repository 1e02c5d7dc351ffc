"""Echoes over real sockets: complete tables, and the simulator's figures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcplab
from tcplab.report.echo import echo_flows
from tcplab.results import Run

SCENARIO = Path(__file__).parents[2] / "scenarios" / "echo-100mbit.yaml"
CABLE = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"]}]}
# The share by which the median round trip of each size may differ.
RTT = 0.10


def echo(**settings: object) -> dict[str, object]:
    return {"name": "e", "kind": "echo", "from": "a", "to": "b", "sizes": [1, 3000], **settings}


def test_every_round_trip_of_every_client_has_a_row(run: Callable[..., Run]) -> None:
    done = run(CABLE, [echo(clients=3, iterations=40)], timeout="20 s", sample={"flows": "20 ms"})
    counted = done.echoes.group_by("client", "size").agg(
        pl.col("iteration").n_unique(), pl.col("count").sum()
    )
    assert sorted(counted.rows()) == [(client, size, 40, 40) for client in range(3) for size in (1, 3000)]
    assert done.flows["complete"].all()
    # There and back.
    assert set(done.flows["bytes_received"]) == {2 * 40 * 3001}
    assert done.intervals["bytes_received"].sum() == 3 * 2 * 40 * 3001
    assert done.status == "done"


def test_more_than_a_million_are_told_as_histograms(run: Callable[..., Run]) -> None:
    flow = echo(sizes=[1], iterations=1_100_000, busy_poll="on", duration="2 s")
    done = run(CABLE, [flow], duration="3 s")
    counts = done.echoes.group_by(pl.col("iteration").is_null().alias("many")).agg(pl.col("count").sum())
    told = dict(counts.rows())
    assert told[False] == 100
    assert told[True] == done.echo_batches["count"].sum() > 200
    # One row for each bucket, and these are some 0.1 % wide, however many different times there were.
    buckets = done.echoes.filter(pl.col("iteration").is_null())["rtt"].sort().to_numpy()
    assert np.all(np.diff(buckets) > 0.0004 * buckets[:-1])
    assert not done.flows["complete"].any()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The scenario on both engines; on the kernel the hosts, which poll, leave a CPU to the links."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("hosts that poll and links that spin need two CPUs")
    pinned = {f"network.path.{side}.cpus": cpus[1] for side in ("left", "right")}

    def run(engine: str, settings: dict[str, int]) -> Run:
        out = tmp_path_factory.mktemp(engine) / "out"
        return tcplab.run(str(SCENARIO), engine=engine, set=settings, out=out)

    # Both hosts are on one CPU, so that each is held up by the other: only the links tell of a disturbance.
    for _ in range(3):
        kernel = run("kernel", pinned)
        if kernel.manifest.overload is None:
            return {"sim": run("sim", {}), "kernel": kernel}
    pytest.skip(f"3 times: {kernel.manifest.overload}")


def medians(run: Run) -> dict[int, float]:
    return dict(run.echoes.group_by("size").agg(pl.col("rtt").median()).sort("size").rows())


def test_the_simulator_agrees_at_every_size(runs: dict[str, Run]) -> None:
    sim, kernel = medians(runs["sim"]), medians(runs["kernel"])
    assert {size: kernel[size] / sim[size] for size in sim} == pytest.approx(dict.fromkeys(sim, 1.0), rel=RTT)


def test_nagles_waits_for_delayed_acks_are_named(run: Callable[..., Run]) -> None:
    # Less than two segments fit the windows, so that what is left of a message is small and waits for the ACK
    # of what was small before it, there and back.
    flow = {"name": "e", "kind": "echo", "sizes": [100, 5000], "iterations": 20, "window": "3 kB"}

    def said(nagle: str) -> str:
        hosts = {side: {"nagle": nagle} for side in ("left", "right")}
        done = run({"path": {"rate": "100 Mbit/s", "rtt": "1 ms", **hosts}}, [flow], timeout="60 s")
        (test,) = echo_flows(done)
        return " ".join(step.text for step in test.steps)

    named = "At 5000 B every other round trip or more takes"
    assert named in said("on")
    assert named not in said("off")
