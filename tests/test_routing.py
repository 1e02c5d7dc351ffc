"""Routing protocols in the simulator, from a scenario to the table of failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab
from tcplab.analysis.outages import Outage, outages
from tcplab.analysis.summaries import summary
from tcplab.figures.runs.failures import failures
from tcplab.present.summary_table import outage_grid

SECOND = 1_000_000_000


def ring(failure: dict[str, Any], **routing: Any) -> dict[str, Any]:
    """Eight routers; h1 at r1 and h4 at r4, three links apart one way and five the other."""
    return {
        "tcplab": 1,
        "name": "ring",
        "network": {
            "topology": {
                "kind": "ring",
                "routers": 8,
                "core": {"rate": "20 Mbit/s", "delay": "5 ms"},
                "routing": routing,
            },
            "links": [{"ends": ["r2", "r3"], "at": {"4 s": failure}}],
        },
        "flows": [
            {"name": "bulk", "kind": "tcp", "cc": "cubic", "from": "h1", "to": "h4"},
            {"name": "probe", "kind": "ping", "from": "h1", "to": "h4", "interval": "10 ms"},
            {
                "name": "stream",
                "kind": "udp",
                "rate": "400 kbit/s",
                "payload": "500 B",
                "from": "h1",
                "to": "h4",
            },
        ],
        "duration": "14 s",
    }


def felt(scenario: dict[str, Any], out: Path) -> dict[str, Outage]:
    return {one.flow: one for one in outages(tcplab.run(scenario, output=out))}


def test_a_failure_has_its_detection_its_planes_and_its_paths(tmp_path: Path) -> None:
    found = felt(ring({"up": "off"}, ospf={}), tmp_path / "out")
    for one in found.values():
        assert one.at == 4 * SECOND
        assert one.before == "r1 r2 r3 r4"
        assert one.after == "r1 r8 r7 r6 r5 r4"
        assert one.detected == 2_000_000
        # The last table follows a second calculation, 50 ms after the first.
        assert one.routes is not None
        assert 10_000_000 < one.routes < 120_000_000
    probe = found["probe"]
    assert probe.lost is not None
    # Those in the queue of the link, and of the time until the tables had changed.
    assert probe.lost < 15
    assert probe.fib == 2 * probe.lost * probe.resolution
    assert probe.outage < 150_000_000
    assert found["stream"].lost is not None
    assert found["bulk"].rtos is not None
    assert found["bulk"].recovered is not None


# Medians of eight runs of FRR 8.4 on an idle machine, ms from the loss of the carrier (docs/routing.md).
FRR = {"r2": 11.7, "r3": 11.7, "r1": 18.2, "r4": 18.2, "r5": 23.7, "r8": 23.7, "r6": 29.1, "r7": 29.1}


def test_tables_change_round_the_ring_as_those_of_frr(tmp_path: Path) -> None:
    run = tcplab.run(ring({"up": "off"}, ospf={}), output=tmp_path / "out")
    # The kernel itself removes ways with the carrier, before zebra.
    by_zebra = pl.col("time") > 4 * SECOND + 2_000_000
    changed = run.routes.filter(by_zebra, pl.col("next_hops").is_not_null())
    first = dict(changed.group_by("node").agg(pl.col("time").min()).iter_rows())
    assert set(first) == set(FRR)
    for node, ms in FRR.items():
        assert (first[node] - 4 * SECOND) / 1e6 == pytest.approx(ms, rel=0.1), node


def test_without_a_carrier_that_is_lost_the_timers_count(tmp_path: Path) -> None:
    tuned = felt(
        ring({"loss": "100 %"}, ospf={"hello_interval": "1 s", "dead_interval": "3 s"}), tmp_path / "t"
    )
    bfd = felt(ring({"loss": "100 %"}, ospf={"bfd": "on"}), tmp_path / "b")
    assert 2 * SECOND <= tuned["probe"].outage <= 3.2 * SECOND
    assert 0.6 * SECOND <= bfd["probe"].outage <= 1.1 * SECOND
    assert tuned["bulk"].rtos is not None
    assert tuned["bulk"].rtos >= 2
    detected = tuned["probe"].detected
    assert detected is not None
    assert detected <= tuned["probe"].outage


def test_the_table_of_failures_and_the_figure_show_it(tmp_path: Path) -> None:
    run = tcplab.run(ring({"up": "off"}, ospf={}), output=tmp_path / "out")
    grid = outage_grid(summary(run))
    headings = [heading.label for heading in grid.headings]
    assert headings[-2:] == ["Path before", "after"]
    assert {"Detected", "Control plane", "Data plane", "FIB", "RTOs"} <= set(headings)
    panels = {panel.title: panel for panel in failures(run).panels}
    paths = {strip.key: [segment.label for segment in strip.segments] for strip in panels["Paths"].strips}
    assert paths["bulk"][0] == "r1 r2 r3 r4"
    assert paths["bulk"][-1] == "r1 r8 r7 r6 r5 r4"
    facts = run.manifest.facts["routing"]
    assert facts["converged"] > 0
    assert set(facts) == {"converged", "no_route", "ttl_exceeded"}


def test_a_static_route_by_a_host_is_refused_at_its_line() -> None:
    text = """\
tcplab: 1
name: wrong-way
network:
  nodes:
    - a
    - b
    - {name: r1, kind: router, routing: {static: [{to: b, via: r2}]}}
    - {name: r2, kind: router, routing: {static: [{to: b, via: b}, {to: a, via: b}]}}
  links: [{ends: [a, r1]}, {ends: [r1, r2], delay: 1 ms}, {ends: [r2, b]}]
flows: [{name: probe, kind: ping, from: a, to: b}]
"""
    with pytest.raises(tcplab.ScenarioErrors) as refused:
        tcplab.check(tcplab.scenario.load(text))
    (error,) = refused.value.errors
    assert error.message == "`b` is a host, which does not forward packets to `a`"
    assert (error.line, error.path) == (8, "network.nodes.r2.routing.static.1.via")
    assert error.suggestion == "r1"


def test_a_second_static_route_by_the_same_router_is_refused() -> None:
    text = """\
tcplab: 1
name: twice
network:
  nodes:
    - a
    - b
    - {name: r1, kind: router, routing: {static: [{to: b, via: r2}, {to: b, via: r2, distance: 150}]}}
    - {name: r2, kind: router, routing: {static: [{to: a, via: r1}]}}
  links: [{ends: [a, r1]}, {ends: [r1, r2], delay: 1 ms}, {ends: [r2, b]}]
flows: [{name: probe, kind: ping, from: a, to: b}]
"""
    with pytest.raises(tcplab.ScenarioErrors) as refused:
        tcplab.check(tcplab.scenario.load(text))
    (error,) = refused.value.errors
    assert error.message == "duplicate route to `b` via `r2`"
    assert (error.line, error.path) == (7, "network.nodes.r1.routing.static.1")


def test_what_does_not_converge_is_refused_before_the_run(tmp_path: Path) -> None:
    scenario = ring({"up": "off"}, ospf={})
    scenario["network"]["nodes"] = [
        {"name": "r3", "routing": {"static": []}},
        {"name": "r6", "routing": {"static": []}},
    ]
    scenario["wait"] = {"timeout": "30 s"}
    with pytest.raises(tcplab.UnsupportedError, match="does not reach h4 after 30 s"):
        tcplab.run(scenario, output=tmp_path / "out")
