"""Whether the flows of a run reached the other end, or something on the path kept them from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tcplab.engine.remote.endpoints import FlowEndpoints
from tcplab.engine.remote.place import Place
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow
from tcplab.testbed.agents import Event, failure
from tcplab.testbed.errors import TestbedError

# A flow that the run's end leaves less than this may not have come to its first byte, ns.
_TIME_TO_BEGIN = 1_000_000_000


class Reached:
    """Listens to the agents of a run, and says afterwards which path let nothing through."""

    def __init__(self, flows: Iterable[Flow], ends: Mapping[str, FlowEndpoints], duration: int) -> None:
        self._flows = [flow for flow in flows if duration - flow["start"] >= _TIME_TO_BEGIN]
        self._ends = ends
        self._counted: dict[tuple[str, str], tuple[int, int]] = {}
        self._errors: dict[str, TestbedError] = {}

    def note(self, event: Event) -> None:
        """Take what an agent has said."""
        if event.name == "progress":
            for flow, counted in event.content["flows"].items():
                self._counted[flow, event.agent] = (int(counted["received"]), int(counted["sent"]))
        elif event.name == "error" and "flow" in event.content:
            self._errors.setdefault(str(event.content["flow"]), failure(event))

    def was_reported(self, message: str) -> bool:
        """Whether an agent has reported this message of a flow."""
        return message in map(str, self._errors.values())

    def blocked(
        self, addresses: Mapping[str, str], places: Mapping[str, Place], ports: Mapping[str, list[int]]
    ) -> TestbedError | None:
        """The first flow of which nothing arrived; none if all did."""
        for flow in self._flows:
            ends = self._ends[flow["name"]]
            if ends.server is None or not self._nothing_came(flow, places):
                continue
            error = self._errors.get(flow["name"])
            if ends.generator == "iperf3" and error is not None:
                # It knows why: its server may be there and make another test.
                hint = _hint(ends.server, places[ends.server], "TCP", flow)
                return TestbedError(f"{flow['name']}: {error.message}", hint)
            used = sorted(set(ports.get(flow["name"], [])))
            protocol = "UDP" if kind_of(flow).datagrams else "TCP"
            span = f"{used[0]} to {used[-1]}" if len(used) > 1 else f"{used[0]}" if used else "unknown"
            return TestbedError(
                f"{flow['name']}: nothing passed between {ends.client} and {ends.server},"
                f" {addresses[ends.server]}, {protocol} port {span}",
                _hint(ends.server, places[ends.server], protocol, flow),
            )
        return None

    def _nothing_came(self, flow: Flow, places: Mapping[str, Place]) -> bool:
        name = flow["name"]
        counts = [counted for (of, _), counted in self._counted.items() if of == name]
        received, sent = (sum(count[which] for count in counts) for which in (0, 1))
        if places[flow["to"]].peer is not None and not kind_of(flow).both_ways:
            # A peer does not report how much it received.
            return name in self._errors and sent == 0
        return received == 0 and (name in self._errors or sent > 0)


def _hint(server: str, place: Place, protocol: str, flow: Flow) -> str:
    if place.peer is not None:
        return (
            f"check that {place.scheme} is served there: nc -zv {place.host} {place.port or place.peer.port}"
        )
    if place.ports is not None:
        return f"let {protocol} to ports {place.ports[0]}-{place.ports[-1]} through to {server}"
    if place.scheme == "tcplab":
        return f"let {protocol} to its ports through to {server}: those of `tcplab serve --ports`"
    turn = f", or let {server} connect: ?initiate=on" if kind_of(flow).bulk_tcp else ""
    return f"give {server} a range of ports, ?ports=5300-5399, and let {protocol} to it through{turn}"
