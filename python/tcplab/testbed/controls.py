"""Congestion controls in the running kernel: its own, and those of tcplab that a run loads into it.

`tl_NAME` is tcplab's; any other name is the kernel's own where it has it, and else tcplab's too.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.testbed.agents import Agents, Json
from tcplab.testbed.testbed import CONTROLS, agent_command

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# A scenario's names that differ from the kernel's.
_NAMES = {"bbr1": "bbr"}
_OURS = "tl_"
# How long the loader may take to say what it can do, seconds.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Ours:
    """A control of tcplab's with the parameters that differ from their defaults."""

    name: str
    params: tuple[tuple[str, float], ...] = ()


class Loaded:
    """Controls of tcplab's that are in the kernel for as long as their loader lives."""

    def __init__(self, answers: Mapping[Ours, Json]) -> None:
        self._answers = dict(answers)

    def name(self, cc: Mapping[str, Any]) -> str:
        """What to choose a plan's `cc` by in the kernel."""
        control = ours(cc)
        return kernel_name(str(cc["name"])) if control is None else str(self._answers[control]["registered"])

    @property
    def states(self) -> list[Json]:
        """What a probe must know to read what they publish."""
        return list(self._answers.values())


def kernel_name(control: str) -> str:
    """What the kernel calls a control of its own."""
    return _NAMES.get(control, control)


def ours(cc: Mapping[str, Any]) -> Ours | None:
    """The control that must be loaded for a plan's `cc`; none if the kernel has its own."""
    name = str(cc["name"])
    kernels = kernel_name(name)
    if not name.startswith(_OURS) and (kernels in available() or kernels in loadable(platform.release())):
        return None
    params = {key: float(value) for key, value in (cc.get("params") or {}).items()}
    return Ours(name.removeprefix(_OURS), tuple(sorted(params.items())))


def wanted(plan: Mapping[str, Any]) -> list[Ours]:
    """The controls to load for a plan, each once."""
    found = (ours(flow["cc"]) for flow in plan["flows"] if flow.get("cc"))
    return list(dict.fromkeys(control for control in found if control is not None))


def load(agents: Agents, plan: Mapping[str, Any]) -> Loaded:
    """Load what a plan asks for; raises TestbedError for the first that is refused.

    There is a loader among the agents if `wanted` names any control.
    """
    asked = wanted(plan)
    commands = [{"do": "load", "name": one.name, "params": dict(one.params)} for one in asked]
    answers = agents.ask((CONTROLS, command) for command in commands)
    keys = ("registered", "state", "phases")
    told = [{key: answer[key] for key in keys} for answer in answers]
    return Loaded(dict(zip(asked, told, strict=True)))


def loader() -> Json:
    """What the loader says of itself: the `controls` it has, the `obstacle` to loading any or none."""
    try:
        said = subprocess.run(
            agent_command("controls"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        ).stdout
        hello: Json = json.loads(said.splitlines()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as problem:
        message = f"the process that loads controls does not start: {problem}"
        return {"controls": [], "obstacle": {"message": message, "mend": "install tcplab again: uv sync"}}
    return {"controls": hello["controls"], "obstacle": hello["obstacle"]}


def available() -> list[str]:
    """The controls that are built in or loaded, by the kernel's names."""
    try:
        return _AVAILABLE.read_text(encoding="ascii").split()
    except OSError:
        return []


def loadable(release: str) -> list[str]:
    """The controls that are modules of this kernel, by the kernel's names."""
    folder = Path("/lib/modules") / release / "kernel/net/ipv4"
    names = (path.name.split(".")[0] for path in folder.glob("tcp_*.ko*"))
    return sorted(name.removeprefix("tcp_") for name in names if name not in ("tcp_diag", "tcp_probe"))
