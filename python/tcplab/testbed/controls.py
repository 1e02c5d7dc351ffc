"""Congestion controls in the running kernel: its own, and those of tcplab that a run loads into it.

`tl_NAME` is tcplab's; any other name is the kernel's own where it has it, and else tcplab's too. A C file is
whatever it says.
"""

from __future__ import annotations

import base64
import json
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.cc.compiler import Source, ebpf
from tcplab.cc.errors import ControlFileError, NoCompilerError
from tcplab.cc.plans import source_of
from tcplab.plan.types import Plan
from tcplab.testbed.agent import agent_command
from tcplab.testbed.agents import Agents, Json
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.testbed import CONTROLS

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# A scenario's names that differ from the kernel's.
_NAMES = {"bbr1": "bbr"}
_OURS = "tl_"
_LEGS = ("towards_client", "towards_server")
# How long the loader may take to say what it can do, seconds.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Ours:
    """A control to be loaded, with the parameters that differ from their defaults."""

    name: str
    params: tuple[tuple[str, float], ...] = ()
    source: Source | None = None
    """The C file, of one that is not tcplab's own."""


class Loaded:
    """Controls of tcplab's that are in the kernel for as long as their loader lives."""

    def __init__(self, answers: Mapping[Ours, Json], *, elsewhere: bool = False) -> None:
        """`elsewhere`: into another machine's kernel."""
        self._answers = dict(answers)
        self._chosen = ours_elsewhere if elsewhere else ours

    def name(self, cc: Mapping[str, Any]) -> str:
        """The kernel's name for a plan's `cc`."""
        control = self._chosen(cc)
        return kernel_name(str(cc["name"])) if control is None else str(self._answers[control]["registered"])

    @property
    def states(self) -> list[Json]:
        """The layout that a probe needs to read the published gauges."""
        return list(self._answers.values())


def kernel_name(control: str) -> str:
    """The kernel's name of one of its own controls."""
    return _NAMES.get(control, control)


def ours(cc: Mapping[str, Any]) -> Ours | None:
    """The control that must be loaded for a plan's `cc`; none if the kernel has its own."""
    kernels = kernel_name(str(cc["name"]))
    if not _is_ours(cc) and (kernels in available() or kernels in loadable(platform.release())):
        return None
    return _as_ours(cc)


def ours_elsewhere(cc: Mapping[str, Any]) -> Ours | None:
    """The control that must be loaded into another machine's kernel; any other name is that kernel's own."""
    return _as_ours(cc) if _is_ours(cc) else None


def _is_ours(cc: Mapping[str, Any]) -> bool:
    return str(cc["name"]).startswith(_OURS) or source_of(cc) is not None


def _as_ours(cc: Mapping[str, Any]) -> Ours:
    name, source = str(cc["name"]), source_of(cc)
    params = {key: float(value) for key, value in (cc.get("params") or {}).items()}
    return Ours(name if source else name.removeprefix(_OURS), tuple(sorted(params.items())), source)


def wanted(plan: Plan) -> list[Ours]:
    """The controls to load for a plan, each once."""
    found = map(ours, _chosen(plan))
    return list(dict.fromkeys(control for control in found if control is not None))


def wanted_at(plan: Plan, host: str) -> list[Ours]:
    """The controls to load at a host elsewhere, for the flows that it is an end of, each once."""
    flows = (flow for flow in plan["flows"] if host in (flow["from"], flow["to"]) and flow.get("cc"))
    found = (ours_elsewhere(flow["cc"]) for flow in flows)
    return list(dict.fromkeys(control for control in found if control is not None))


def _chosen(plan: Plan) -> Iterator[Mapping[str, Any]]:
    """The controls of flows, and of the legs of accelerators."""
    for flow in plan["flows"]:
        if flow.get("cc"):
            yield flow["cc"]
    for node in plan.get("nodes", ()):
        for leg in _LEGS:
            cc = (node.get("accelerate") or {}).get(leg, {}).get("cc")
            if cc:
                yield cc


def legs(settings: Mapping[str, Any], loaded: Loaded) -> Json:
    """Its legs alone, as far as it has any."""
    return {
        leg: {**settings[leg], "cc": {**cc, "name": loaded.name(cc)}}
        for leg in _LEGS
        if (cc := settings.get(leg, {}).get("cc"))
    }


def load(agents: Agents, asked: Sequence[Ours], loader: str = CONTROLS) -> Loaded:
    """Load controls by the loader, or by another machine's agent.

    Raises TestbedError for the first that is refused.
    """
    commands = [load_command(one) for one in asked]
    answers = agents.ask((loader, command) for command in commands)
    keys = ("registered", "state", "phases", "gauges")
    facts = [{key: answer[key] for key in keys} for answer in answers]
    return Loaded(dict(zip(asked, facts, strict=True)), elsewhere=loader != CONTROLS)


def load_command(control: Ours) -> Json:
    """The command for a loader; raises TestbedError when the control's file cannot be compiled."""
    command = {"do": "load", "name": control.name, "params": dict(control.params)}
    if control.source is None:
        return command
    try:
        return {**command, "object": base64.b64encode(ebpf(control.source).read_bytes()).decode()}
    except ControlFileError as problem:
        raise TestbedError(str(problem)) from None
    except NoCompilerError as problem:
        raise TestbedError(problem.message, problem.hint) from None


def loader() -> Json:
    """The loader's description of itself.

    `controls` are those of tcplab's own that it has; `not_built` says why it has none, `obstacle` why none
    at all can be loaded here, a user's included. `swept` are those that a loader took away which were
    somebody's who is gone.
    """
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
        hint = "install tcplab again: uv sync"
        obstacle = {"message": message, "hint": hint}
        return {"controls": [], "not_built": None, "obstacle": obstacle, "swept": []}
    return {key: hello[key] for key in ("controls", "not_built", "obstacle", "swept")}


def lab_loader(*, privileged: bool) -> Json:
    """The loader of a lab: the same, but for one without privileges, whose user namespace may load none."""
    hello = loader()
    if privileged or hello["obstacle"] is not None:
        return hello
    message = "networks take a user namespace here, whose capabilities do not count"
    hint = "start this process with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW, too"
    return {**hello, "obstacle": {"message": message, "hint": hint}}


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
