"""The process that builds a network and is the parent of everything in it.

It is started by `testbed`, with the sockets of the agents already open, and told what to do on its
standard input, one JSON object a line, each answered by one. It dies with the process that started it,
and every agent dies with it, so nothing survives whichever is killed. Where it lacks privileges it first
becomes root of a user namespace of its own. It imports little, to be up at once.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address, ip_interface
from pathlib import Path
from typing import Any

from tcplab.testbed import ethtool, namespaces, netlink, reach
from tcplab.testbed.layout import BRIDGE

Json = dict[str, Any]
# How long agents may take to end once their input has ended, seconds.
_PATIENCE = 4.0
# Packets that may wait for the emulator. The default of 1000 is filled by one burst of datagrams, and what
# finds no room is lost in the sender's namespace.
_TAP_QUEUE = 10_000
_IPV6 = Path("/proc/sys/net/ipv6")


class Lab:
    """The network, as far as it is built."""

    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def serve(self, request: Json) -> Json:
        """Do one thing; raises OSError."""
        match request["do"]:
            case "spawn":
                for child in request["children"]:
                    self.spawn(child["name"], child["command"], child["socket"])
                return {"pids": {name: child.pid for name, child in self.children.items()}}
            case "build":
                self.build(request["namespaces"], request["cables"])
                return self.describe(request["namespaces"])
            case "reach":
                return {"unreachable": self.unreachable(request["pairs"])}
            case "read_sysctls":
                return {"sysctls": self.read_sysctls(request["node"], request["names"])}
            case other:
                raise OSError(0, f"the lab knows no {other!r}")

    def spawn(self, name: str, command: Sequence[str], descriptor: int) -> None:
        """Start an agent that talks over a socket we have inherited."""
        self.children[name] = subprocess.Popen(command, stdin=descriptor, stdout=descriptor)
        os.close(descriptor)

    def build(self, nodes: list[Json], cables: list[list[Json]]) -> None:
        """Connect and configure all namespaces; the emulator's interfaces are there already."""
        pids = {name: child.pid for name, child in self.children.items()}
        by_node: dict[str, list[netlink.Request]] = {}
        for first, second in cables:
            request = netlink.veth(
                first["name"],
                first["mac"],
                first["mtu"],
                pids[second["node"]],
                second["name"],
                second["mac"],
            )
            by_node.setdefault(first["node"], []).append(request)
        # All cables first: the other end of a node's cable may be made by its neighbour.
        for name, requests in by_node.items():
            with namespaces.network_of(pids[name]), netlink.Netlink() as kernel:
                kernel.carry_out(requests)
        for node in nodes:
            with namespaces.network_of(pids[node["node"]]):
                _configure(node)

    def describe(self, nodes: list[Json]) -> Json:
        """The offloads that are on, and the queue disciplines, by node and interface."""
        offloads, qdiscs = {}, {}
        for node in nodes:
            with (
                namespaces.network_of(self.children[node["node"]].pid),
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control,
                netlink.Netlink() as kernel,
            ):
                disciplines = kernel.qdiscs()
                for interface in node["interfaces"]:
                    name = f"{node['node']}.{interface['name']}"
                    offloads[name] = ethtool.offloads(control, interface["name"])
                    qdiscs[name] = disciplines.get(interface["name"], "")
        return {"offloads": offloads, "qdiscs": qdiscs}

    def unreachable(self, pairs: dict[str, list[str]]) -> dict[str, list[str]]:
        """By node, those of some addresses that do not answer it."""
        found = {}
        for node, addresses in pairs.items():
            with namespaces.network_of(self.children[node].pid):
                found[node] = reach.unreachable(addresses)
        return {node: silent for node, silent in found.items() if silent}

    def end(self) -> None:
        """Wait for the agents, whose input has ended; those that do not end are killed."""
        deadline = time.monotonic() + _PATIENCE
        for child in self.children.values():
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def read_sysctls(self, node: str, names: list[str]) -> dict[str, str | None]:
        """Settings as they are in a node."""
        with namespaces.network_of(self.children[node].pid):
            return {name: _read(name) for name in names}


def _configure(node: Json) -> None:
    """Fill the namespace this thread is in."""
    with netlink.Netlink() as kernel:
        master = None
        if node["kind"] == "switch":
            kernel.carry_out([netlink.bridge(BRIDGE)])
            master = socket.if_nametoindex(BRIDGE)
        index = {one["name"]: socket.if_nametoindex(one["name"]) for one in node["interfaces"]}
        # First, and before the interfaces are up: not one packet of IPv6's own shall leave.
        kernel.carry_out([netlink.silence(name, number) for name, number in index.items()])
        for name, value in node["sysctls"].items():
            _write(name, value)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for one in node["interfaces"]:
                _offload(control, one)
        requests = [
            netlink.up(one["name"], index[one["name"]], master, _TAP_QUEUE if one["emulated"] else None)
            for one in node["interfaces"]
        ]
        requests += [
            netlink.one_by_one(one["name"], index[one["name"]]) for one in node["interfaces"] if one["singly"]
        ]
        if master is not None:
            requests.append(netlink.up(BRIDGE, master))
        requests += [netlink.forwarding(mac, index[port]) for mac, port in node["forwarding"]]
        # A kernel without IPv6 has networks all the same; `check` refuses flows that need it.
        usable = (4, 6) if _IPV6.exists() else (4,)
        for one in node["interfaces"]:
            for interface in map(ip_interface, filter(None, (one["address"], one["address6"]))):
                if interface.version in usable:
                    requests.append(netlink.address(one["name"], index[one["name"]], interface))
        for text, mac, name in node["neighbours"]:
            neighbour = ip_address(text)
            if neighbour.version in usable:
                requests.append(netlink.neighbour(neighbour.packed, mac, index[name]))
        settings = netlink.RouteSettings(node["initcwnd"], node["rto_min"], node["quickack"])
        for one in node["routes"]:
            to = ip_address(one["to"])
            if to.version in usable:
                gateway, source = (
                    ip_address(at).packed if at else None for at in (one["gateway"], one["source"])
                )
                requests.append(netlink.route(to.packed, gateway, index[one["interface"]], source, settings))
        kernel.carry_out(requests)
    _shape([words for one in node["interfaces"] for words in one["qdiscs"]])


def _shape(commands: list[list[str]]) -> None:
    """Have tc make queue disciplines, all with one process."""
    if not commands:
        return
    text = "".join(" ".join(words) + "\n" for words in commands)
    done = subprocess.run(["tc", "-batch", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(0, f"tc cannot make the links: {' '.join(done.stderr.split())}")


def _offload(control: socket.socket, interface: Json) -> None:
    on = set(ethtool.offloads(control, interface["name"]))
    for name, wanted in interface["offloads"].items():
        if wanted == (name in on):
            continue
        try:
            ethtool.set_offload(control, interface["name"], name, wanted)
        except OSError as problem:
            # What a device cannot do is off; that it is shows in the manifest.
            if wanted and netlink.missing(problem):
                continue
            what = f"switch {name} {'on' if wanted else 'off'} for {interface['node']}.{interface['name']}"
            raise OSError(problem.errno, f"cannot {what}: {problem.strerror}") from problem


def _path(name: str) -> Path:
    # A setting's name may hold an interface's, which may hold a dot; a slash then stands for the others.
    return Path("/proc/sys") / (name if "/" in name else name.replace(".", "/"))


def _write(name: str, value: str) -> None:
    try:
        _path(name).write_text(value, encoding="ascii")
    except FileNotFoundError:
        if not name.startswith("net.ipv6."):
            raise OSError(2, f"this kernel has no setting {name} in a network namespace") from None
    except OSError as problem:
        raise OSError(problem.errno, f"cannot set {name} to {value!r}: {problem.strerror}") from problem


def _read(name: str) -> str | None:
    try:
        return " ".join(_path(name).read_text(encoding="ascii").split())
    except OSError:
        return None


def main(parent: int) -> None:
    """Serve until the input ends."""
    namespaces.die_with_parent(parent)
    # Ctrl-C reaches every process of the terminal; what then happens is for the one that started us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    lab = Lab()
    try:
        if not namespaces.has_capability(namespaces.CAP_SYS_ADMIN):
            namespaces.enter_user_namespace()
        # One of its own for the time between the nodes: the host's is never entered again, and an
        # unprivileged process could not.
        namespaces.unshare(namespaces.CLONE_NEWNET)
    except OSError as problem:
        _answer(
            {"error": f"cannot make namespaces: {problem.strerror or problem}", "mend": namespaces.remedy()}
        )
        return
    for line in sys.stdin:
        try:
            _answer(lab.serve(json.loads(line)))
        except OSError as problem:
            _answer({"error": problem.strerror or str(problem)})
    lab.end()


def _answer(answer: Json) -> None:
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    sys.stdout.flush()
