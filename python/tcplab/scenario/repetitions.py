"""Differences between the repetitions of a plan: the seed, and the start times of flows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcplab.plan.types import Plan


def repetition(plan: Plan, number: int) -> Plan:
    """The plan of a repetition, counted from 1: its seed and, from the second on, its `phases`.

    `phases` is by flow name in ns, uniform from 0 to the flow's base RTT, decided by (seed, flow name) alone.
    The first repetition has none, nor has any where the plan's `vary` is off or no flow's path has a delay.
    """
    from tcplab import _core

    own: Plan = json.loads(_core.repetition(json.dumps(plan), number))
    return own


def with_phases(plan: Plan) -> Plan:
    """The plan as an engine executes it: each flow starts and stops later by its phase.

    The run ends later by the largest phase, so that no flow is cut short.
    """
    from tcplab import _core

    if not plan.get("phases"):
        return plan
    own: Plan = json.loads(_core.with_phases(json.dumps(plan)))
    return own
