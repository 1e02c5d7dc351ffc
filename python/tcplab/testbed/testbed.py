"""A network of real hosts, from its layout to its end."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Self

from tcplab.plan.types import Plan
from tcplab.testbed import ping, verification
from tcplab.testbed.agents import Agents, Json
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.lab import LabProcess
from tcplab.testbed.layout import Layout

# The emulator's name among the agents; nodes' names are letters, digits, - and _.
EMULATOR = ":emulator"
# The name of the process that loads congestion controls.
CONTROLS = ":controls"
# How long processes may take to end before they are killed, seconds.
_PATIENCE = 5.0


class Testbed:
    """A namespace for each node, joined as a layout says, for as long as the `with` statement lasts."""

    __test__ = False

    def __init__(
        self, layout: Layout, *, loads_controls: bool = False, machines: Collection[str] = ()
    ) -> None:
        """Nothing starts yet. `machines` are the nodes with mounts and a host name of their own."""
        self.layout = layout
        self._loads_controls = loads_controls
        self._machines = machines
        self.hellos: dict[str, Json] = {}
        """Each agent's description of itself."""
        self.offloads: dict[str, list[str]] = {}
        """Offloads that are on, by node and interface."""
        self.qdiscs: dict[str, str] = {}
        """Queue disciplines, by node and interface."""
        self.agents = Agents({})
        self.pids: dict[str, int] = {}
        self._lab: LabProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.down()

    def start(self) -> None:
        """Start every process; raises TestbedError."""
        roles = {namespace.node: "node" for namespace in self.layout.namespaces}
        if self.layout.emulated:
            roles[EMULATOR] = "emulator"
        if self._loads_controls:
            roles[CONTROLS] = "controls"
        pairs = {name: socket.socketpair() for name in roles}
        theirs = {name: pair[1] for name, pair in pairs.items()}
        try:
            self._lab = LabProcess(
                "--parent", str(os.getpid()), descriptors=[one.fileno() for one in theirs.values()]
            )
            self.agents = Agents({name: pair[0] for name, pair in pairs.items()})
            children = [
                {
                    "name": name,
                    "role": role,
                    "machine": name in self._machines,
                    "socket": theirs[name].fileno(),
                }
                for name, role in roles.items()
            ]
            self.pids = self._ask({"do": "spawn", "children": children})["pids"]
        finally:
            for one in theirs.values():
                one.close()
        try:
            self.hellos = self.agents.greet()
        except TestbedError as problem:
            raise TestbedError(problem.message, problem.hint or self._last_error_line()) from None

    def build(self) -> None:
        """Join and configure the namespaces; the emulator has made its interfaces already."""
        built = self._ask(self.layout.build_command())
        self.offloads, self.qdiscs = built["offloads"], built["qdiscs"]

    def route(self, plan: Plan) -> dict[str, str]:
        """Run the routing protocols of a plan; returns the configuration of each router."""
        configurations: dict[str, str] = self._ask({"do": "route", "plan": plan})["configurations"]
        return configurations

    def ended(self) -> list[str]:
        """Daemons of routers that have ended, as "node: program"."""
        found: list[str] = self._ask({"do": "status"})["ended"]
        return found

    def verify(self, pairs: Iterable[tuple[str, str, int]]) -> None:
        """See that hosts reach each other by a version of IP; raises TestbedError for the first pair that
        does not."""
        unanswered, _ = ping.silent(self._ask, ping.pairs_of(self.layout, pairs), 2.0)
        for source, destination, address in unanswered:
            raise TestbedError(
                f"{destination} ({address}) does not answer {source}",
                "this should not happen: keep the run directory and report it",
            )

    def certify(self, digest: str) -> dict[str, Any]:
        """Measure the links as they are at the start of a run of the plan with this digest.

        Returns the certificate; raises TestbedError where a link is off.
        """
        emulator = [EMULATOR] if self.layout.emulated else []
        start = {"do": "start", "at": time.monotonic_ns(), "duration": None, "rehearsal": True}
        self.agents.ask((one, start) for one in emulator)
        certificate = verification.measured(self.layout, digest, self._ask)
        self.agents.ask((one, {"do": "stop"}) for one in emulator)
        return certificate

    def await_routes(self, plan: Plan, hint: str, meanwhile: Callable[[], None]) -> float:
        """Wait until the ends of every flow reach each other; see `ping.await_routes`."""
        return ping.await_routes(plan, self.layout, self._ask, hint, meanwhile)

    def sysctls(self, node: str, names: list[str]) -> dict[str, str | None]:
        """Settings as a node has them."""
        found: dict[str, str | None] = self._ask({"do": "read_sysctls", "node": node, "names": names})[
            "sysctls"
        ]
        return found

    def down(self) -> None:
        """End every process, and with them every namespace and interface."""
        # The kernel removes the interfaces of all nodes at once, which the emulator could only do one by one.
        self.agents.send({"do": "leave"}, self.agents.alive & {EMULATOR})
        self.agents.close()
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.end()
            self._wait_for_agents()

    def _wait_for_agents(self) -> None:
        """Wait for the agents too: if the lab was killed, they are not our children."""
        deadline = time.monotonic() + _PATIENCE
        for pid in self.pids.values():
            while Path(f"/proc/{pid}/ns/net").exists() and time.monotonic() < deadline:
                time.sleep(0.005)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._lab is None:
            raise TestbedError("the network has not been started")
        return self._lab.ask(request)

    def _last_error_line(self) -> str:
        return self._lab.last_error_line() if self._lab is not None else ""
