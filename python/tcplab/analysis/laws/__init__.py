"""Theory of a TCP flow: laws of throughput, time to fill a path, time to recover from a loss."""

from __future__ import annotations

from tcplab.analysis.laws.path import Path
from tcplab.analysis.laws.recovery import cubic_recovery, reno_recovery, slow_start_time
from tcplab.analysis.laws.throughput import (
    cubic_response,
    link_limit,
    mathis,
    pftk,
    window_limit,
)

__all__ = [
    "Path",
    "cubic_recovery",
    "cubic_response",
    "link_limit",
    "mathis",
    "pftk",
    "reno_recovery",
    "slow_start_time",
    "window_limit",
]
