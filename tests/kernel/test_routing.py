"""Runs on the kernel whose routers run FRR."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab
from tcplab.engine.kernel_check import FRR
from tcplab.results import Run

# Alone: routing protocols have timers of seconds. Beside other tests a router was seen to be late by more.
pytestmark = [pytest.mark.skipif(not FRR.exists(), reason="FRR is not installed"), pytest.mark.alone]

TIMERS = {"hello_interval": "1 s", "dead_interval": "4 s"}
PROBE = {"name": "probe", "kind": "ping", "interval": "20 ms", "from": "h1", "to": "h2"}


def ring(failure: dict[str, Any], after: str = "3 s", **routing: Any) -> dict[str, Any]:
    """Two hosts at opposite routers of a ring of four; the link r1-r2 is on one of two ways."""
    routers = [{"name": f"r{n}", "kind": "router", "routing": routing} for n in range(1, 5)]
    around = [("r1", "r2"), ("r2", "r3"), ("r3", "r4"), ("r4", "r1")]
    links: list[dict[str, Any]] = [{"ends": list(ends), "delay": "2 ms"} for ends in around]
    links[0]["at"] = {after: failure}
    # The way over r4 costs more.
    for router in (routers[2], routers[3]):
        protocol = next(key for key in ("ospf", "ospf6") if key in routing)
        router["routing"] = {**routing, protocol: {**routing[protocol], "cost": 50}}
    return {
        "nodes": ["h1", "h2", *routers],
        "links": [{"ends": ["h1", "r1"]}, *links, {"ends": ["r3", "h2"]}],
    }


def answered_at_last(done: Run) -> bool:
    """Whether probes were answered before the link failed, and some time after."""
    answered = done.pings.filter(~pl.col("lost"))["time"]
    return bool((answered < 3_000_000_000).any() and (answered > 3_000_000_000).any())


@pytest.mark.parametrize(("protocol", "version"), [("ospf", 4), ("ospf6", 6)])
def test_ospf_finds_the_other_way_when_a_link_fails(
    run: Callable[..., Run], protocol: str, version: int
) -> None:
    # A router whose two adjacencies come within MinLSInterval announces the second up to 10 s later. Until
    # then r1 may know only the way over r4, and lose nothing with this link.
    network = ring({"up": "off"}, "13 s", **{protocol: TIMERS})
    done = run(network, [{**PROBE, "ip": version}], duration="18 s")
    facts = done.manifest.facts["routing"]
    assert facts["converged"] > 0
    answered = done.pings.filter(~pl.col("lost"))["time"]
    # Later than any probe that was under way when the link failed.
    assert (answered > 14_000_000_000).any()
    of_r1 = done.routes.filter(pl.col("node") == "r1", pl.col("protocol") == "ospf")
    assert of_r1.filter(pl.col("time") == 0).height
    failed = 13_000_000_000
    assert of_r1.filter(pl.col("time") < failed, pl.col("next_hops").str.contains("eth1")).height
    later = of_r1.filter(pl.col("time") > failed)
    assert later["next_hops"].str.contains("eth2").any()
    if version == 4:
        # Version 3 does not log it. The carrier is lost: nobody waits for the dead interval.
        changes = done.events.filter(pl.col("event") == "adjacency")
        assert set(changes["link"]) == {"r1-r2"}
        assert changes["detail"][0].endswith("Full -> Deleted (KillNbr)")
    config = (done.path / "run-1/routing/r1.conf").read_text(encoding="utf-8")
    assert "dead-interval 4" in config


@pytest.mark.parametrize("version", [4, 6])
def test_a_route_that_the_kernel_removes_with_the_carrier_is_in_the_table(
    run: Callable[..., Run], version: int
) -> None:
    """The kernel is silent about it in version 4."""
    routers = [
        {"name": "r1", "kind": "router", "routing": {"static": [{"to": "h2", "via": "r2"}]}},
        {"name": "r2", "kind": "router", "routing": {"static": [{"to": "h1", "via": "r1"}]}},
    ]
    links = [
        {"ends": ["h1", "r1"]},
        {"ends": ["r1", "r2"], "delay": "1 ms", "at": {"2 s": {"up": "off"}}},
        {"ends": ["r2", "h2"]},
    ]
    network = {"nodes": ["h1", "h2", *routers], "links": links}
    done = run(network, [{**PROBE, "ip": version}], duration="5 s")
    of_r1 = done.routes.filter(pl.col("node") == "r1", pl.col("protocol") == "static")
    of_version = of_r1.filter(pl.col("prefix").str.contains(":", literal=True) == (version == 6))
    assert of_version["next_hops"].is_null().to_list() == [False, True]
    assert of_version["time"][1] >= 2_000_000_000


def test_without_carrier_loss_the_dead_interval_passes(run: Callable[..., Run]) -> None:
    done = run(ring({"loss": "100 %"}, ospf=TIMERS), [PROBE], duration="12 s")
    assert answered_at_last(done)
    changes = done.events.filter(pl.col("event") == "adjacency", pl.col("link") == "r1-r2")
    first = changes.row(0, named=True)
    assert first["detail"].endswith("(InactivityTimer)")
    # The last hello came up to its interval before.
    assert first["time"] >= 3_000_000_000 + 3_000_000_000


def test_routes_that_do_not_come_end_the_run(run: Callable[..., Run]) -> None:
    network = ring({"up": "off"}, ospf=TIMERS)
    network["nodes"][-2].pop("routing")
    network["nodes"][-3].pop("routing")
    with pytest.raises(tcplab.RunFailedError, match="does not answer"):
        run(network, [PROBE], duration="5 s", wait={"timeout": "2 s"})


def two_systems() -> dict[str, Any]:
    """A system of three routers with OSPF in two areas; another behind BFD; a router with static routes."""
    bgp = {"connect_retry": "1 s", "bfd": True}

    def inner(*areas: dict[str, Any]) -> dict[str, Any]:
        return {"bgp": {"as": 100, **bgp}, "ospf": {**TIMERS, "interfaces": list(areas)}}

    outside = {"link": "r1-r2", "area": 1}
    routing = {
        "r1": inner(outside, {"link": "h1-r1", "area": 1}),
        "r2": inner(outside),
        "r3": inner(),
        "r4": {"bgp": {"as": 200, **bgp}, "static": [{"to": "h3", "via": "r5"}]},
        "r5": {"static": [{"to": "h2", "via": "r4"}]},
    }
    chain = ["h1", "r1", "r2", "r3", "r4", "h2"]
    links: list[dict[str, Any]] = [{"ends": [one, other], "delay": "1 ms"} for one, other in pairwise(chain)]
    links[3]["at"] = {"3 s": {"loss": "100 %"}}
    return {
        "nodes": [
            "h1",
            "h2",
            "h3",
            *({"name": name, "kind": "router", "routing": said} for name, said in routing.items()),
        ],
        "links": [*links, {"ends": ["r4", "r5"]}, {"ends": ["r5", "h3"]}],
    }


def test_internal_bgp_areas_static_routes_and_bfd(run: Callable[..., Run]) -> None:
    within = {**PROBE, "name": "within", "from": "h2", "to": "h3"}
    done = run(two_systems(), [PROBE, within], duration="7 s")
    before = done.pings.filter(pl.col("time") < 3_000_000_000)
    assert not before["lost"].all()
    assert not done.pings.filter(pl.col("flow") == "within")["lost"].any()
    # r2 is not a neighbour of the other system: the route comes from r3, of its own.
    at_r2 = done.routes.filter(pl.col("node") == "r2", pl.col("time") == 0)
    assert "bgp" in set(at_r2["protocol"])
    # The hold time is 180 s: it is BFD that ends the session.
    ended = done.events.filter(
        pl.col("event") == "session", pl.col("link") == "r3-r4", pl.col("time") > 3_000_000_000
    )
    assert ended.height
    config = (done.path / "run-1/routing/r1.conf").read_text(encoding="utf-8")
    assert "area 0.0.0.1" in config
    assert "update-source" in config


def test_what_bgp_announces_and_to_whom_is_alike_in_both_engines(run: Callable[..., Run]) -> None:
    """r1 keeps to itself what r2 advertises to it; r3 has its only session with r2."""
    routing: dict[str, dict[str, Any]] = {
        "r0": {"as": 100},
        "r1": {"as": 200, "neighbours": ["r0", "r2"]},
        "r2": {"as": 300, "networks": ["10.9.0.0/16"], "communities": ["no-export", "300:20"]},
        "r3": {"as": 400, "neighbours": "r2"},
    }
    links = [["h1", "r0"], ["r0", "r1"], ["r1", "h2"], ["r1", "r2"], ["r2", "r3"], ["r1", "r3"]]
    nodes = [
        {"name": name, "kind": "router", "routing": {"bgp": {"connect_retry": "1 s", **own}}}
        for name, own in routing.items()
    ]
    network = {
        "nodes": ["h1", "h2", *nodes],
        "links": [{"ends": ends, "delay": "1 ms"} for ends in links],
    }

    def known(engine: str) -> set[tuple[str, str]]:
        done = run(network, [{**PROBE, "to": "h2"}], duration="15 s", engine=engine)
        learned = done.routes.filter(pl.col("protocol") == "bgp", pl.col("next_hops").is_not_null())
        return set(learned.select("node", "prefix").rows())

    found = known("kernel")
    assert ("r1", "10.9.0.0/16") in found
    assert not [node for node, prefix in found if node == "r0" and prefix == "10.9.0.0/16"]
    assert known("sim") == found


def test_a_run_whose_daemon_ends_has_failed(
    tmp_path: Path, descendants: Callable[[int], dict[int, str]]
) -> None:
    """Its figures would be those of a network without it."""
    scenario = Path(__file__).parents[2] / "scenarios" / "bgp-two-as.yaml"
    words = [
        "run",
        str(scenario),
        "--engine",
        "kernel",
        "--no-report",
        "--quiet",
        "-o",
        str(tmp_path / "out"),
    ]
    command = [sys.executable, "-m", "tcplab", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + 60
        victims: list[int] = []
        while not victims and time.monotonic() < deadline:
            victims = [pid for pid, line in descendants(running.pid).items() if "/bgpd -N r2" in line]
            time.sleep(0.05)
        os.kill(victims[0], signal.SIGKILL)
        _, said = running.communicate(timeout=120)
    assert running.returncode == 4, said
    assert "FRR has ended in r2: bgpd" in said
