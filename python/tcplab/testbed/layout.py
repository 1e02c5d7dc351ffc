"""Contents of each network namespace of a plan: interfaces, addresses, routes, neighbours, settings.

`crates/lab` works it out and builds it; here it is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tcplab import _core
from tcplab.plan.types import Link, Plan

# A TAP device's frame, with its Ethernet header, is at most 64 KiB.
LARGEST_MTU = 65_521
"""Of an emulated link."""


@dataclass(frozen=True)
class Interface:
    """One end of a link."""

    node: str
    name: str
    link: str
    mac: str
    mtu: int
    address: str | None
    """IPv4, with prefix length; none: a switch's port."""
    address6: str | None
    """IPv6 likewise."""
    emulated: bool
    """A TAP device of the emulator's; else one end of a veth pair."""
    silent: bool
    """It resolves no addresses and takes no part in multicast: its neighbours are named."""
    qdiscs: list[list[str]]
    """Commands of tc that make the direction it sends into, where netem does, or that limit its own rate."""
    limited: bool
    """It has a rate and a queue of its own, before those of the link."""
    singly: bool
    """Packets are handed to it one by one."""
    offloads: dict[str, bool]

    def ip(self, version: int) -> str | None:
        """Its address of a version of IP, without the prefix length."""
        address = self.address6 if version == 6 else self.address
        return address.split("/")[0] if address else None


@dataclass(frozen=True)
class Wire:
    """A link with its two interfaces; forward is from the first to the second."""

    name: str
    ends: tuple[Interface, Interface]
    plan: Link

    @property
    def emulated(self) -> bool:
        """The emulator carries its packets."""
        return self.ends[0].emulated

    @property
    def routed(self) -> bool:
        """Routing protocols run over it."""
        return not self.ends[0].silent


@dataclass(frozen=True)
class Route:
    """The way to a network, or to one address."""

    to: str
    """With prefix length."""
    gateway: str | None
    interface: str
    source: str | None
    others: list[list[str]]
    """More gateways of equal cost with their interfaces, between which flows are shared."""


@dataclass(frozen=True)
class Namespace:
    """Contents of one node's namespace."""

    node: str
    kind: str
    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    neighbours: list[list[str]]
    """Address, MAC and interface."""
    forwarding: list[list[str]]
    """Of a switch: MAC and port."""
    sysctls: dict[str, str]
    initcwnd: int | None
    rto_min: int | None
    """ms"""
    quickack: bool


@dataclass(frozen=True)
class Layout:
    """The whole network."""

    plan: Plan
    emulate_all: bool
    """Links without settings can change, too."""
    namespaces: tuple[Namespace, ...]
    wires: tuple[Wire, ...]

    @property
    def emulated(self) -> list[Wire]:
        """The links that need the emulator."""
        return [wire for wire in self.wires if wire.emulated]

    def build_command(self) -> dict[str, Any]:
        """The command that makes a lab build the network."""
        return {"do": "build", "plan": self.plan, "emulate_all": self.emulate_all}

    def interfaces(self, node: str) -> tuple[Interface, ...]:
        """Those of a node."""
        return next(one.interfaces for one in self.namespaces if one.node == node)

    def arrival(self, source: str, destination: str) -> Interface:
        """The interface of `destination` at which packets from `source` arrive; KeyError without a route."""
        wires = {wire.name: wire for wire in self.wires}
        routes = {node["name"]: node["routes"] for node in self.plan["nodes"]}
        node = source
        while True:
            first, second = wires[routes[node][destination]].ends
            interface = second if first.node == node else first
            if interface.node == destination:
                return interface
            node = interface.node


def lay_out(plan: Plan, *, emulate_all: bool = False) -> Layout:
    """The network of a plan. With `emulate_all` links without settings can change, too."""
    laid = json.loads(_core.lay_out(json.dumps(plan), emulate_all))
    links = {link["name"]: link for link in plan["links"]}
    namespaces = (
        Namespace(
            **{
                **one,
                "interfaces": tuple(Interface(**end) for end in one["interfaces"]),
                "routes": tuple(Route(**route) for route in one["routes"]),
            }
        )
        for one in laid["namespaces"]
    )
    wires = (
        Wire(one["name"], (Interface(**one["ends"][0]), Interface(**one["ends"][1])), links[one["name"]])
        for one in laid["wires"]
    )
    return Layout(plan, emulate_all, tuple(namespaces), tuple(wires))


def has_routing(plan: Plan) -> bool:
    """Whether a router of a plan runs routing protocols."""
    return any(node.get("routing") for node in plan["nodes"])
