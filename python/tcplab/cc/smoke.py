"""A short run of a control in the simulator, in a process of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from tcplab.cc.apart import Apart
from tcplab.cc.compiler import Source, native
from tcplab.cc.errors import ControlCrashError, ControlFileError, NoCompilerError
from tcplab.plan.types import Control

SECONDS = 5
# Loss, a queue that overflows, and an idle second, so that each operation has something to do.
_PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 BDP", "loss": "0.2 %"}


class SmokeError(Exception):
    """The control does not get through the run."""


@dataclass(frozen=True)
class Smoke:
    """The result of a short run."""

    goodput: float
    """Of the whole run, bit/s."""
    retransmits: int
    phases: tuple[str, ...]
    """Those it went through, in the order of their first time."""


def scenario(file: Path) -> dict[str, Any]:
    """The scenario of the run."""
    bulk = {"name": "bulk", "kind": "tcp", "cc": str(file)}
    return {
        "tcplab": 1,
        "name": "smoke",
        "network": {"path": _PATH},
        "flows": [bulk],
        "duration": f"{SECONDS} s",
    }


def simulated(source: Source) -> Smoke:
    """Run it twice, which must come to the same; raises SmokeError, NoCompilerError and ControlFileError.

    Both runs are in one process, as a study's are, so that what a control keeps outside its state is seen.
    """
    try:
        library = native(source, checked=True)
    except (NoCompilerError, ControlFileError):
        # Without the sanitizer's library it runs unchecked.
        library = native(source)
    libraries = {str(source.file): str(library)}
    try:
        with Apart(libraries) as apart:
            first, second = (_once(apart, source, libraries) for _ in range(2))
            no_window = apart.no_window()
    except ControlCrashError as problem:
        raise SmokeError(str(problem)) from None
    if no_window:
        raise SmokeError(f"{no_window}: it leaves snd_cwnd at 0, so nothing can be sent; the minimum is 1")
    if first != second:
        raise SmokeError(
            "two runs with the same seed differ: keep everything in struct state, nothing in static variables"
        )
    if first["last_second"] == 0:
        raise SmokeError(f"it stalls: after {first['stalled']:.1f} s nothing arrives any more")
    return Smoke(first["goodput"], first["retransmits"], tuple(first["phases"]))


def _once(apart: Apart, source: Source, libraries: Mapping[str, str]) -> dict[str, Any]:
    import polars as pl

    from tcplab.scenario import expand, from_data

    plan = expand(from_data(scenario(Path("reno"))))
    cc: Control = {"name": "smoke", "params": {}, "file": str(source.file), "source": source.text}
    plan = {**plan, "flows": [{**flow, "cc": cc} for flow in plan["flows"]]}
    apart.open(json.dumps(plan), None, libraries)
    while not apart.advance(1000).done:
        pass
    tables = {name: pl.read_ipc(BytesIO(table)) for name, table in apart.finish().items()}
    intervals, sockets = tables["intervals"], tables["sockets"]
    received = intervals.filter(pl.col("bytes_received") > 0)
    last = intervals.filter(pl.col("time") > (SECONDS - 1) * 1e9)
    return {
        "goodput": int(intervals["bytes_received"].sum()) * 8 / SECONDS,
        "last_second": int(last["bytes_received"].sum()),
        "stalled": max(received["time"].to_list(), default=0) / 1e9,
        "retransmits": int(tables["flows"]["retransmits"].sum()),
        "phases": list(dict.fromkeys(sockets["phase"].drop_nulls().to_list())),
        "rows": hashlib.blake2b(sockets.write_csv().encode()).hexdigest(),
    }
