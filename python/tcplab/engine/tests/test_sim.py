"""Plans that the simulator refuses, and how to fix them."""

from __future__ import annotations

from typing import Any

from tcplab.engine import load
from tcplab.scenario import expand, from_data


def refused(topology: dict[str, Any]) -> list[tuple[str, str]]:
    """Where a TCP flow between two hosts of the topology is refused, and how to fix it."""
    flow = {"name": "t", "kind": "tcp", "from": "h1", "to": "h16", "duration": "1 s"}
    network = {"topology": {"kind": "fat-tree", "k": 4, **topology}}
    plan = expand(from_data({"tcplab": 1, "name": "tree", "network": network, "flows": [flow]}))
    return [(problem.where, problem.fix) for problem in load("sim").check(plan) if problem.fatal]


def test_a_topology_of_cables_is_refused_with_the_setting_that_it_needs() -> None:
    [(where, fix)] = refused({})
    assert where == "flows.t"
    assert "`edge: {rate: 1 Gbit/s, delay: 10 us}`" in fix
    assert not refused({"edge": {"rate": "1 Gbit/s", "delay": "10 us"}})


def test_a_flow_without_a_route_is_refused_with_a_hint_at_its_routing() -> None:
    [found] = refused({"edge": {"delay": "1 ms"}, "core": {"up": "off"}, "routing": {"ospf": {}}})
    assert found == ("flows.t", "check what its routers announce, or set `wait: {timeout: ...}`")
