"""Which host of a flow connects, and where the other listens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from tcplab.engine.remote.place import Place
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow
from tcplab.testbed.errors import TestbedError


@dataclass(frozen=True)
class FlowEndpoints:
    """The hosts of one flow."""

    client: str
    """It connects, or sends the first datagram."""
    other: str
    """The one at the other end."""
    listens: bool = True
    """Whether anything waits for the client there: not for pings."""
    reverse: bool = False
    """The one that listens sends."""
    endless: bool = False
    """It goes on until the client closes the connection."""
    generator: str | None = None
    """The program that makes the traffic; none: the flow's."""

    @property
    def server(self) -> str | None:
        """Who listens."""
        return self.other if self.listens else None

    def by_role(self) -> Iterator[tuple[str, str]]:
        """Roles, as the agents' protocol calls them, and who has them."""
        yield "client", self.client
        if self.listens:
            yield "server", self.other


def ends_of(flow: Flow, places: Mapping[str, Place]) -> FlowEndpoints:
    """Who connects: a flow's source, unless only its destination can."""
    source, destination = flow["from"], flow["to"]
    if not kind_of(flow).served:
        return FlowEndpoints(source, destination, listens=False)
    for host, client, sends in ((destination, source, False), (source, destination, True)):
        peer = places[host].peer
        if peer is not None:
            return FlowEndpoints(client, host, **peer.changes(sends=sends))
    if turned(flow, places):
        return FlowEndpoints(destination, source, reverse=True)
    return FlowEndpoints(source, destination)


def turned(flow: Flow, places: Mapping[str, Place]) -> bool:
    """Whether a flow's destination has to connect."""
    return places[flow["to"]].initiate and places[flow["from"]].peer is None


def ports_of(
    flows: Iterable[Flow], ends: Mapping[str, FlowEndpoints], places: Mapping[str, Place]
) -> dict[str, list[int]]:
    """Ports of flows by stream, where not the kernel chooses them; raises TestbedError."""
    left = {name: iter(place.ports) for name, place in places.items() if place.ports is not None}
    found = {}
    for flow in flows:
        server, streams = ends[flow["name"]].server, flow["streams"]
        if server is None:
            continue
        place = places[server]
        one_port = flow.get("generator", "native") == "iperf3"
        if place.peer is not None:
            found[flow["name"]] = [place.port or place.peer.port] * streams
        elif server in left:
            needed = 1 if one_port else streams
            taken = list(islice(left[server], needed))
            if len(taken) < needed:
                assert place.ports is not None
                raise TestbedError(
                    f"{server} has {len(place.ports)} ports, {place.ports[0]} to {place.ports[-1]}:"
                    " its flows need one for each stream",
                    "give it more: ?ports=FIRST-LAST",
                )
            found[flow["name"]] = taken * streams if one_port else taken
    return found
