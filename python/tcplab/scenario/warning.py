"""Warnings before a run: settings that are valid but rarely intended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcplab.plan.types import Plan


def warnings(plan: Plan) -> list[str]:
    """Warnings about a plan before a run, one sentence each."""
    from tcplab import _core

    return _core.warnings(json.dumps(plan))
