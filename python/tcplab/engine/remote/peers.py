"""Hosts without tcplab that a flow can begin or end at, because of what they serve.

The agent at the flow's other end does all the work. What only the peer would know, such as the bytes that
it has received, is null.
"""

from __future__ import annotations

from typing import Protocol

from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow
from tcplab.testbed.agents import Json


class Peer(Protocol):
    """Services of a host."""

    port: int
    """Where, unless its URL says."""

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """Why a flow cannot begin (`sends`) or end there; none if it can."""

    def changes(self, *, sends: bool) -> Json:
        """Further keys of the command `flow` for the client's end of such a flow."""


class Discard:
    """Reads whatever comes (RFC 863)."""

    port = 9

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """It only reads."""
        if sends:
            return "discard sends nothing: let the flow end there"
        return None if kind_of(flow).bulk else "discard takes flows of kind tcp or udp"

    def changes(self, *, sends: bool) -> Json:
        """None."""
        return {}


class Chargen:
    """Sends to whoever connects (RFC 864)."""

    port = 19

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """It only sends, and as long as the connection stands."""
        if not sends:
            return "chargen only sends: let the flow begin there"
        if not kind_of(flow).bulk_tcp:
            return "chargen makes flows of kind tcp"
        return "chargen sends without end: leave out `bytes`" if flow.get("bytes") is not None else None

    def changes(self, *, sends: bool) -> Json:
        """The end that listens sends, until the connection is closed."""
        return {"reverse": True, "endless": True}


class Echo:
    """Sends back what comes (RFC 862)."""

    port = 7

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """Its answers are as long as what it was sent."""
        if sends:
            return "echo begins nothing: let the flow end there"
        if "response" not in flow:
            return "echo takes flows of kind request, with a response as long as the request"
        if flow["request"] != flow["response"]:
            return f"echo answers with as many bytes as it was sent: set `response: {flow['request']} B`"
        return None

    def changes(self, *, sends: bool) -> Json:
        """None."""
        return {}


class Iperf3:
    """An iperf3 server: the agent runs iperf3's client."""

    port = 5201

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """It tests in both directions, but the agent asks for UDP in one."""
        if not kind_of(flow).bulk:
            return "iperf3 takes flows of kind tcp or udp"
        if flow.get("pattern"):
            return "iperf3 sends without pauses: leave out `pattern`"
        if flow.get("spacing") == "exponential":
            return "iperf3 sends at equal intervals: leave out `spacing`"
        return (
            "iperf3 receives udp here: let the flow end there" if sends and kind_of(flow).datagrams else None
        )

    def changes(self, *, sends: bool) -> Json:
        """The program makes the traffic; with -R its server sends."""
        return {"generator": "iperf3", "reverse": sends}


class Http:
    """A web server: the agent loads one object from it, over and over."""

    port = 80

    def obstacle(self, flow: Flow, *, sends: bool) -> str | None:
        """It answers, with one object."""
        if sends:
            return "a web server begins nothing: let the flow end there"
        if "web" not in flow:
            return "a web server takes flows of kind http"
        if flow["web"]["ranges"] > 1:
            return "an object of a web server is loaded whole: leave out `ranges`"
        return None

    def changes(self, *, sends: bool) -> Json:
        """None."""
        return {}


PEERS: dict[str, Peer] = {
    "discard": Discard(),
    "chargen": Chargen(),
    "echo": Echo(),
    "iperf3": Iperf3(),
    "http": Http(),
}
"""By the scheme of the URL."""
