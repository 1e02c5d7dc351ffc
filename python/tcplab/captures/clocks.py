"""The clocks of the hosts that captured a run, from the times that they exchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Clocks of hosts that part by more within a run were set, and no line describes them.
_MAX_SKEW = 1e-3


def lead(first: Path, second: Path) -> tuple[int, float, int, int] | None:
    """The second capture's clock against the first's: its lead (ns), skew, the first's time of it, the bound.

    None where the captures are not those of two hosts of one run, or a clock was set during it.
    """
    if first.parent.resolve() != second.parent.resolve():
        return None
    try:
        clocks = json.loads((first.parent / "manifest.json").read_bytes())["facts"]["clocks"]
        one, two = _of(first, clocks), _of(second, clocks)
        if one is None or two is None or one is two:
            return None
        starts, ends = ([clock[f"realtime_at_{when}"] for clock in (one, two)] for when in ("start", "end"))
        bound = max(
            sum(clock[f"offset_at_{when}_bound"] for clock in (one, two)) for when in ("start", "end")
        )
        passed = ends[0] - starts[0]
        skew = (ends[1] - starts[1]) / passed - 1
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return None
    if passed <= 0 or abs(skew) > _MAX_SKEW:
        return None
    return starts[1] - starts[0], skew, starts[0], bound


def _of(capture: Path, clocks: dict[str, Any]) -> dict[str, Any] | None:
    """The clock of the host whose interface it is: NODE-INTERFACE.pcapng."""
    nodes = [node for node in clocks if capture.name.startswith(f"{node}-")]
    return clocks[max(nodes, key=len)] if nodes else None
