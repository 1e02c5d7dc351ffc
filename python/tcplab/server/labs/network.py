"""The server's interface to networks that stay up: the one file here that uses the rest of tcplab."""

from __future__ import annotations

import asyncio
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcplab.plan.types import Plan
from tcplab.server import library
from tcplab.testbed import held
from tcplab.testbed.agent import agent_command
from tcplab.testbed.agents import failure
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.held import Held, NoLabError
from tcplab.testbed.link_change import changed, directions, present, present_words

__all__ = ["Held", "NoLabError", "TestbedError", "every", "find"]

Json = dict[str, Any]
find, every = held.find, held.every

# How often a lab is looked at, ms.
_PERIOD = 100
# How many tenths of a second a lab may take to end after its programs.
_LOOKS = 10
# Lines of an FRR configuration, and what shows the neighbours by that protocol.
_NEIGHBOURS = {
    "router ospf": "show ip ospf neighbor",
    "router ospf6": "show ipv6 ospf6 neighbor",
    "router isis": "show isis neighbor",
    "router rip": "show ip rip status",
    "router eigrp": "show ip eigrp neighbor",
    "router babel": "show babel neighbor",
    "router bgp": "show bgp summary",
    "bfd": "show bfd peers brief",
}
# A program of a terminal is the leader of its session; the terminal becomes its own.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    " os.execvp(sys.argv[1], sys.argv[1:])"
)


def up(plan: Plan, scenario: str) -> Held:
    """Build the network of a plan, under the scenario's name or that with a number; raises TestbedError."""
    taken, stem = set(held.names()), str(plan["name"])
    name = next(one for one in (stem, *(f"{stem}-{number}" for number in range(2, 1000))) if one not in taken)
    return held.up(plan, name, scenario)


def down(name: str) -> None:
    """End a lab; raises NoLabError."""
    held.down(held.find(name).name)


def to_json(lab: Held) -> Json:
    """A lab's description for pages."""
    about = lab.about
    return {
        "name": lab.name,
        "scenario": about.get("scenario", ""),
        "started": about.get("started"),
        "nodes": about["nodes"],
        "routers": list(about.get("routers", {})),
        "links": {
            name: {
                "ends": link["ends"],
                "settings": {
                    word: present_words(link[way], lab.elapsed())
                    for word, way in (("forward", "forward"), ("reverse", "backward"))
                },
            }
            for name, link in about["links"].items()
        },
    }


def change(lab: Held, link: str, settings: Mapping[str, str], direction: str) -> None:
    """Change a link now; raises NoLabError, TestbedError and ScenarioErrors."""
    facts, elapsed = lab.link(link), lab.elapsed()
    made = {way: changed(present(facts[way], elapsed), settings) for way in directions(direction)}
    held.change(lab, link, made)


def watch_command(lab: Held) -> list[str]:
    """The process that reports the lab's interfaces and sockets, a line each tenth of a second."""
    nodes = [f"{node}={lab.pids[node]}" for node in lab.about["nodes"]]
    return agent_command("watch", str(_PERIOD), *nodes)


def terminal_command(lab: Held, node: str, *, console: bool) -> list[str]:
    """A shell in a node, or the console of a router's FRR; raises NoLabError."""
    if console and node not in lab.about.get("routers", {}):
        raise NoLabError(f"{node} does not run FRR", "give a router `routing`")
    words = ["vtysh"] if console else ["bash", "--norc", "-i"]
    return [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *lab.command(node, words)]


async def why_ended(lab: Held, code: int) -> str:
    """Why a program in a lab ended with this exit code, negative for a signal."""
    for _ in range(_LOOKS if code else 1):
        if lab.name not in held.names():
            return f"lab {lab.name} has ended"
        # A lab kills its programs first.
        await asyncio.sleep(0.1 if code else 0)
    # The program has its own exit code, or 128 and the number of a signal, from the one that runs it.
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        return f"the program was ended by {signal.Signals(number).name}"
    return f"the program has ended with exit code {code}" if code else "the program has ended"


def capture_command(lab: Held, link: str, node: str | None) -> list[str]:
    """The writer of a link's packets as pcapng, as seen by a node at one end; raises NoLabError."""
    ends = dict(lab.link(link)["ends"])
    at = node or next(iter(ends))
    if at not in ends:
        raise NoLabError(f"link {link} does not end at {at}", f"its ends: {', '.join(ends)}")
    return lab.command(at, agent_command("capture", ends[at]))


def tables(lab: Held, node: str) -> str:
    """A node's addresses, routes and neighbours, and what its FRR knows; raises NoLabError."""
    asked = [["ip", "-brief", "address"], ["ip", "route"], ["ip", "neighbour"]]
    routers = lab.about.get("routers", {})
    if node in routers:
        asked += [["vtysh", "-c", question] for question in _questions(routers[node])]
    parts = []
    for words in asked:
        done = subprocess.run(
            lab.command(node, words),
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            errors="replace",
        )
        parts.append(f"# {shlex.join(words)}\n{(done.stdout or done.stderr).strip()}\n")
    return "\n".join(parts)


def _questions(configuration: str) -> list[str]:
    """Commands that show a router's neighbours, for each protocol that it runs, and its routes."""
    lines = configuration.splitlines()
    running = {tuple(line.split()[:2]) for line in lines if line.startswith(("router ", "bfd"))}
    own = [question for line, question in _NEIGHBOURS.items() if tuple(line.split()) in running]
    return [*own, "show ip route", *(["show ipv6 route"] if "ipv6" in configuration else [])]


class Traffic:
    """The flows of a scenario in a lab, until they are stopped."""

    def __init__(
        self, lab: Held, plan: Plan, folder: Path, failed: Callable[[str], None], ended: Callable[[], None]
    ) -> None:
        """Start them; raises TestbedError.

        `failed` is notified of a flow that ends early, `ended` when none is left or the lab has ended.
        """
        self._failed = failed
        self._ended = ended
        self._left = {flow["name"] for flow in plan["flows"]}
        self._over = threading.Event()
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._begin(lab, plan, folder)
        except BaseException:
            self.stop()
            raise
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether they have ended."""
        return self._over.is_set()

    def stop(self) -> None:
        """End them."""
        self._over.set()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait()

    def _begin(self, lab: Held, plan: Plan, folder: Path) -> None:
        from tcplab.testbed import flows

        self._agents = flows.start_in(lab, plan, folder, self._processes)

    def _follow(self) -> None:
        with suppress(OSError, ValueError):
            while not self._over.is_set():
                event = self._agents.next_event(0.5)
                if event is not None and event.name == "error" and not self._over.is_set():
                    self._failed(str(failure(event)))
                    self._left.discard(event.content.get("flow", ""))
                if not self._agents.alive or not self._left:
                    break
        if not self._over.is_set():
            self.stop()
            self._ended()


def plan_of(text: str, name: str, base: Path, root: Path, *, own_code: bool) -> Plan:
    """The plan of a text whose network is to stay up; raises TestbedError."""
    found = library.check(text, name, base, "kernel", root, own_code=own_code)
    if found["errors"]:
        raise TestbedError("; ".join(f"line {one['line']}: {one['message']}" for one in found["errors"][:3]))
    for problem in found["problems"]:
        # Flows do not start by themselves.
        if problem["fatal"] and not problem["where"].startswith("flows"):
            raise TestbedError(problem["message"], problem["hint"])
    plan: Plan = found["plan"]
    return plan
