"""A network of real hosts, from its layout to its end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import tcplab
from tcplab.testbed.agents import Agents, Json
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import Layout

# The emulator's name among the agents; nodes' names are letters, digits, - and _.
EMULATOR = ":emulator"
# The name of the process that loads congestion controls.
CONTROLS = ":controls"
# How long processes may take to end before they are killed, seconds.
_PATIENCE = 5.0
_START_LAB = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tcplab.testbed.lab import main; main(int(sys.argv[2]))"
)
_START_AGENT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from tcplab import _core;"
    " sys.exit(_core.agent_main(sys.argv[1:]))"
)


def agent_command(*arguments: str) -> list[str]:
    """How an agent is started.

    The agent is part of the extension module, so that wherever tcplab is installed, so is the agent of
    the same version. TCPLAB_AGENT names another program instead.
    """
    program = os.environ.get("TCPLAB_AGENT")
    if program:
        return [program, *arguments]
    return [sys.executable, "-I", "-S", "-c", _START_AGENT, _root(), *arguments]


def agent_missing() -> str | None:
    """Why there is no agent to start; none if there is one."""
    program = os.environ.get("TCPLAB_AGENT")
    if program:
        return None if os.access(program, os.X_OK) else f"TCPLAB_AGENT names {program}, which is no program"
    try:
        from tcplab import _core
    except ImportError as problem:
        return f"the extension module is missing: {problem}"
    return None if hasattr(_core, "agent_main") else "the extension module was built without the agent"


def _root() -> str:
    return str(Path(tcplab.__file__).parents[1])


class Testbed:
    """A namespace for each node, joined as a layout says, for as long as the `with` statement lasts."""

    __test__ = False

    def __init__(self, layout: Layout, *, loads_controls: bool = False) -> None:
        self.layout = layout
        self._loads_controls = loads_controls
        self.hellos: dict[str, Json] = {}
        """What each agent said of itself."""
        self.offloads: dict[str, list[str]] = {}
        """Offloads that are on, by node and interface."""
        self.qdiscs: dict[str, str] = {}
        """Queue disciplines, by node and interface."""
        self.agents = Agents({})
        self.pids: dict[str, int] = {}
        # What our processes say to people; it has no name on disk.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._lab: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.down()

    def start(self) -> None:
        """Start every process; raises TestbedError."""
        names = [namespace.node for namespace in self.layout.namespaces]
        commands = {name: agent_command("node", "--new-net") for name in names}
        if self.layout.emulated:
            commands[EMULATOR] = agent_command("emu")
        if self._loads_controls:
            commands[CONTROLS] = agent_command("controls")
        pairs = {name: socket.socketpair() for name in commands}
        theirs = {name: pair[1] for name, pair in pairs.items()}
        try:
            self._lab = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START_LAB, _root(), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                pass_fds=[one.fileno() for one in theirs.values()],
            )
            self.agents = Agents({name: pair[0] for name, pair in pairs.items()})
            children = [
                {"name": name, "command": command, "socket": theirs[name].fileno()}
                for name, command in commands.items()
            ]
            self.pids = self._ask({"do": "spawn", "children": children})["pids"]
        finally:
            for one in theirs.values():
                one.close()
        try:
            self.hellos = self.agents.greet()
        except TestbedError as problem:
            raise TestbedError(problem.message, problem.mend or self._said()) from None

    def build(self) -> None:
        """Join and configure the namespaces; the emulator has made its interfaces already."""
        cables = [[end.__dict__ for end in wire.ends] for wire in self.layout.wires if not wire.emulated]
        nodes = [namespace.to_json() for namespace in self.layout.namespaces]
        built = self._ask({"do": "build", "namespaces": nodes, "cables": cables})
        self.offloads, self.qdiscs = built["offloads"], built["qdiscs"]

    def verify(self, pairs: Iterable[tuple[str, str, int]]) -> None:
        """See that hosts reach each other by a version of IP; raises TestbedError for the first pair that
        does not."""
        asked: dict[str, dict[str, str]] = {}
        for source, destination, version in pairs:
            address = self.layout.arrival(source, destination).ip(version)
            if address is not None:
                asked.setdefault(source, {})[address] = destination
        answer = self._ask({"do": "reach", "pairs": {node: list(them) for node, them in asked.items()}})
        for node, silent in answer["unreachable"].items():
            raise TestbedError(
                f"{asked[node][silent[0]]} ({silent[0]}) does not answer {node}",
                "this should not happen: keep the run directory and report it",
            )

    def sysctls(self, node: str, names: list[str]) -> dict[str, str | None]:
        """Settings as a node has them."""
        found: dict[str, str | None] = self._ask({"do": "read_sysctls", "node": node, "names": names})[
            "sysctls"
        ]
        return found

    def down(self) -> None:
        """End every process, and with them every namespace and interface."""
        self.agents.close()
        lab, self._lab = self._lab, None
        if lab is not None and lab.stdin is not None and lab.stdout is not None:
            self._end(lab, lab.stdin, lab.stdout)
        self._stderr.close()

    def _end(self, lab: subprocess.Popen[bytes], commands: IO[bytes], answers: IO[bytes]) -> None:
        with suppress(BrokenPipeError):
            commands.close()
        try:
            lab.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            # Its agents die with it.
            lab.kill()
            lab.wait()
        answers.close()
        self._wait_for_agents()

    def _wait_for_agents(self) -> None:
        """Wait for the agents too: if the lab was killed, they are no children of ours."""
        deadline = time.monotonic() + _PATIENCE
        for pid in self.pids.values():
            while Path(f"/proc/{pid}/ns/net").exists() and time.monotonic() < deadline:
                time.sleep(0.005)

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        lab = self._lab
        if lab is None or lab.stdin is None or lab.stdout is None:
            raise TestbedError("the network has not been started")
        # A dead lab shows in the missing answer.
        with suppress(BrokenPipeError):
            lab.stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            lab.stdin.flush()
        line = lab.stdout.readline()
        if not line:
            raise TestbedError("the process that builds the network has died", self._said())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TestbedError(answer["error"], answer.get("mend", ""))
        return answer

    def _said(self) -> str:
        """The last thing our processes said to people."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
