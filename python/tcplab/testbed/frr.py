"""Routers that run FRR: the configuration of each from the plan, and the daemons in the node.

Every daemon is private to its node: `-N NODE`, its file with `-f`, and a run-time directory, `/run/frr`, that
is a file system of the node's own and vanishes with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path
from typing import Any

from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import Interface, Layout

Json = dict[str, Any]
_DAEMONS = Path("/usr/lib/frr")
_RUN = Path("/run/frr")
_FILE = f"{_RUN}/frr.conf"
_GROUP = "frrvty"
INSTALL = "sudo apt-get install frr"


@dataclass(frozen=True)
class Router:
    """A node with routing protocols."""

    node: str
    daemons: tuple[str, ...]
    """zebra first: the others talk to it."""
    configuration: str


def missing() -> str | None:
    """Why there are no routing daemons; none if there are."""
    if not (_DAEMONS / "zebra").exists():
        return "FRR is not installed"
    return None if _RUN.is_dir() else f"FRR's run-time directory {_RUN} is missing"


def routers(plan: Json, layout: Layout) -> list[Router]:
    """The routers of a plan that run protocols."""
    routing = {node["name"]: node["routing"] for node in plan["nodes"] if node.get("routing")}
    return [_router(name, asked, routing, layout) for name, asked in routing.items()]


def _router(name: str, asked: Json, routing: dict[str, Json], layout: Layout) -> Router:
    near = [end for wire in layout.wires for end in wire.ends if end.node == name and end.address]
    daemons = ["zebra"]
    lines = [f"hostname {name}", "ip forwarding", "ipv6 forwarding"]
    if asked.get("bgp") is not None:
        daemons.append("bgpd")
        lines += _bgp(asked["bgp"], near, _peers(name, routing, layout))
    return Router(name, tuple(daemons), "\n".join(lines) + "\n")


def _bgp(bgp: Json, near: list[Interface], peers: list[tuple[str, int]]) -> list[str]:
    """Every neighbour with BGP, and the networks of the router's own interfaces.

    RFC 8212 asks for a policy towards other systems, which FRR enforces unless told otherwise: without one
    nothing would be announced.
    """
    lines = [f"router bgp {bgp['as']}", f" bgp router-id {near[0].ip(4)}", " no bgp ebgp-requires-policy"]
    lines += [f" neighbor {address} remote-as {number}" for address, number in peers]
    lines += [" address-family ipv4 unicast"]
    lines += [f"  network {network}" for network in dict.fromkeys(map(_network, near))]
    return [*lines, " exit-address-family"]


def _peers(name: str, routing: dict[str, Json], layout: Layout) -> list[tuple[str, int]]:
    found = []
    for wire in layout.wires:
        for end, far in (wire.ends, wire.ends[::-1]):
            bgp = routing.get(far.node, {}).get("bgp")
            address = far.ip(4)
            if end.node == name and bgp and address:
                found.append((address, int(bgp["as"])))
    return found


def _network(end: Interface) -> str:
    return str(ip_interface(end.address or "").network)


def start(router: Router, ask: Callable[[Json], Json]) -> None:
    """Run the daemons in the router's node, told by `ask` to its lab; raises TestbedError.

    Each is a child of the lab's own and dies with it.
    """
    own = f"{_RUN}/{router.node}"
    node = {"node": router.node}
    files = {_FILE: router.configuration, f"{_RUN}/group": _groups()}
    ask({"do": "write_files", **node, "files": files})
    script = ["set -e", f"mkdir {own}", f"mount --bind {_RUN}/group /etc/group"]
    # Where vtysh(1) looks for the consoles when it is told nothing.
    script += [f"ln -s {router.node}/{daemon}.vty {_RUN}/{daemon}.vty" for daemon in router.daemons]
    _run(ask, router.node, "prepare", ["sh", "-c", "\n".join(script)])
    for daemon in router.daemons:
        command = [f"{_DAEMONS}/{daemon}", "-N", router.node, "-u", "root", "-g", "root", "-f", _FILE]
        command += ["-i", f"{own}/{daemon}.pid", "-A", "127.0.0.1"]
        ask({"do": "daemon", **node, "name": daemon, "command": command, "log": f"{_RUN}/{daemon}.log"})
        # The others talk to zebra.
        if daemon == "zebra":
            waiting = f"until [ -S {own}/zserv.api ]; do sleep 0.02; done"
            _run(ask, router.node, "wait", ["timeout", "20", "sh", "-c", waiting])


def _run(ask: Callable[[Json], Json], node: str, name: str, command: list[str]) -> None:
    """Run a program to its end."""
    ask({"do": "daemon", "node": node, "name": name, "command": command, "log": f"{_RUN}/{name}.log"})
    while True:
        ended = ask({"do": "ended"})["ended"]
        lost = [one for one in ended if one != f"{node}: {name}"]
        if lost:
            raise TestbedError(
                f"{lost[0]} has ended", f"its configuration may be wrong: {_RUN}/*.log in the node"
            )
        if ended:
            return
        time.sleep(0.005)


def _groups() -> str:
    """The node's own view of /etc/group.

    The daemons run as root of the node, and FRR wants that user in the group that may use its consoles.
    """
    lines = Path("/etc/group").read_text(encoding="utf-8").splitlines()
    ours = [line for line in lines if line.startswith(f"{_GROUP}:")]
    others = [line for line in lines if line not in ours]
    members = [f"{line},root" if not line.endswith(":") else f"{line}root" for line in ours]
    return "\n".join([*others, *members]) + "\n"
