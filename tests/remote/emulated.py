"""Hosts with sshd on the ends of emulated links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.plan.types import Plan
from tcplab.scenario import expand, from_data
from tcplab.testbed import held

from .hosts import Host, Hosts


@dataclass(frozen=True)
class Reached:
    """The hosts, and how ssh reaches them: over links of their own, from `us`."""

    hosts: Hosts
    places: dict[str, str]
    """By node, with the address at which the other end of its emulated link reaches it."""


@contextmanager
def reached(folder: Path, scenario: dict[str, Any]) -> Iterator[Reached]:
    """A network whose nodes are hosts, each with one link to another."""
    nodes, links = scenario["network"]["nodes"], scenario["network"]["links"]
    control = [{"ends": ["us", node], "rate": "unlimited"} for node in nodes]
    plan = expand(from_data({**scenario, "network": {"nodes": ["us", *nodes], "links": [*links, *control]}}))
    lab = held.up(plan, f"{folder.name}-{os.getpid()}", scenario["name"])
    try:
        others = {node: Host(node, _address(plan, node, "us"), folder / node) for node in nodes}
        made = Hosts(folder, **others)
        for node, host in made.all.items():
            host.within = lab.node(node)
        try:
            made.up()
            inner = {
                node: _address(plan, node, other)
                for link in links
                for node, other in (link["ends"], link["ends"][::-1])
            }
            yield Reached(
                made, {node: f"ssh://{others[node].address}?address={inner[node]}" for node in nodes}
            )
        finally:
            made.down()
    finally:
        held.down(lab.name)


def _address(plan: Plan, node: str, other: str) -> str:
    """The address of a node on its link to another."""
    [link] = [one for one in plan["links"] if set(one["ends"]) == {node, other}]
    return str(link["addresses"][link["ends"].index(node)]).partition("/")[0]
