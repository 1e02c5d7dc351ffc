"""tcplab's controls against the kernel's own, and in the simulator, on a matrix of paths.

A cell is one path; each control has such a path to itself, three or six of them in one run. What a cell
came to is kept in a file until the table is whole: a measurement that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcplab.results import Run

# The columns: the control's name, and the kernel's name of its own.
CONTROLS = (("reno", "reno"), ("cubic", "cubic"), ("bbr1", "bbr"))
RATES = (10, 100)
# RTT in ms, and how long a run on such a path goes on, in seconds.
RTTS = ((10, 10), (50, 15), (150, 25))
BUFFERS = (0.25, 2)
REPETITIONS = 3
# From this rate on, in Mbit/s, six paths at once are too much for two cores: first the kernel's, then ours.
FAST = 100
# Left out of every run, seconds.
WARM_UP = 5
GOODPUT, RTT, WITHIN = 0.05, 0.10, 1.5
# Fewer segments than this in all repetitions are too few for their ratio to mean anything.
FEW = 20
COLUMNS = [
    *("path", "control", "Mbit/s: kernel's", "ours", "sim"),
    *("RTT ms: kernel's", "ours", "sim"),
    *("retransmitted: kernel's", "ours", "sim", "ours off by", "sim off by"),
]

Measured = dict[str, float]
RunIt = Callable[..., Run]


def rows(folder: Path, run: RunIt, kept: Path) -> Iterator[list[str]]:
    """The table's rows, measured or remembered; the memory is given up at the end."""
    done: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for rate, (rtt, duration), buffer in product(RATES, RTTS, BUFFERS):
        path = f"{rate} Mbit/s, {rtt} ms, {buffer:g} BDP"
        if path not in done:
            done[path] = _cell(folder, run, rate, rtt, buffer, duration)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(done, indent=1), encoding="utf-8")
        for name, _ in CONTROLS:
            yield _row(path + done[path]["mark"], name, done[path]["measured"])
    kept.unlink(missing_ok=True)


def scenario(
    rate: int, rtt: int, buffer: float, duration: int, controls: list[tuple[str, str]]
) -> dict[str, Any]:
    """One path for each control: flows by name, with the control of each."""
    hosts = {"send_buffer_max": "64 MB", "receive_buffer_max": "64 MB"}
    path = {"rate": f"{rate} Mbit/s", "rtt": f"{rtt} ms", "queue": f"{buffer} BDP", "per_flow": "on"}
    flows = [{"name": flow, "kind": "tcp", "cc": cc} for flow, cc in controls]
    network = {"path": path, "hosts": hosts}
    return {"tcplab": 1, "name": "matrix", "network": network, "flows": flows, "duration": f"{duration} s"}


def _cell(folder: Path, run: RunIt, rate: int, rtt: int, buffer: float, duration: int) -> dict[str, Any]:
    path = (rate, rtt, buffer, duration)
    own = [(f"own-{name}", kernels) for name, kernels in CONTROLS]
    ours = [(f"tl-{name}", f"tl_{name}") for name, _ in CONTROLS]
    simulated = [(f"sim-{name}", name) for name, _ in CONTROLS]
    batches = [("kernel", own), ("kernel", ours)] if rate >= FAST else [("kernel", [*own, *ours])]
    measured: dict[str, Measured] = {}
    late = False
    for engine, flows in (*batches, ("sim", simulated)):
        done = run(scenario(*path, flows), engine, folder, repeat=REPETITIONS)
        measured |= {flow: _figures(done, flow) for flow, _ in flows}
        late |= any(each.overload for each in done.manifests.values())
    return {"measured": measured, "mark": " (overloaded)" if late else ""}


def _figures(run: Run, flow: str) -> Measured:
    """Medians over the repetitions, after the warm-up: one disturbed run moves none of them."""
    steady = (pl.col("flow") == flow) & (pl.col("time") > WARM_UP * 1e9)
    each = [
        _of_one(
            run.intervals.filter(steady, repetition=number), run.sockets.filter(steady, repetition=number)
        )
        for number in run.manifests
    ]
    medians = {name: float(np.median([one[name] for one in each])) for name in each[0]}
    return medians | {"count": sum(one["count"] for one in each)}


def _of_one(intervals: pl.DataFrame, sockets: pl.DataFrame) -> Measured:
    retransmitted = float(intervals["retransmits"].sum())
    return {
        "goodput": float(intervals["bytes_received"].sum()) * 8e9 / float(intervals["duration"].sum()) / 1e6,
        "rtt": float(np.mean(sockets["srtt"].drop_nulls().to_numpy())) / 1e6,
        "retransmitted": retransmitted / (float(intervals["bytes_sent"].sum()) / 1448),
        "count": retransmitted,
    }


def _row(path: str, name: str, measured: dict[str, Measured]) -> list[str]:
    own, ours, sim = (measured[f"{kind}-{name}"] for kind in ("own", "tl", "sim"))
    columns = (own, ours, sim)
    return [
        path,
        name,
        *(f"{one['goodput']:.2f}" for one in columns),
        *(f"{one['rtt']:.1f}" for one in columns),
        *(f"{100 * one['retransmitted']:.3f} %" for one in columns),
        _verdict(ours, own),
        _verdict(sim, ours),
    ]


def _verdict(one: Measured, other: Measured) -> str:
    """The figures outside their tolerance, in bold; nothing if all are within."""
    goodput, rtt = (one[key] / other[key] - 1 for key in ("goodput", "rtt"))
    found = [f"goodput {goodput:+.1%}"] if abs(goodput) > GOODPUT else []
    found += [f"RTT {rtt:+.1%}"] if abs(rtt) > RTT else []
    if max(one["count"], other["count"]) >= FEW:
        if 0 in (one["retransmitted"], other["retransmitted"]):
            found += ["retransmitted against none" if one["retransmitted"] else "none retransmitted"]
        elif not 1 / WITHIN <= (factor := one["retransmitted"] / other["retransmitted"]) <= WITHIN:
            found += [f"retransmitted x {factor:.2g}"]
    return f"**{', '.join(found)}**" if found else ""
