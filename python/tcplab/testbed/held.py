"""Labs that stay up: built from a plan, found by name, commanded by `tcplab topo`.

A lab listens on a socket in the abstract namespace (unix(7)): it has no file, and is gone with the lab's
process.
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.plan.types import Change, Plan
from tcplab.results.manifest import plan_digest
from tcplab.testbed import verification
from tcplab.testbed.agent import agent_command
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.lab import LabProcess, answered
from tcplab.testbed.layout import LARGEST_MTU, Interface, Layout, has_routing, lay_out
from tcplab.testbed.link_change import recorded
from tcplab.testbed.ping import Pair, silent
from tcplab.testbed.testbed import EMULATOR

Json = dict[str, Any]
# How long a lab may take to answer, seconds.
_PATIENCE = 60.0
_BUILD = "build one: tcplab topo up SCENARIO"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class NoLabError(TestbedError):
    """There is no such lab, node or link."""


@dataclass(frozen=True)
class Held:
    """A lab that stays up, as it was when it was asked."""

    name: str
    process: int
    about: Json
    """`scenario`, `started` (seconds since 1970), `nodes` by name, `links` by name."""
    revision: int
    """How often `about` was changed."""
    pids: dict[str, int]
    ended: list[str]
    """Programs of the lab that have ended, as "node: program"."""

    def node(self, name: str) -> int:
        """The process that holds a node; raises NoLabError."""
        if name not in self.about["nodes"]:
            nodes = ", ".join(self.about["nodes"])
            raise NoLabError(f"lab {self.name} has no node {name!r}", f"its nodes: {nodes}")
        return self.pids[name]

    def elapsed(self) -> int:
        """How long its links have been up, ns."""
        return max(0, round((time.time() - float(self.about["started"])) * 1e9))

    def link(self, name: str) -> Json:
        """The known properties of a link; raises NoLabError."""
        found: Json | None = self.about["links"].get(name)
        if found is None:
            raise NoLabError(
                f"lab {self.name} has no link {name!r}", f"its links: {', '.join(self.about['links'])}"
            )
        return found

    def ask(self, request: Mapping[str, Any], patience: float = _PATIENCE) -> Json:
        """Give a command and return its answer; raises TestbedError when it is refused."""
        return _ask(self.name, request, patience)

    def command(self, node: str, words: list[str]) -> list[str]:
        """The command that runs a program in a node and has its exit code."""
        return agent_command("enter", str(self.process), str(self.node(node)), *words)


def names() -> list[str]:
    """The labs of this user that are up."""
    prefix = f"@tcplab-lab/{os.geteuid()}/"
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()[1:]
    paths = {line.split(maxsplit=7)[-1] for line in lines}
    return sorted(path.removeprefix(prefix) for path in paths if path.startswith(prefix))


def find(name: str | None) -> Held:
    """The lab of this name, or the only one; raises NoLabError."""
    there_are = names()
    if name is None:
        if not there_are:
            raise NoLabError("no lab is up", _BUILD)
        if len(there_are) > 1:
            raise NoLabError(
                f"{len(there_are)} labs are up: {', '.join(there_are)}", "name one with --lab NAME"
            )
        name = there_are[0]
    if name not in there_are:
        raise _unknown(name)
    said = _ask(name, {"do": "status"})
    about = said["about"] or {"nodes": {}, "links": {}}
    return Held(name, said["lab"], about, said["revision"], said["pids"], said["ended"])


def every() -> list[Held]:
    """The labs of this user that are up. One that ends while it is asked is left out."""
    labs = []
    for name in names():
        with suppress(NoLabError):
            labs.append(find(name))
    return labs


def down(name: str) -> None:
    """End a lab and every process in it; returns when they and the name are gone. Raises TestbedError."""
    with _connected(name) as one:
        one.sendall(b'{"do":"down"}\n')
        # Its end of the connection is open for as long as the lab lives.
        while one.recv(4096):
            pass
    # The sockets of a process that ends are closed one after the other: its name may go last.
    end = time.monotonic() + _PATIENCE
    while name in names():
        if time.monotonic() > end:
            raise TestbedError(f"lab {name} has not ended", "ask again: tcplab topo list")
        time.sleep(0.001)


def admit(plan: Plan, name: str) -> None:
    """Raise NoLabError where there can be no such lab, or not by this name."""
    if not _NAME.fullmatch(name):
        raise NoLabError(
            f"{name!r} cannot be a lab's name", "use letters, digits, '-', '_' and '.', 63 at most"
        )
    if name in names():
        raise NoLabError(
            f"there is a lab {name!r} already", f"choose another with --name, or: tcplab topo down {name}"
        )
    for link in plan["links"]:
        if link["mtu"] > LARGEST_MTU:
            raise NoLabError(
                f"links.{link['name']}.mtu: every link of a lab is emulated, and such a link carries"
                f" IP packets of {LARGEST_MTU} B at most",
                f"set `mtu: {LARGEST_MTU} B`",
            )


def up(plan: Plan, name: str, scenario: str) -> Held:
    """Build the network of a plan as a lab that stays up; raises TestbedError, and leaves nothing then."""
    admit(plan, name)
    layout = lay_out(plan, emulate_all=True)
    lab = LabProcess("--name", name, apart=True)
    try:
        nodes = [namespace.node for namespace in layout.namespaces]
        children = [{"name": node, "role": "hold", "socket": None} for node in nodes]
        if layout.emulated:
            children.append({"name": EMULATOR, "role": "emulator", "socket": None})
        pids = lab.ask({"do": "spawn", "children": children})["pids"]
        if layout.emulated:
            _send(lab, {"do": "configure", **_emulation(plan, layout, pids)})
        lab.ask(layout.build_command())
        started = time.time()
        if layout.emulated:
            _send(lab, {"do": "start", "at": time.monotonic_ns(), "duration": None})
        certificate = None
        if verification.wanted(plan):
            certificate = verification.measured(layout, plan_digest(plan), lab.ask)
        routers = lab.ask({"do": "route", "plan": plan})["configurations"] if has_routing(plan) else {}
        lab.ask({"do": "hold", "about": _about(layout, scenario, started, routers, certificate)})
        lab.let_go()
    except BaseException:
        lab.end()
        raise
    return find(name)


def change(lab: Held, link: str, changes: Mapping[str, Change]) -> None:
    """Change directions of a link now; the lab's description says so from then on. Raises TestbedError."""
    commands = [
        {"do": "change", "link": link, "direction": way, "change": made} for way, made in changes.items()
    ]
    while True:
        facts, elapsed = lab.link(link), lab.elapsed()
        facts |= {way: recorded(facts[way], made, elapsed) for way, made in changes.items()}
        made = {"revision": lab.revision, "child": EMULATOR, "commands": commands, "about": lab.about}
        if lab.ask({"do": "change", **made})["changed"]:
            return
        # Another hand has changed something meanwhile.
        lab = find(lab.name)


def reach(lab: Held, pairs: list[Pair], timeout: float) -> tuple[list[Pair], float]:
    """Wait until nodes answer each other, `timeout` seconds at most.

    Returns those that do not, and the seconds that it took.
    """
    return silent(lambda request: lab.ask(request, timeout + _PATIENCE), pairs, timeout)


def _send(lab: LabProcess, command: Json) -> None:
    lab.ask({"do": "relay", "child": EMULATOR, "command": command})


def _emulation(plan: Plan, layout: Layout, pids: Mapping[str, int]) -> Json:
    def end(interface: Interface) -> Json:
        return {
            "node": interface.node,
            "pid": pids[interface.node],
            "interface": interface.name,
            "mac": interface.mac,
            "mtu": interface.mtu,
            "tso": interface.offloads.get("tso", True) or interface.offloads.get("gso", True),
            "gro": interface.offloads.get("gro", True),
        }

    links = [
        {
            "name": wire.name,
            "ends": [end(interface) for interface in wire.ends],
            "forward": wire.plan["forward"],
            "backward": wire.plan["backward"],
            "medium": wire.plan.get("medium"),
            "carrier": wire.routed,
        }
        for wire in layout.emulated
    ]
    return {"seed": plan["seed"], "links": links, "media": plan.get("media", [])}


def _about(layout: Layout, scenario: str, started: float, routers: Json, certificate: Json | None) -> Json:
    return {
        "scenario": scenario,
        "started": started,
        "routers": routers,
        "verification": certificate,
        "nodes": {
            one.node: {
                "kind": one.kind,
                "addresses": [end.address for end in one.interfaces if end.address],
            }
            for one in layout.namespaces
        },
        "links": {
            wire.name: {
                "ends": [[end.node, end.name] for end in wire.ends],
                "mtu": wire.plan["mtu"],
                "forward": wire.plan["forward"],
                "backward": wire.plan["backward"],
                "emulated": wire.emulated,
            }
            for wire in layout.wires
        },
    }


def _unknown(name: str) -> NoLabError:
    there_are = names()
    hint = f"labs that are up: {', '.join(there_are)}" if there_are else _BUILD
    return NoLabError(f"unknown lab {name!r}", hint)


def _connected(name: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.settimeout(_PATIENCE)
    try:
        one.connect(f"\0tcplab-lab/{os.geteuid()}/{name}")
    except OSError as problem:
        one.close()
        raise _unknown(name) from problem
    return one


def _ask(name: str, request: Mapping[str, Any], patience: float = _PATIENCE) -> Json:
    with _connected(name) as one, one.makefile("r", encoding="utf-8") as answers:
        one.settimeout(patience)
        one.sendall(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        try:
            line = answers.readline()
        except TimeoutError:
            raise TestbedError(f"lab {name} does not answer", "end it: tcplab topo down " + name) from None
        except ConnectionResetError:
            line = ""
    if not line:
        raise NoLabError(f"lab {name} has ended")
    return answered(json.loads(line))
