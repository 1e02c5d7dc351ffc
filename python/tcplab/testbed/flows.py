"""The flows of a plan in a lab that stays up."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow, Plan
from tcplab.testbed import controls
from tcplab.testbed.agent import agent_command
from tcplab.testbed.agents import Agents
from tcplab.testbed.held import Held
from tcplab.testbed.layout import lay_out
from tcplab.testbed.ping import await_routes
from tcplab.testbed.testbed import CONTROLS

Json = dict[str, Any]
# Long enough for a person who looks on, ns.
_DAY = 86_400_000_000_000
# From the command to start to the start itself, ns.
_LEAD = 200_000_000


def start_in(lab: Held, plan: Plan, folder: Path, processes: list[subprocess.Popen[bytes]]) -> Agents:
    """Start a plan's flows in a lab of the same network; raises TestbedError.

    A flow that would last to the plan's end lasts a day. Nothing is sampled. Each node's agent is a process
    that is added to `processes`; with its end its flows end.
    """
    layout = lay_out(plan, emulate_all=True)
    if lab.about.get("routers"):
        await_routes(plan, layout, lab.ask, "look at the routes and neighbours of the routers")
    flows = plan["flows"]
    nodes = sorted({flow[end] for flow in flows for end in ("from", "to")})
    commands = {node: lab.command(node, agent_command("node")) for node in nodes}
    if controls.wanted(plan):
        commands[CONTROLS] = agent_command("controls")
    agents = Agents({name: _start(command, processes) for name, command in commands.items()})
    agents.greet()
    loaded = controls.load(agents, controls.wanted(plan))
    agents.ask((node, {"do": "configure", "node": node, "dir": str(folder), "cpus": []}) for node in nodes)

    def asked(flow: Flow, role: str, ports: list[int]) -> Json:
        ours = dict(flow)
        if flow["stop"] is not None and flow["stop"] >= plan["duration"]:
            ours["stop"] = _DAY
        if flow.get("cc"):
            ours["cc"] = {**flow["cc"], "name": loaded.name(flow["cc"])}
        address = layout.arrival(flow["from"], flow["to"]).ip(flow["ip"])
        generator = flow.get("generator", "native")
        return {
            "do": "flow",
            "role": role,
            "address": address,
            "ports": ports,
            "sample": None,
            "seed": plan["seed"],
            "prompt": False,
            "generator": None if generator == "native" else generator,
            "flow": ours,
        }

    served = [flow for flow in flows if kind_of(flow).served]
    answers = agents.ask((flow["to"], asked(flow, "server", fixed_ports(flow))) for flow in served)
    ports = {flow["name"]: answer["ports"] for flow, answer in zip(served, answers, strict=True)}
    agents.ask((flow["from"], asked(flow, "client", ports.get(flow["name"], []))) for flow in flows)
    at = time.monotonic_ns() + _LEAD
    agents.ask((node, {"do": "start", "at": at, "duration": _DAY}) for node in nodes)
    return agents


def fixed_ports(flow: Flow) -> list[int]:
    """The ports of a flow's streams that its plan gives; none: the server's kernel chooses them."""
    first = flow.get("port")
    return [] if first is None else list(range(first, first + flow["streams"]))


def _start(command: list[str], processes: list[subprocess.Popen[bytes]]) -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        end = theirs.fileno()
        processes.append(subprocess.Popen(command, stdin=end, stdout=end, start_new_session=True))
    return ours
