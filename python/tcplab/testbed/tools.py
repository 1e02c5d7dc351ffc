"""Other programs that networks can use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

# Ordinary users of some distributions have no programs of administrators on their PATH.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
# The oldest iperf3 whose JSON has all the figures.
IPERF3 = (3, 12)


def search_path() -> str:
    """Where programs are looked for: PATH, and the directories of administrators' programs."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"


def located(name: str) -> str | None:
    """A program's path; none if it is not installed."""
    return shutil.which(name, path=search_path())


def iperf3_version(program: str) -> tuple[int, ...] | None:
    """The version of an iperf3; none if it does not say."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"iperf (\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
