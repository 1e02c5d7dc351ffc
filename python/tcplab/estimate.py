"""Whether this machine has room for what runs will take; `crates/plan` estimates that from their plans."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING

from tcplab import _core
from tcplab.engine.base import Problem
from tcplab.quantities import count, size

if TYPE_CHECKING:
    from tcplab.plan.types import Plan

MANY_ROWS = 10_000_000
# The process that makes a run, before its first row.
_MIN_MEMORY = 160 << 20


@dataclass(frozen=True)
class Estimate:
    """Resources of one run of a plan."""

    packets: int
    """Packets that arrive at a node, every hop counted."""
    rows: Mapping[str, int]
    """By table."""
    disk: int
    """Bytes of its run directory."""
    memory: int
    """Bytes of the process that makes and summarizes it, and writes its report."""

    @property
    def total_rows(self) -> int:
        """Of all tables."""
        return sum(self.rows.values())

    def __str__(self) -> str:
        return (
            f"about {_counted(self.packets, 'packet')}, {_counted(self.total_rows, 'row')}, "
            f"{size(self.disk)} on disk, {size(self.memory)} of memory"
        )


def _counted(number: int, word: str) -> str:
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def estimate(plan: Plan) -> Estimate:
    """The resources of one run of `plan`. The time to compute them does not grow with duration or streams."""
    text = json.dumps(plan)
    found = json.loads(_core.estimate(text))
    # A copy of the plan is in the run directory. Large networks have many routes.
    return Estimate(**{**found, "disk": found["disk"] + len(text)})


def many_rows(one: Estimate) -> Iterator[str]:
    """A warning, where a run gives more rows than are easily looked at."""
    if one.total_rows > MANY_ROWS:
        table, rows = max(one.rows.items(), key=lambda item: item[1])
        text = f"about {count(one.total_rows)} rows, {count(rows)} of them in {table}"
        yield f"sample: {text}: sample less often"


def beyond(
    runs: Iterable[tuple[Estimate, int]], at_once: int, place: File, *, yes: bool = False
) -> list[Problem]:
    """The resources that this machine lacks for plans run so many times each, `at_once` runs at a time.

    Their results go to `place`. Fatal unless the user has said `yes`.
    """
    every = list(runs)
    memory = [one.memory for one, times in every for _ in range(min(times, at_once))]
    # They share one interpreter.
    together = _MIN_MEMORY + sum(one - _MIN_MEMORY for one in sorted(memory)[-at_once:])
    kept = sum(one.disk * times for one, times in every)
    found = []
    for what, wanted, free in (("memory", together, _free_memory()), ("disk", kept, _free_disk(place))):
        if free is not None and wanted > free:
            message = f"about {size(wanted)} needed, {size(free)} free"
            fix = "sample less often, run fewer at a time (--jobs), or run anyway with --yes"
            found.append(Problem(what, message, fix, fatal=not yes))
    return found


def _free_memory() -> int | None:
    """Bytes that this process can still get: the machine's, and its control group's."""
    free = []
    with suppress(OSError, ValueError, StopIteration):
        lines = File("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with suppress(OSError, ValueError):
        group = File("/sys/fs/cgroup")
        limit, used = (
            (group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current")
        )
        free.append(max(0, int(limit) - int(used)))
    return min(free, default=None)


def _free_disk(place: File) -> int | None:
    """Bytes free where a directory is, or will be."""
    place = place.absolute()
    there = next((folder for folder in (place, *place.parents) if folder.is_dir()), None)
    with suppress(OSError):
        usage = shutil.disk_usage(there or "/")
        # /proc and its like have no size.
        return usage.free if usage.total else None
    return None
