"""Remedies for long paths in the simulator: what each costs, what it does to others, what limits a flow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tcplab
from tcplab.study.metrics import measure

Simulate = Callable[..., tcplab.Run]

FAST = {"rate": "100 Mbit/s", "delay": "1 ms"}
SLOW = {"rate": "10 Mbit/s", "delay": "20 ms"}


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Simulate flows past a router between `client` and `server`."""

    def simulated(
        router: dict[str, Any], near: dict[str, Any], far: dict[str, Any], *flows: dict[str, Any], **more: Any
    ) -> tcplab.Run:
        nodes = ["client", {"name": "r", "kind": "router", **router}, "server"]
        links = [{"ends": ["client", "r"], **near}, {"ends": ["r", "server"], **far}]
        common = {"from": "client", "to": "server", "kind": "tcp", "cc": "cubic"}
        given = [{"name": f"f{number}", **common, **flow} for number, flow in enumerate(flows)]
        network = {"nodes": nodes, "links": links}
        scenario = {"tcplab": 1, "name": "t", "network": network, "flows": given, **more}
        number = sum(1 for _ in tmp_path.glob("run-*"))
        return tcplab.run(scenario, output=tmp_path / f"run-{number}")

    return simulated


@pytest.mark.parametrize("client", ["client", "server"])
@pytest.mark.parametrize("fast_first", [True, False])
def test_the_slower_leg_is_named(client: str, fast_first: bool, simulate: Simulate) -> None:
    """Whichever end opens the connection: payload goes from there to the other."""
    server = "server" if client == "client" else "client"
    first, second = (FAST, SLOW) if fast_first else (SLOW, FAST)
    near, far = (first, second) if client == "client" else (second, first)
    run = simulate({"accelerate": {}}, near, far, {"from": client, "to": server}, duration="20 s")
    legs = {row.leg: row for row in run.summary().legs}
    bottleneck = "server" if fast_first else "client"
    assert {leg for leg, row in legs.items() if row.bottleneck} == {bottleneck}
    assert legs["server"].goodput.value == pytest.approx(10e6 * 1448 / 1514, rel=0.05)
    # The first leg carries what waits in the router, too.
    assert (legs["client"].goodput.value > 1.1 * legs["server"].goodput.value) == fast_first
    assert (legs["server"].queueing.value > 50e6) == fast_first


@pytest.mark.parametrize(
    ("flow", "limit"),
    [
        ({"window": "64 KiB"}, "receive window on the leg towards the server"),
        ({}, "loss on the leg towards the server"),
    ],
)
def test_what_limits_the_slower_leg_is_named(flow: dict[str, Any], limit: str, simulate: Simulate) -> None:
    """A window far below the bandwidth-delay product, with and without losses; or losses alone."""
    far = {"rate": "50 Mbit/s", "delay": "150 ms", "loss": "0.1 %"}
    run = simulate({"accelerate": {"towards_server": {"cc": "cubic"}}}, FAST, far, flow, duration="20 s")
    [found, _] = measure(run.path / "run-1", 1, run.plan)
    assert found["limited_by"] == limit


def test_what_waits_is_part_of_what_is_exposed(simulate: Simulate) -> None:
    run = simulate({"accelerate": {}}, FAST, SLOW, {}, duration="10 s")
    rows = run.legs.pivot("leg", index="time", values=["exposed", "unsent"]).drop_nulls()
    assert len(rows) > 100
    # Of what came from the client, some is on its way to the server, and the rest waits.
    assert (rows["unsent_server"] <= rows["exposed_client"]).all()
    assert np.mean(rows["unsent_server"].to_numpy()) > 0


@pytest.mark.parametrize("kind", ["accelerator", "cache"])
def test_a_node_of_that_kind_is_a_router_with_it(kind: str, simulate: Simulate) -> None:
    web = {"kind": "http", "sizes": ["20 kB"], "objects": 4, "count": 20, "connections": 1}
    run = simulate({"kind": kind}, FAST, SLOW, web, duration="30 s")
    assert run.plan["nodes"][1]["kind"] == "router"
    assert set(run.legs["node"]) == {"r"}
    assert set(run.fetches["cache"]) == ({"hit", "miss"} if kind == "cache" else {None})


def test_a_hit_comes_at_the_speed_of_the_lan(simulate: Simulate) -> None:
    far = {"rate": "10 Mbit/s", "delay": "150 ms"}
    web = {"kind": "http", "sizes": ["100 kB"], "objects": 5, "count": 40, "connections": 1}
    run = simulate({"cache": {}}, FAST, far, web, duration="60 s")
    hits = run.fetches.filter(pl.col("cache") == "hit")
    misses = run.fetches.filter(pl.col("cache") == "miss")
    assert len(misses) == 5
    # A round trip of 2 ms, and 100 kB at 100 Mbit/s take 8 ms; from afar, 300 ms and more.
    assert np.median(hits["first_byte"]) < 3e6
    assert np.median(hits["duration"]) < 20e6
    assert np.min(misses["first_byte"].to_numpy()) > 300e6


def test_parallel_ranges_are_faster_and_take_from_others(simulate: Simulate) -> None:
    """One of three shares of a link becomes eight of ten. Where losses limit each connection, they add up."""
    rates: dict[int, dict[str, float]] = {}
    lossy: dict[int, float] = {}
    web = {"kind": "http", "from": "server", "to": "client", "sizes": ["5 MB"], "objects": 50}
    for ranges in (1, 8):
        asked = {**web, "ranges": ranges, "connections": ranges}
        path = {"rate": "20 Mbit/s", "delay": "10 ms", "queue": "1 BDP"}
        others = {"streams": 2, "from": "client", "to": "server"}
        run = simulate({}, FAST, path, asked, others, duration="60 s")
        rates[ranges] = {row.flow: row.figures["goodput"].value for row in run.summary().flows}
        far = {"rate": "20 Mbit/s", "delay": "100 ms", "loss": "0.5 %"}
        run = simulate({}, FAST, far, asked, duration="60 s")
        lossy[ranges] = run.summary().flows[0].figures["goodput"].value
    assert lossy[8] > 3 * lossy[1]
    assert rates[8]["f0"] > 1.5 * rates[1]["f0"]
    assert rates[8]["f1"] < 0.75 * rates[1]["f1"]


def test_a_thousand_connections_at_a_time_are_split(simulate: Simulate) -> None:
    many = {"streams": 1000, "bytes": "20 kB"}
    run = simulate({"accelerate": {"connections": 400}}, {"rate": "1 Gbit/s", "delay": "5 ms"}, FAST, many)
    assert run.flows["complete"].all()
    split = run.legs["stream"].n_unique()
    assert 400 <= split < 1000
    [(node, facts)] = run.manifest.facts["nodes"].items()
    assert facts["accelerator"] == {"accepted": split, "refused": 0, "passed": 1000 - split}
    full = f"{node}: the accelerator was full, and connections passed unsplit: raise its"
    assert [warning for warning in run.manifest.warnings if warning.startswith(full)]
