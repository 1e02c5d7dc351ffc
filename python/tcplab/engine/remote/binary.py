"""The program that is sent to remote hosts: a static agent for each kind of machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from tcplab.testbed.agent import agent_command
from tcplab.testbed.errors import TestbedError

_AGENTS = Path(__file__).parent / "agents"
# Output of `uname -m` for each build.
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def agent_for(machine: str) -> bytes:
    """The agent for what `uname -m` calls `machine`; raises TestbedError.

    TCPLAB_REMOTE_AGENT names another program.
    """
    named = os.environ.get("TCPLAB_REMOTE_AGENT")
    path = Path(named) if named else _AGENTS / f"tcplab-agent-{_MACHINES.get(machine, machine)}"
    try:
        return path.read_bytes()
    except OSError as problem:
        have = ", ".join(built()) or "none"
        raise TestbedError(
            f"there is no agent for {machine}: {path}: {problem.strerror}",
            f"in a source tree: scripts/agent {machine} (built: {have})",
        ) from None


def agent_command_of_a_client() -> list[str]:
    """How an agent is started that serves one client: the small program where it is built, else our own."""
    program = _AGENTS / f"tcplab-agent-{platform.machine()}"
    return [str(program), "node"] if os.access(program, os.X_OK) else agent_command("node")


def built() -> list[str]:
    """The machines there are agents for."""
    return sorted(path.name.removeprefix("tcplab-agent-") for path in _AGENTS.glob("tcplab-agent-*"))
