"""What each network namespace of a plan holds: interfaces, addresses, routes, neighbours, settings.

Nothing is done here; `lab` builds what this says. Interfaces are called eth0, eth1, ... in the order of the
plan's links. MACs follow from IPv4 addresses (10.1.2.3 is 02:00:0a:01:02:03); a switch's port, which has no
address, is called 02:01 and the link's number.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from zlib import crc32

from tcplab.testbed import netem

# What a direction does to packets; a cable can carry one that does nothing.
_WORK = ["rate", "trace", "policer", "delay", "jitter", "reorder", "loss", "corrupt", "duplicate", "changes"]
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
    """IPv4, with prefix length; none: a switch's port."""
    address6: str | None
    """IPv6 likewise."""
    emulated: bool
    """A TAP device of the emulator's; else one end of a veth pair."""
    silent: bool = True
    """It resolves no addresses and takes no part in multicast: its neighbours are named."""
    qdiscs: tuple[tuple[str, ...], ...] = ()
    """Commands of tc that make the direction it sends into, where netem does, or that limit its own rate."""
    limited: bool = False
    """It has a rate and a queue of its own, before those of the link."""
    singly: bool = False
    """Packets are handed to it one by one: netem would take a burst for one packet."""
    offloads: dict[str, bool] = field(default_factory=dict)
    """Those the plan sets."""

    def ip(self, version: int) -> str | None:
        """Its address of a version of IP, without the prefix length."""
        address = self.address6 if version == 6 else self.address
        return address.split("/")[0] if address else None


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
    others: tuple[tuple[str, str], ...] = ()
    """More gateways of equal cost with their interfaces, between which flows are shared."""


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


def lay_out(plan: dict[str, Any], *, emulate_all: bool = False) -> Layout:
    """The network of a plan. With `emulate_all` links without settings can change, too."""
    nodes = {node["name"]: node for node in plan["nodes"]}
    on_the_wire = (plan.get("capture") or {}).get("at") == "wire"
    everything = emulate_all or on_the_wire or bool(plan["sample"].get("packets"))
    with_netem = plan["emulator"] == "netem"
    wires = _wires(plan, nodes, everything=everything, with_netem=with_netem)
    namespaces = tuple(_namespace(node, nodes, wires) for node in plan["nodes"])
    return Layout(namespaces, wires, {name: node["routes"] for name, node in nodes.items()})


def has_routing(plan: dict[str, Any]) -> bool:
    """Whether a router of a plan runs routing protocols."""
    return any(node.get("routing") for node in plan["nodes"])


def is_cable(link: dict[str, Any]) -> bool:
    """Whether neither direction of a link does anything to packets."""
    directions = (link["forward"], link["backward"])
    return all(d["up"] and not any(d.get(key) for key in _WORK) for d in directions)


def _wires(
    plan: dict[str, Any], nodes: dict[str, Any], *, everything: bool, with_netem: bool
) -> tuple[Wire, ...]:
    count = dict.fromkeys(nodes, 0)
    routed = _routed(plan, nodes)
    wires = []
    for number, link in enumerate(plan["links"]):
        ends = []
        emulated = not with_netem and (everything or not is_cable(link))
        for side, node in enumerate(link["ends"]):
            direction = link["backward" if side else "forward"]
            name = f"eth{count[node]}"
            qdiscs = netem.commands(name, link["mtu"], direction) if with_netem else []
            if nic := nodes[node].get("nic"):
                qdiscs = _sending(name, nic, link["mtu"])
            whole = dict.fromkeys(("tso", "gso", "gro"), False) if with_netem else nodes[node].get("offloads")
            address = link["addresses"][side]
            ends.append(
                Interface(
                    node=node,
                    name=name,
                    link=link["name"],
                    mac=_mac(address, number, side),
                    mtu=link["mtu"],
                    address=address,
                    address6=link["addresses6"][side],
                    emulated=emulated,
                    silent=link["name"] not in routed,
                    qdiscs=tuple(map(tuple, qdiscs)),
                    limited=bool(nodes[node].get("nic")),
                    # Of every link: a burst that one of them lets pass is met by the next. And where both
                    # offloads are off, which for TCP alone changes nothing (`netlink.one_by_one`).
                    singly=with_netem or bool(whole and not (whole["tso"] or whole["gso"])),
                    offloads=dict(whole or {}),
                )
            )
            count[node] += 1
        wires.append(Wire(link["name"], (ends[0], ends[1]), link))
    return tuple(wires)


def _sending(interface: str, nic: dict[str, int], mtu: int) -> list[list[str]]:
    """Commands of tc that have an interface send at a rate, with a queue in packets.

    tbf's bucket holds a frame, or what passes within a millisecond: it cuts longer bursts into frames.
    """
    burst = max(mtu + 14, nic["rate"] // 8 // 1000)
    rate = ["rate", f"{nic['rate']}bit", "burst", str(burst)]
    shaper = ["tbf", *rate, "limit", str(nic["queue"] * (mtu + 14))]
    return [
        ["qdisc", "add", "dev", interface, "root", "handle", "1:", *shaper],
        ["qdisc", "add", "dev", interface, "parent", "1:1", "pfifo", "limit", str(nic["queue"])],
    ]


def _routed(plan: dict[str, Any], nodes: dict[str, Any]) -> set[str]:
    """The links in the subnets of routers with protocols, which find their neighbours by multicast and ARP.

    Links that switches join are one subnet.
    """
    speaks = {name for name, node in nodes.items() if node.get("routing")}
    found: set[str] = set()
    while True:
        more = {
            link["name"] for link in plan["links"] if link["name"] not in found and speaks & {*link["ends"]}
        }
        if not more:
            return found
        found |= more
        ends = {end for link in plan["links"] if link["name"] in more for end in link["ends"]}
        speaks = {end for end in ends if nodes[end]["kind"] == "switch"}


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
    if kind == "host":
        routes = _collapsed(routes)
    if node.get("routing"):
        # Found by its protocols, neighbours included: zebra replaces those that are named.
        routes, neighbours = [], {}
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
    ends: dict[str, list[Interface]] = {}
    for wire in wires:
        for end in wire.ends:
            ends.setdefault(end.node, []).append(end)
    routes: list[Route] = []
    neighbours: dict[tuple[str, str, str], None] = {}
    for destination, link in node["routes"].items():
        links = node.get("multipath", {}).get(destination, [link])
        hops = [_next_hop(by_name, nodes, node["name"], one, destination) for one in links]
        for version in (4, 6):
            # Address of the next hop, interface that leads to it, and this one's own address.
            ways: list[tuple[str, str, str]] = []
            for out, hop in hops:
                own, next_hop = out.ip(version), hop.ip(version)
                if own is not None and next_hop is not None:
                    neighbours[next_hop, hop.mac, out.name] = None
                    ways.append((next_hop, out.name, own))
            for end in ends.get(destination, []) if ways else []:
                address = end.ip(version)
                if address is not None:
                    whole = f"{address}/{128 if version == 6 else 32}"
                    routes.append(_route(whole, address, ways))
    return routes, neighbours


def _next_hop(
    wires: dict[str, Wire], nodes: dict[str, Any], node: str, link: str, destination: str
) -> tuple[Interface, Interface]:
    """The interface by which a link is left, and that of the next host or router."""
    out, hop = _near(wires[link], node), _far(wires[link], node)
    while nodes[hop.node]["kind"] == "switch":
        hop = _far(wires[nodes[hop.node]["routes"][destination]], hop.node)
    return out, hop


def _route(whole: str, address: str, ways: list[tuple[str, str, str]]) -> Route:
    """Directly where one of the ways leads to the address itself, else through the gateways of all."""
    for next_hop, interface, own in ways:
        if next_hop == address:
            return Route(whole, None, interface, own)
    (gateway, interface, own), *others = ways
    return Route(whole, gateway, interface, own, tuple((one[0], one[1]) for one in others))


def _collapsed(routes: list[Route]) -> list[Route]:
    """Routes of which those through the only gateway of a version of IP are the default route."""
    found = [route for route in routes if route.gateway is None]
    for default in ("0.0.0.0/0", "::/0"):
        version = [route for route in routes if route.gateway and (":" in route.to) == (":" in default)]
        if len({(route.gateway, route.interface, route.source) for route in version}) == 1:
            version = [replace(version[0], to=default)]
        found += version
    return found


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
    names = ("all", "default", *(interface.name for interface in interfaces))
    found = _quiet6(interfaces) if node["kind"] != "switch" else {"net.ipv6.conf.all.disable_ipv6": "1"}
    # Ways there and back may differ; the greater of both settings counts (ip-sysctl, rp_filter).
    found |= {f"net.ipv4.conf.{name}.rp_filter": "0" for name in names}
    if node["kind"] == "router":
        found["net.ipv4.ip_forward"] = "1"
        found["net.ipv6.conf.all.forwarding"] = "1"
        found |= {f"net.ipv4.conf.{name}.send_redirects": "0" for name in names}
    if node.get("multipath"):
        # By addresses, protocol and ports (ip-sysctl, "Layer 4").
        found |= {f"net.ipv{version}.fib_multipath_hash_policy": "1" for version in (4, 6)}
        # Each router divides in a way of its own, or the second of two would see one half of the hashes only.
        found["net.ipv4.fib_multipath_hash_seed"] = str(crc32(node["name"].encode()) | 1)
    if node["kind"] == "host":
        tcp = node["tcp"]
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


def _quiet6(interfaces: tuple[Interface, ...]) -> dict[str, str]:
    """Settings by which IPv6 sends no packet of its own accord.

    No link-local addresses, so nobody to solicit routers or to redirect; no waiting for duplicate address
    detection. What is left, the multicast reports, the interfaces' flags forbid (netlink.silence). Routing
    protocols talk from link-local addresses.
    """
    found = {"net.ipv6.conf.all.disable_ipv6": "0", "net.ipv6.conf.default.disable_ipv6": "0"}
    silent = {"all": True, "default": True} | {one.name: one.silent for one in interfaces}
    for name, is_silent in silent.items():
        found |= {
            f"net.ipv6.conf.{name}.addr_gen_mode": "1" if is_silent else "0",
            f"net.ipv6.conf.{name}.accept_dad": "0",
            f"net.ipv6.conf.{name}.accept_ra": "0",
        }
    return found
