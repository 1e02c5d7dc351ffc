"""What each network namespace of a plan holds: interfaces, addresses, routes, neighbours, settings.

Nothing is done here; `lab` builds what this says. Interfaces are called eth0, eth1, ... in the order of the
plan's links. MACs follow from addresses (10.1.2.3 is 02:00:0a:01:02:03); a switch's port, which has no
address, is called 02:01 and the link's number.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any

# A direction that does nothing to packets: a cable can carry it.
_IDLE = ("rate", "jitter", "reorder", "loss", "corrupt", "duplicate", "trace", "changes", "delay")
BRIDGE = "br0"


@dataclass(frozen=True)
class Interface:
    """One end of a link."""

    node: str
    name: str
    link: str
    mac: str
    mtu: int
    address: str | None
    """With prefix length; none: a switch's port."""
    emulated: bool
    """A TAP device of the emulator's; else one end of a veth pair."""
    offloads: dict[str, bool] = field(default_factory=dict)
    """Those the plan sets."""

    @property
    def ip(self) -> str | None:
        """The address without its prefix length."""
        return self.address.split("/")[0] if self.address else None


@dataclass(frozen=True)
class Wire:
    """A link with its two interfaces; forward is from the first to the second."""

    name: str
    ends: tuple[Interface, Interface]
    plan: dict[str, Any]

    @property
    def emulated(self) -> bool:
        """The emulator carries its packets."""
        return self.ends[0].emulated


@dataclass(frozen=True)
class Route:
    """The way to one address."""

    to: str
    gateway: str | None
    interface: str
    source: str | None


@dataclass(frozen=True)
class Namespace:
    """What one node's namespace holds."""

    node: str
    kind: str
    interfaces: tuple[Interface, ...]
    routes: tuple[Route, ...]
    neighbours: tuple[tuple[str, str, str], ...]
    """Address, MAC and interface."""
    forwarding: tuple[tuple[str, str], ...]
    """Of a switch: MAC and port."""
    sysctls: dict[str, str]
    initcwnd: int | None = None
    rto_min: int | None = None
    """ms"""
    quickack: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data, for the lab."""
        return asdict(self)


@dataclass(frozen=True)
class Layout:
    """The whole network."""

    namespaces: tuple[Namespace, ...]
    wires: tuple[Wire, ...]
    routes: dict[str, dict[str, str]]
    """The plan's: node and destination to the link's name."""

    @property
    def emulated(self) -> list[Wire]:
        """The links that need the emulator."""
        return [wire for wire in self.wires if wire.emulated]

    def arrival(self, source: str, destination: str) -> Interface:
        """The interface of `destination` at which packets from `source` arrive; KeyError without a route."""
        wires = {wire.name: wire for wire in self.wires}
        node = source
        while True:
            wire = wires[self.routes[node][destination]]
            interface = _far(wire, node)
            if interface.node == destination:
                return interface
            node = interface.node


def lay_out(plan: dict[str, Any]) -> Layout:
    """The network of a plan."""
    nodes = {node["name"]: node for node in plan["nodes"]}
    everything = bool(plan["sample"].get("packets")) or (plan.get("capture") or {}).get("at") == "wire"
    wires = _wires(plan, nodes, everything=everything)
    namespaces = tuple(_namespace(node, nodes, wires) for node in plan["nodes"])
    return Layout(namespaces, wires, {name: node["routes"] for name, node in nodes.items()})


def is_cable(link: dict[str, Any]) -> bool:
    """Whether neither direction of a link does anything to packets."""
    directions = (link["forward"], link["backward"])
    return all(d["up"] and not any(d[key] for key in _IDLE) for d in directions)


def _wires(plan: dict[str, Any], nodes: dict[str, Any], *, everything: bool) -> tuple[Wire, ...]:
    count = dict.fromkeys(nodes, 0)
    wires = []
    for number, link in enumerate(plan["links"]):
        ends = []
        emulated = everything or not is_cable(link)
        for side, node in enumerate(link["ends"]):
            address = link["addresses"][side]
            ends.append(
                Interface(
                    node=node,
                    name=f"eth{count[node]}",
                    link=link["name"],
                    mac=_mac(address, number, side),
                    mtu=link["mtu"],
                    address=address,
                    emulated=emulated,
                    offloads=dict(nodes[node].get("offloads") or {}),
                )
            )
            count[node] += 1
        wires.append(Wire(link["name"], (ends[0], ends[1]), link))
    return tuple(wires)


def _mac(address: str | None, link: int, side: int) -> str:
    if address is None:
        return f"02:01:{link >> 16 & 255:02x}:{link >> 8 & 255:02x}:{link & 255:02x}:{side:02x}"
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("/")[0].split("."))


def _far(wire: Wire, node: str) -> Interface:
    first, second = wire.ends
    return second if first.node == node else first


def _near(wire: Wire, node: str) -> Interface:
    first, second = wire.ends
    return first if first.node == node else second


def _namespace(node: dict[str, Any], nodes: dict[str, Any], wires: tuple[Wire, ...]) -> Namespace:
    name, kind, tcp = node["name"], node["kind"], node["tcp"]
    interfaces = tuple(end for wire in wires for end in wire.ends if end.node == name)
    routes, neighbours = ([], {}) if kind == "switch" else _routes(node, nodes, wires)
    return Namespace(
        node=name,
        kind=kind,
        interfaces=interfaces,
        routes=tuple(routes),
        neighbours=tuple(neighbours),
        forwarding=tuple(_forwarding(name, nodes, wires)) if kind == "switch" else (),
        sysctls=_sysctls(node, interfaces),
        # What is as Linux has it anyway is not set: a route without metrics is as an ordinary host has it.
        initcwnd=tcp["initial_window"] if tcp["initial_window"] != 10 else None,
        rto_min=max(1, tcp["rto_min"] // 1_000_000) if tcp["rto_min"] != 200_000_000 else None,
        quickack=not tcp["delayed_ack"],
    )


def _routes(
    node: dict[str, Any], nodes: dict[str, Any], wires: tuple[Wire, ...]
) -> tuple[list[Route], dict[tuple[str, str, str], None]]:
    by_name = {wire.name: wire for wire in wires}
    addresses: dict[str, list[str]] = {}
    for wire in wires:
        for end in wire.ends:
            if end.ip:
                addresses.setdefault(end.node, []).append(end.ip)
    routes: list[Route] = []
    neighbours: dict[tuple[str, str, str], None] = {}
    for destination, link in node["routes"].items():
        out = _near(by_name[link], node["name"])
        hop = _far(by_name[link], node["name"])
        while nodes[hop.node]["kind"] == "switch":
            hop = _far(by_name[nodes[hop.node]["routes"][destination]], hop.node)
        if out.ip is None or hop.ip is None:
            continue
        neighbours[hop.ip, hop.mac, out.name] = None
        for address in addresses.get(destination, []):
            gateway = None if address == hop.ip else hop.ip
            routes.append(Route(address, gateway, out.name, out.ip))
    return routes, neighbours


def _forwarding(switch: str, nodes: dict[str, Any], wires: tuple[Wire, ...]) -> list[tuple[str, str]]:
    """Behind which port of a switch each interface of its subnet is: the way with the fewest links."""
    at: dict[str, list[Wire]] = {}
    for wire in wires:
        for end in wire.ends:
            at.setdefault(end.node, []).append(wire)
    found: list[tuple[str, str]] = []
    # Breadth first; each switch is entered once, with the port of ours by which it is reached.
    seen = {switch}
    waiting: deque[tuple[str, str | None]] = deque([(switch, None)])
    while waiting:
        here, port = waiting.popleft()
        for wire in at.get(here, ()):
            out = port or _near(wire, here).name
            far = _far(wire, here)
            if nodes[far.node]["kind"] != "switch":
                found.append((far.mac, out))
            elif far.node not in seen:
                seen.add(far.node)
                waiting.append((far.node, out))
    return found


def _sysctls(node: dict[str, Any], interfaces: tuple[Interface, ...]) -> dict[str, str]:
    tcp = node["tcp"]
    found = {
        # No packet but the scenario's own: no neighbour discovery, no multicast reports.
        "net.ipv6.conf.all.disable_ipv6": "1",
        "net.ipv6.conf.default.disable_ipv6": "1",
    }
    # Ways there and back may differ; the greater of both settings counts (ip-sysctl, rp_filter).
    for where in ("all", "default", *(interface.name for interface in interfaces)):
        found[f"net.ipv4.conf.{where}.rp_filter"] = "0"
    if node["kind"] == "router":
        found["net.ipv4.ip_forward"] = "1"
        for where in ("all", "default", *(interface.name for interface in interfaces)):
            found[f"net.ipv4.conf.{where}.send_redirects"] = "0"
    if node["kind"] == "host":
        found |= {
            "net.ipv4.tcp_ecn": {"off": "0", "on": "1", "passive": "2"}[tcp["ecn"]],
            "net.ipv4.tcp_sack": str(int(tcp["sack"])),
            "net.ipv4.tcp_timestamps": str(int(tcp["timestamps"])),
            "net.ipv4.tcp_slow_start_after_idle": str(int(tcp["slow_start_after_idle"])),
            "net.ipv4.tcp_wmem": f"4096 16384 {tcp['send_buffer_max']}",
            "net.ipv4.tcp_rmem": f"4096 {tcp['receive_buffer_initial']} {tcp['receive_buffer_max']}",
            # A connection must not begin with what an earlier one has learnt of the path.
            "net.ipv4.tcp_no_metrics_save": "1",
        }
    return found | {str(key): str(value) for key, value in node.get("sysctls", {}).items()}
