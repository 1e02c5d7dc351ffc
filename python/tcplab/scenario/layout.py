"""The network laid out: routes, the way of each flow, delivery traces, bandwidth-delay products."""

from __future__ import annotations

from pathlib import Path as File

from . import trace
from .model import Scenario
from .routes import Hop, Routes
from .topology import DirectionSpec, LinkSpec, NodeSpec, build

Way = tuple[list[Hop], list[Hop]]
"""The links from a flow's sender to its receiver, and back."""


class Layout:
    """A scenario's network and what follows from it.

    Built from any scenario that reads well: a flow without a route has no way, a trace that cannot be
    read has an error.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.topology = build(scenario)
        self.routes = Routes(self.topology)
        self.node: dict[str, NodeSpec] = {node.name: node for node in self.topology.nodes}
        self.ends = [(sender or "", receiver or "") for sender, receiver in self.topology.ends]
        self.ways = [self._way(sender, receiver) for sender, receiver in self.ends]
        self.traces: dict[str, list[int]] = {}
        self.trace_errors: dict[str, trace.TraceError] = {}
        self._read_traces()
        self._crossing: dict[str, list[int]] = {link.name: [] for link in self.topology.links}
        for index, way in enumerate(self.ways):
            for name in {hop.link.name for hops in way or () for hop in hops}:
                self._crossing[name].append(index)

    def _way(self, sender: str, receiver: str) -> Way | None:
        there = self.routes.route(sender, receiver) if sender != receiver else None
        back = self.routes.route(receiver, sender) if there is not None else None
        return None if there is None or back is None else (there, back)

    def _read_traces(self) -> None:
        names = {spec.get("trace") for _, spec in self.directions()} - {None}
        for name in sorted(names):
            try:
                self.traces[name] = trace.read(self.resolve(name))
            except trace.TraceError as error:
                self.trace_errors[name] = error

    def resolve(self, name: str) -> File:
        """A file named in the scenario, relative to it."""
        return self.scenario.base / name

    def directions(self) -> list[tuple[LinkSpec, DirectionSpec]]:
        """Every direction of every link."""
        return [(link, spec) for link in self.topology.links for spec in (link.forward, link.backward)]

    def opportunities(self, spec: DirectionSpec) -> list[int] | None:
        """The delivery trace of a direction, if it has one that could be read."""
        return self.traces.get(spec.get("trace", ""))

    def rate(self, spec: DirectionSpec, time: int = 0) -> int | None:
        """The rate of a direction at a time, in bit/s; a trace's mean; none if unlimited."""
        opportunities = self.opportunities(spec)
        if opportunities is not None:
            return trace.mean_rate(opportunities)
        rate: int | None = spec.at("rate", time)
        return rate

    def base_rtt(self, flow: int, time: int = 0) -> int:
        """The propagation delays of a flow's way there and back, in ns."""
        way = self.ways[flow]
        return sum(hop.link.towards(hop.to).at("delay", time, 0) for hops in way or () for hop in hops)

    def bdp(self, link: LinkSpec, spec: DirectionSpec, time: int = 0) -> int | None:
        """Bandwidth-delay product of a direction in bytes; none where the rate is unlimited.

        The delay is the longest base RTT of the flows that cross the link, and at least twice the
        direction's own delay.
        """
        rate = self.rate(spec, time)
        if rate is None:
            return None
        crossing = [self.base_rtt(flow, time) for flow in self._crossing[link.name]]
        own: int = 2 * spec.at("delay", time, 0)
        return rate * max([own, *crossing]) // 8_000_000_000

    def flow_bdp(self, flow: int) -> int | None:
        """Least rate on a flow's way times its base RTT, in bytes; none where no rate is limited."""
        way = self.ways[flow]
        rates = [self.rate(hop.link.towards(hop.to)) for hop in (way[0] if way else ())]
        limited = [rate for rate in rates if rate is not None]
        return min(limited) * self.base_rtt(flow) // 8_000_000_000 if limited else None

    def node_bdps(self) -> dict[str, int]:
        """Per node, the largest BDP of the flows that start or end there."""
        largest: dict[str, int] = {}
        for flow, ends in enumerate(self.ends):
            bdp = self.flow_bdp(flow)
            for end in ends if bdp is not None else ():
                largest[end] = max(largest.get(end, 0), bdp or 0)
        return largest

    def node_mtu(self, node: str) -> int:
        """The least MTU of a node's links."""
        return min((link.mtu for link in self.routes.links.get(node, ())), default=1500)

    def path_mtu(self, flow: int) -> int:
        """The least MTU on a flow's way there and back."""
        way = self.ways[flow]
        return min((hop.link.mtu for hops in way or () for hop in hops), default=1500)
