"""The path between two hosts before anything loads it, measured by their agents."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from tcplab.engine.remote.endpoints import FlowEndpoints
from tcplab.engine.remote.place import Place
from tcplab.testbed.agents import Agents, Json
from tcplab.testbed.errors import TestbedError


def measure(
    agents: Agents,
    flows: Iterable[FlowEndpoints],
    addresses: Mapping[str, str],
    own: Mapping[str, str | None],
    places: Mapping[str, Place],
) -> list[Json]:
    """The paths between hosts with agents that flows run between, from who connects; raises TestbedError.

    `addresses` are those at which the hosts reach each other, `own` those that they have themselves. Of
    each path: `from`, `to`, `by` (the protocol), `rtt` (ns), `mtu` (B), `hops`, `routers` on the way and
    `bandwidth` (bit/s). `routers` are addresses, null where one said nothing. What is not known is null.
    """
    found = []
    pairs = dict.fromkeys((flow.client, flow.server or flow.other) for flow in flows)
    for start, end in (pair for pair in pairs if agents.alive.issuperset(pair)):
        token = secrets.randbits(63)
        address = addresses[end]
        listen = address if address == own[end] else ("::" if ":" in address else "0.0.0.0")  # noqa: S104
        # A firewall may let these through alone; flows have taken theirs already.
        ports = list(places[end].ports or ())
        [at] = agents.ask([(end, {"do": "reflect", "address": listen, "ports": ports, "token": token})])
        asked = {"do": "path", "address": address, "port": at["port"], "token": token}
        [path] = agents.ask([(start, asked)])
        kept = {key: value for key, value in path.items() if key not in ("event", "id")}
        found.append({"from": start, "to": end, **kept})
    return found


def compare(path: Json, expected: Json) -> None:
    """Refuse a path that is not the one expected; raises TestbedError."""
    name = f"the path from {path['from']} to {path['to']}"
    hint = "check the route, or change network.expect_path"
    wanted = expected.get("rtt")
    if wanted is not None:
        if path["rtt"] is None:
            raise TestbedError(
                f"{name} answers no UDP, TCP or ICMP, so that its RTT is unknown",
                "let one of them through, or leave out expect_path",
            )
        value, share = wanted["value"], wanted["tolerance"] / 1e9
        if abs(path["rtt"] - value) > value * share:
            raise TestbedError(
                f"{name} has an RTT of {path['rtt'] / 1e6:.3g} ms,"
                f" not {value / 1e6:g} ms ± {share * 100:g} %",
                hint,
            )
    minimum = expected.get("mtu")
    if minimum is not None and (path["mtu"] is None or path["mtu"] < minimum):
        raise TestbedError(f"{name} carries packets of {path['mtu']} B, not of {minimum} B", hint)
