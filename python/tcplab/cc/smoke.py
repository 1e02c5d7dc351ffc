"""A short run of a control in the simulator, in a process of its own: all that a crash takes along."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import tcplab
from tcplab.cc.compiler import Source, native
from tcplab.cc.errors import ControlFileError, NoCompilerError

SECONDS = 5
# Loss, a queue that overflows, and an idle second, so that each operation has something to do.
_PATH = {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 BDP", "loss": "0.2 %"}
# The simulator needs a fraction of a second for it.
_PATIENCE = 60.0
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from tcplab.cc.smoke import main; main(*sys.argv[1:])"
)
_SIGNALS = {
    signal.SIGSEGV: "it follows a null or wild pointer",
    signal.SIGBUS: "it follows a wild pointer",
    signal.SIGFPE: "it divides by zero",
    signal.SIGILL: "it runs into code that cannot be reached",
    signal.SIGABRT: "it was ended for undefined behaviour",
}


class SmokeError(Exception):
    """The control does not get through the run."""


@dataclass(frozen=True)
class Smoke:
    """What a short run came to."""

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

    Both runs are in one process, as repetitions are, so that what a control keeps outside its state is seen.
    """
    try:
        library = native(source, checked=True)
    except (NoCompilerError, ControlFileError):
        # Without the sanitizer's library it runs unchecked.
        library = native(source)
    first, second = json.loads(_run(source, library))
    if first != second:
        raise SmokeError(
            "two runs with the same seed differ: keep everything in struct state, nothing in static variables"
        )
    if first["last_second"] == 0:
        raise SmokeError(f"it stalls: after {first['stalled']:.1f} s nothing arrives any more")
    return Smoke(first["goodput"], first["retransmits"], tuple(first["phases"]))


def _run(source: Source, library: Path) -> str:
    root = str(Path(tcplab.__file__).parents[1])
    command = [sys.executable, "-I", "-c", _START, root, str(source.file), str(library)]
    # `-I` leaves the environment's packages in place; only the tree this came from is added.
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE, check=False, input=source.text
        )
    except subprocess.TimeoutExpired:
        raise SmokeError(f"{SECONDS} simulated seconds took more than {_PATIENCE:g} s: it may loop") from None
    if done.returncode == 0:
        return done.stdout
    said = [line for line in done.stderr.splitlines() if line.strip()]
    undefined = next((line for line in said if "runtime error:" in line), None)
    if undefined is not None:
        raise SmokeError(undefined.replace("runtime error: ", ""))
    if done.returncode < 0:
        number = signal.Signals(-done.returncode)
        raise SmokeError(f"it crashes ({number.name}): {_SIGNALS.get(number, 'the process was ended')}")
    raise SmokeError(said[-1] if said else "it ended without a word")


def main(file: str, library: str) -> None:
    """Run it, with the text of the file on standard input, and print what came of each run."""
    from tcplab.scenario import expand, from_data

    data = scenario(Path("reno"))
    plan = expand(from_data(data))
    for flow in plan["flows"]:
        flow["cc"] = {"name": "smoke", "params": {}, "file": file, "source": sys.stdin.read()}
    sys.stdout.write(json.dumps([_once(plan, file, library) for _ in range(2)]))


def _once(plan: dict[str, Any], file: str, library: str) -> dict[str, Any]:
    import polars as pl

    from tcplab import _core

    simulation = _core.Simulation(json.dumps(plan), None, {file: library})
    while not simulation.advance(1000).done:
        pass
    tables = {name: pl.read_ipc(BytesIO(table)) for name, table in simulation.finish().items()}
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
