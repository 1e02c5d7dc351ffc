"""Traits of the kinds of traffic and nodes, from `crates/plan`: no room compares names of kinds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from tcplab import _core
from tcplab.plan.types import Flow


@dataclass(frozen=True)
class TrafficKind:
    """A kind of traffic."""

    name: str
    connected: bool = False
    """It has TCP connections with a congestion control."""
    both_ways: bool = False
    """Both of its nodes send payload, so its figures are those of both together."""
    mostly_back: bool = False
    """Most of its payload comes back, unless its `request` is larger than its `response`."""
    served: bool = False
    """A program serves it at the receiving node; otherwise that node's kernel does."""
    moves_payload: bool = False
    """It is there to move payload, at a goodput; otherwise to measure times."""
    bulk: bool = False
    """It sends in one direction, as much as it can or is asked to."""
    round_trips: bool = False
    """Its round-trip times are those of its messages."""

    @property
    def bulk_tcp(self) -> bool:
        """Bulk transfers over TCP."""
        return self.bulk and self.connected

    @property
    def datagrams(self) -> bool:
        """Datagrams in bulk, of which some may be lost."""
        return self.bulk and not self.connected


@cache
def _kinds() -> dict[str, TrafficKind]:
    return {one["name"]: TrafficKind(**one) for one in json.loads(_core.traffic_kinds())}


def traffic_kind(name: str) -> TrafficKind:
    """The kind of traffic of this name; one that tcplab does not know is taken to move payload."""
    return _kinds().get(name) or TrafficKind(name, served=True, moves_payload=True)


def kind_of(flow: Flow | None) -> TrafficKind:
    """The kind of traffic of a flow; None: one that the plan does not have."""
    return traffic_kind(flow["kind"] if flow is not None else "")


def traffic_kinds() -> tuple[TrafficKind, ...]:
    """All that there are."""
    return tuple(_kinds().values())


@dataclass(frozen=True)
class NodeKind:
    """A kind of node."""

    name: str
    ends_flows: bool
    """Flows begin and end there."""
    bridges: bool
    """It joins its links to one subnet, and has no addresses there."""
    forwards: bool
    """It forwards packets between its subnets."""


@cache
def _node_kinds() -> dict[str, NodeKind]:
    return {one["name"]: NodeKind(**one) for one in json.loads(_core.node_kinds())}


def node_kind(name: str) -> NodeKind:
    """The kind of node of this name; KeyError where there is none."""
    return _node_kinds()[name]
