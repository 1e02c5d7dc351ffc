"""What differs between the repetitions of a plan: the seed, and when flows start.

Without random decisions in the network, a new seed alone changes nothing: a repetition of a simulation would
be a copy. A phase of up to one base RTT is the least change that a real path makes, too, since flows of
different origin are not synchronized (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched
Gateways", 1992).
"""

from __future__ import annotations

import hashlib
from typing import Any

Plan = dict[str, Any]


def repetition(plan: Plan, number: int) -> Plan:
    """The plan of a repetition, counted from 1: its seed and, from the second on, its `phases`.

    `phases` is by flow name in ns, uniform from 0 to the flow's base RTT, decided by (seed, flow name) alone.
    The first repetition has none, nor has any where the plan's `vary` is off or no flow's path has a delay.
    """
    own = {**plan, "seed": plan["seed"] + number - 1}
    if number == 1 or not plan["vary"]:
        return own
    phases = {flow["name"]: _phase(own["seed"], flow) for flow in plan["flows"] if flow["base_rtt"]}
    return {**own, "phases": phases} if phases else own


def with_phases(plan: Plan) -> Plan:
    """The plan as an engine executes it: each flow starts and stops later by its phase.

    The run ends later by the largest phase, so that no flow is cut short.
    """
    phases = plan.get("phases")
    if not phases:
        return plan
    return {
        **plan,
        "duration": plan["duration"] + max(phases.values()),
        "flows": [_later(flow, phases.get(flow["name"], 0)) for flow in plan["flows"]],
    }


def _phase(seed: int, flow: Plan) -> int:
    digest = hashlib.sha256(f"{seed} {flow['name']}".encode()).digest()
    phase: int = int.from_bytes(digest[:8], "big") * flow["base_rtt"] >> 64
    return phase


def _later(flow: Plan, phase: int) -> Plan:
    stop = flow["stop"]
    return {**flow, "start": flow["start"] + phase, "stop": None if stop is None else stop + phase}
