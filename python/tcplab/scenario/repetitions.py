"""Differences between the repetitions of a plan: the seed, and the start times of flows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def repetition(plan: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The plan of a repetition, counted from 1: its seed and, from the second on, its `phases`.

    `phases` is by flow name in ns, uniform from 0 to the flow's base RTT, decided by (seed, flow name) alone.
    The first repetition has none, nor has any where the plan's `vary` is off or no flow's path has a delay.
    """
    from tcplab import _core

    own: dict[str, Any] = json.loads(_core.repetition(json.dumps(plan), number))
    return own


def with_phases(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan as an engine executes it: each flow starts and stops later by its phase.

    The run ends later by the largest phase, so that no flow is cut short.
    """
    from tcplab import _core

    if not plan.get("phases"):
        return plan
    own: dict[str, Any] = json.loads(_core.with_phases(json.dumps(plan)))
    return own
