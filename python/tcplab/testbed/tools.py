"""Other programs that networks can use."""

from __future__ import annotations

import re
import subprocess

# The oldest iperf3 whose JSON has all the figures.
IPERF3 = (3, 12)


def iperf3_version(program: str) -> tuple[int, ...] | None:
    """The version of an iperf3; none if it does not say."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"iperf (\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
