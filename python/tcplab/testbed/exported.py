"""A plan's network in the files of other tools: a script for Mininet, a topology of containerlab.

What their files cannot say is named, not dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tcplab.plan.kinds import node_kind
from tcplab.plan.paths import DIRECTIONS
from tcplab.plan.types import Direction, DirectionKey, Limit, Link, Plan
from tcplab.plan.yaml_text import dump_plan_yaml
from tcplab.testbed.layout import Interface, Layout, Namespace, Wire, lay_out
from tcplab.testbed.netem import unlike

# Settings of nodes, by their name in a plan, that no other tool's file has.
_NOT_OF_NODES = {
    "routing": "routing protocols: copy them from FRR's console",
    "multipath": "ecmp",
    "accelerate": "the accelerator",
    "cache": "the cache",
    "nic": "nic",
    "sysctls": "sysctls",
}
# Settings of links for which Mininet's TCLink has no option.
_NOT_MININETS = ("overhead", "reorder", "corrupt", "duplicate", "policer", "trace")
# The MTU of a new interface.
_MTU = 1500
_IMAGE = "ghcr.io/srl-labs/network-multitool"
_FRR_IMAGE = "quay.io/frrouting/frr:10.2.1"


@dataclass
class Exported:
    """A file's text, and what of the plan it does not say."""

    text: str
    left_out: list[str] = field(default_factory=list)
    """One sentence each."""


def mininet(plan: Plan) -> Exported:
    """A Python script that builds the network in Mininet and opens its console."""
    layout = lay_out(plan)
    made = Exported("")
    lines = [
        f'"""{plan["name"]}: a network of tcplab. Run as root with Python and Mininet."""',
        "",
        "from mininet.cli import CLI",
        "from mininet.link import TCIntf, TCLink",
        "from mininet.net import Mininet",
        "from mininet.node import OVSBridge",
        "",
        "net = Mininet(controller=None, switch=OVSBridge, link=TCLink)",
    ]
    for space in layout.namespaces:
        # A switch's first bytes of its identity must be given: names need no number.
        bridges = node_kind(space.kind).bridges
        call = "addSwitch" if bridges else "addHost"
        more = f", dpid={format(_number(layout, space), '016x')!r}" if bridges else ", ip=None"
        lines.append(f"net.{call}({space.node!r}{more})")
    for wire in layout.wires:
        one, other = wire.ends
        settings = [_options(wire, key, made) for key in ("forward", "backward")]
        lines += [
            f"net.addLink({one.node!r}, {other.node!r},",
            f"            intfName1={_interface(one)!r}, intfName2={_interface(other)!r},",
            f"            params1={settings[0]!r}, params2={settings[1]!r})",
        ]
    lines += ["net.start()"]
    for wire in layout.wires:
        if wire.plan["mtu"] != _MTU:
            for end in wire.ends:
                command = f"ip link set {_interface(end)} mtu {wire.plan['mtu']}"
                lines.append(f"net[{end.node!r}].cmd({command!r})")
    for space in layout.namespaces:
        lines += [f"net[{space.node!r}].cmd({command!r})" for command in _commands(space, _interface)]
    lines += ["CLI(net)", "net.stop()", ""]
    _name_the_rest(plan, made)
    made.text = "\n".join(lines)
    return made


def containerlab(plan: Plan) -> Exported:
    """A topology file of containerlab; what its links do follows as commands in comments."""
    layout = lay_out(plan)
    made = Exported("")
    nodes: dict[str, Any] = {}
    for space in layout.namespaces:
        if node_kind(space.kind).bridges:
            nodes[space.node] = {"kind": "bridge"}
            made.left_out.append(
                f"{space.node}: containerlab takes a bridge that is there; make it beforehand"
            )
            continue
        speaks = any(node["name"] == space.node and node.get("routing") for node in plan["nodes"])
        commands = list(_commands(space, _port))
        nodes[space.node] = {"kind": "linux", "image": _FRR_IMAGE if speaks else _IMAGE, "exec": commands}
    links = [
        {"endpoints": [f"{end.node}:{_port(end)}" for end in wire.ends], "mtu": wire.plan["mtu"]}
        for wire in layout.wires
    ]
    topology = {"name": plan["name"], "topology": {"nodes": nodes, "links": links}}
    commands = [line for wire in layout.wires for line in _netem(plan["name"], wire, made)]
    _name_the_rest(plan, made)
    made.text = dump_plan_yaml(topology) + "".join(f"# {command}\n" for command in commands)
    return made


def _number(layout: Layout, space: Namespace) -> int:
    return layout.namespaces.index(space) + 1


def _interface(end: Interface) -> str:
    """Mininet's interfaces are all visible in one place until they are moved: named by their node."""
    return f"{end.node}-{end.name}"


def _port(end: Interface) -> str:
    """Containerlab's `eth0` is for management."""
    return f"eth{int(end.name.removeprefix('eth')) + 1}"


def _commands(space: Namespace, called: Any) -> Iterator[str]:
    """Commands that give a node its addresses and routes."""
    kind = node_kind(space.kind)
    if kind.bridges:
        return
    if kind.forwards:
        yield "sysctl -w net.ipv4.ip_forward=1"
    names = {end.name: called(end) for end in space.interfaces}
    for end in space.interfaces:
        if end.address:
            yield f"ip addr add {end.address} dev {names[end.name]}"
    for route in space.routes:
        if route.gateway and ":" not in route.to:
            yield f"ip route replace {route.to} via {route.gateway} dev {names[route.interface]}"


def _options(wire: Wire, key: DirectionKey, made: Exported) -> dict[str, Any]:
    """A direction as options of TCLink: Mbit/s, times with units, percent, packets."""
    direction = wire.plan[key]
    found: dict[str, Any] = {}
    if direction["rate"]:
        found["bw"] = direction["rate"] / 1e6
    if direction["delay"]:
        found["delay"] = _milliseconds(direction["delay"])
    if jitter := direction.get("jitter"):
        found["jitter"] = _milliseconds(jitter["amount"])
        if jitter["distribution"] != "uniform":
            made.left_out.append(f"link {wire.name} {DIRECTIONS[key]}: the distribution of jitter")
    lost = _lost(direction)
    if lost is not None:
        found["loss"] = lost
    elif direction.get("loss"):
        made.left_out.append(f"link {wire.name} {DIRECTIONS[key]}: this kind of loss")
    limit = direction["queue"].get("limit")
    if any(one.key == "queue" for one in unlike(wire.plan["mtu"], direction)):
        made.left_out.append(f"link {wire.name} {DIRECTIONS[key]}: the queue {direction['queue']['kind']}")
    elif limit:
        found["max_queue_size"] = _packets(limit, direction["rate"], wire.plan["mtu"])
    made.left_out += [
        f"link {wire.name} {DIRECTIONS[key]}: {what}" for what in _NOT_MININETS if direction.get(what)
    ]
    return found


def _netem(lab: str, wire: Wire, made: Exported) -> Iterator[str]:
    """Commands of containerlab that impair the ends of a link."""
    for end, key in zip(wire.ends, DIRECTIONS, strict=True):
        options = dict(_options(wire, key, made))
        if options.pop("max_queue_size", None) is not None:
            made.left_out.append(f"link {wire.name} {DIRECTIONS[key]}: the queue's limit")
        words = []
        if "bw" in options:
            # Whole kbit/s.
            words.append(f"--rate {max(1, round(options['bw'] * 1000))}")
        words += [f"--{name} {options[name]}" for name in ("delay", "jitter", "loss") if name in options]
        if words:
            yield f"containerlab tools netem set -n clab-{lab}-{end.node} -i {_port(end)} {' '.join(words)}"


def _milliseconds(time: int) -> str:
    """A time of so many ns: neither tc(8) nor containerlab reads an exponent."""
    return f"{time / 1e6:.6f}".rstrip("0").rstrip(".") + "ms"


def _lost(direction: Direction) -> float | None:
    """Independent random loss, percent."""
    loss = direction.get("loss")
    model = loss["model"] if loss else {}
    chance = model.get("chance") or {}
    if model.get("kind") != "random" or chance.get("correlation"):
        return None
    return float(chance["rate"]) / 1e7


def _packets(limit: Limit, rate: int | None, mtu: int) -> int:
    """A limit in full packets."""
    if "packets" in limit:
        return int(limit["packets"])
    size = limit["bytes"] if "bytes" in limit else limit["time"] * (rate or 0) // 8_000_000_000
    return max(1, int(size) // (mtu + 14))


def _name_the_rest(plan: Plan, made: Exported) -> None:
    made.left_out += [
        f"{node['name']}: {words}"
        for node in plan["nodes"]
        for setting, words in _NOT_OF_NODES.items()
        if node.get(setting)
    ]
    made.left_out += [f"link {link['name']}: its medium" for link in plan["links"] if link.get("medium")]
    made.left_out += [
        f"link {link['name']} {DIRECTIONS[key]}: it is down"
        for link in plan["links"]
        for key in DIRECTIONS
        if not link[key]["up"]
    ]
    changing = [link["name"] for link in plan["links"] if _changes(link)]
    made.left_out += [f"link {name}: changes over time" for name in changing]
    made.left_out = list(dict.fromkeys(made.left_out))


def _changes(link: Link) -> bool:
    return bool(link["forward"]["changes"] or link["backward"]["changes"])
