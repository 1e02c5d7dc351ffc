"""How long a flow takes to fill a path, and to come back after one loss. Times in seconds."""

from __future__ import annotations

import math

from tcplab.analysis.laws.path import Path
from tcplab.analysis.laws.throughput import CUBIC_BETA, CUBIC_C

INITIAL_WINDOW = 10


def slow_start_time(
    path: Path, window: float | None = None, *, initial_window: int = INITIAL_WINDOW
) -> float:
    """Until the window fills the pipe, doubling each round trip (RFC 5681, section 3.1; RFC 6928).

    The window after n round trips is IW · 2^n, so log2(W / IW) of them; none where IW is as large.
    `window` (W) is in segments; that which fills the pipe when None.
    """
    segments = path.pipe if window is None else window
    return max(0.0, math.log2(max(segments, 1.0) / initial_window)) * path.rtt


def reno_recovery(path: Path, window: float | None = None) -> float:
    """From half the window back to it, a segment each round trip (RFC 5681, section 3.1): W/2 · RTT.

    `window` is in segments; that which fills the pipe when None.
    """
    return (path.pipe if window is None else window) / 2 * path.rtt


def cubic_recovery(path: Path, window: float | None = None) -> float:
    """Until CUBIC's window is where the loss found it: K = cbrt(W (1 - β) / C) (RFC 9438, section 4.2).

    Where the Reno-friendly region (section 4.3) is sooner, its time. `window` as in `reno_recovery`.
    """
    segments = path.pipe if window is None else window
    k = (segments * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3)
    # In the Reno-friendly region the window grows by 3 (1 - β) / (1 + β) segments a round trip.
    friendly = segments * (1 - CUBIC_BETA) / (3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA)) * path.rtt
    return float(min(k, friendly))
