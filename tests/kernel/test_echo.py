"""Echoes over real sockets: complete tables, and the simulator's figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcplab
from tcplab.present.echo import echo_flows
from tcplab.results import Run

pytestmark = pytest.mark.alone

SCENARIO = Path(__file__).parents[2] / "scenarios" / "echo-100mbit.yaml"
CABLE = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"]}]}


def echo(**settings: object) -> dict[str, object]:
    return {"name": "e", "kind": "echo", "from": "a", "to": "b", "sizes": [1, 3000], **settings}


def test_every_round_trip_of_every_client_has_a_row(run: Callable[..., Run]) -> None:
    done = run(CABLE, [echo(clients=3, iterations=40)], timeout="20 s", sample={"flows": "20 ms"})
    counted = done.echoes.group_by("client", "size").agg(
        pl.col("iteration").n_unique(), pl.col("count").sum()
    )
    assert sorted(counted.rows()) == [(client, size, 40, 40) for client in range(3) for size in (1, 3000)]
    assert done.flows["complete"].all()
    # Both ways.
    assert set(done.flows["bytes_received"]) == {2 * 40 * 3001}
    assert done.intervals["bytes_received"].sum() == 3 * 2 * 40 * 3001
    assert done.status == "done"


def test_a_message_under_way_counts_as_far_as_it_has_come(run: Callable[..., Run]) -> None:
    network = {"path": {"rate": "2 Mbit/s", "rtt": "20 ms", "queue": "50 packets"}}
    flow = {**echo(sizes=[100, 2_000_000], iterations=2), "from": "left", "to": "right"}
    received = {}
    for engine in ("sim", "kernel"):
        done = run(network, [flow], engine=engine, duration="3 s", sample={"flows": "100 ms"})
        received[engine] = done.flows["bytes_received"].sum()
        assert done.intervals["bytes_received"].sum() == received[engine]
        # It comes at the rate of the link.
        late = done.intervals.filter(pl.col("time") > 1_000_000_000)["goodput"]
        assert np.median(late.to_numpy()) > 1_500_000, engine
    assert received["kernel"] == pytest.approx(received["sim"], rel=0.05)


def test_more_than_a_million_are_reported_as_histograms(run: Callable[..., Run]) -> None:
    flow = echo(sizes=[1], iterations=1_100_000, busy_poll="on", duration="2 s")
    done = run(CABLE, [flow], duration="3 s")
    counts = done.echoes.group_by(pl.col("iteration").is_null().alias("many")).agg(pl.col("count").sum())
    by_batch = dict(counts.rows())
    batched = done.echo_batches["count"].sum()
    assert by_batch.get(True, 0) == batched
    if batched < 200:
        pytest.skip(f"this machine made {batched} round trips in 2 s")
    assert by_batch[False] == 100
    # One row for each bucket, and these are some 0.1 % wide, however many different times there were.
    buckets = done.echoes.filter(pl.col("iteration").is_null())["rtt"].sort().to_numpy()
    assert np.all(np.diff(buckets) > 0.0004 * buckets[:-1])
    assert not done.flows["complete"].any()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The scenario in both engines, and on the kernel over an emulated link that does nothing."""
    # Where hosts poll they need a CPU each, or an echo waits for the scheduler.
    settings = {"flows.echo.busy_poll": "off"}
    nothing = {"network.path.rate": "unlimited", "network.path.rtt": "2 us"}

    def run(engine: str, **more: object) -> Run:
        out = tmp_path_factory.mktemp(engine) / "out"
        return tcplab.run(str(SCENARIO), engine=engine, set=settings | more, attempts=1, output=out)

    return {"sim": run("sim"), "kernel": run("kernel"), "machine": run("kernel", **nothing)}


def quantile(run: Run, share: float) -> dict[int, float]:
    """By size, of the round trips in us."""
    times = run.echoes.group_by("size").agg(pl.col("rtt").quantile(share) / 1e3)
    return dict(times.sort("size").rows())


def test_an_echo_takes_what_the_simulator_says_and_what_the_machine_needs_besides(
    runs: dict[str, Run], disturbance: Callable[[Run], str | None]
) -> None:
    sim, fastest = quantile(runs["sim"], 0), quantile(runs["kernel"], 0)
    # The fastest of a hundred waited least for a CPU: less than a tenth of those that did nothing but wait.
    machine = quantile(runs["machine"], 0.9)
    besides = {size: fastest[size] - sim[size] for size in sim}
    assert min(besides.values()) >= 0, f"faster than the link: {besides}"
    for one in ("kernel", "machine"):
        if said := disturbance(runs[one]):
            pytest.skip(said)
    assert not {size: (took, machine[size]) for size, took in besides.items() if took > machine[size]}


def test_nagles_waits_for_delayed_acks_are_named(run: Callable[..., Run]) -> None:
    # Less than two segments fit the windows, so that what is left of a message is small and waits for the ACK
    # of what was small before it, both ways.
    flow = {"name": "e", "kind": "echo", "sizes": [100, 5000], "iterations": 20, "window": "3 kB"}

    def said(nagle: str) -> str:
        hosts = {side: {"nagle": nagle} for side in ("left", "right")}
        done = run({"path": {"rate": "100 Mbit/s", "rtt": "1 ms", **hosts}}, [flow], timeout="60 s")
        (test,) = echo_flows(done)
        return " ".join(step.text for step in test.steps)

    named = "At 5000 B every other round trip or more takes"
    assert named in said("on")
    assert named not in said("off")
