"""Queues under Poisson arrivals: what theory expects of them, and what the packets of a run had.

The queue is M/D/1: packets of one size arrive as a Poisson process at a link with a constant rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.results import Run

PAYLOAD, FRAME = 1000, 1042
# Batches of consecutive packets whose means are taken for independent.
BATCHES = 40
# Packets before which the queue may still remember that it was empty at first.
WARM_UP = 2000

Figures = NDArray[np.float64]
RunIt = Callable[..., Run]


def mean_wait(load: float) -> float:
    """Mean wait in an endless M/D/1 queue, in service times (Pollaczek-Khinchine formula)."""
    return load / (2 * (1 - load))


def loss(load: float, limit: int) -> float:
    """The share of packets that M/D/1 drops when `limit` packets wait, besides the one in service.

    It follows from the Markov chain of what a departure leaves behind (D. Gross and others, "Fundamentals of
    Queueing Theory", section 5.1.7).
    """
    arrivals = [math.exp(-load) * load**k / math.factorial(k) for k in range(limit + 2)]
    left = [1.0]
    for j in range(limit):
        earlier = left[0] * arrivals[j] + sum(left[i] * arrivals[j - i + 1] for i in range(1, j + 1))
        left.append((left[j] - earlier) / arrivals[0])
    return 1 - 1 / (left[0] / sum(left) + load)


def scenario(rate: int, load: float, count: int, *, streams: int = 1, limit: int = 100_000) -> dict[str, Any]:
    """About `count` datagrams as a Poisson process, or several, that load a link of `rate` bit/s."""
    each = round(load * rate * PAYLOAD / FRAME / streams)
    flow = {"name": "poisson", "kind": "udp", "rate": f"{each} bit/s", "payload": f"{PAYLOAD} B"}
    return {
        "tcplab": 1,
        "name": "queueing",
        "network": {"path": {"rate": f"{rate} bit/s", "rtt": "10 ms", "queue": f"{limit} packets"}},
        "flows": [{**flow, "spacing": "exponential", "streams": streams}],
        "duration": f"{round(count * service(rate) / load)} ns",
        "sample": {"packets": True, "sockets": False, "queues": False, "flows": "1 s"},
    }


def service(rate: int) -> float:
    """Time that a datagram occupies a link of `rate` bit/s, ns."""
    return FRAME * 8e9 / rate


def _times(run: Run, *events: str) -> pl.DataFrame:
    mine = (pl.col("flow") == "poisson") & (pl.col("direction") == "forward")
    return run.packets.filter(mine & pl.col("event").is_in(events)).sort("time", maintain_order=True)


def arrivals(run: Run) -> Figures:
    """When packets arrived at the link's queue, those dropped included, ns."""
    return _times(run, "enqueue", "drop")["time"].to_numpy().astype(float)


def intervals(run: Run) -> Figures:
    """Times between these arrivals, ns."""
    return np.diff(arrivals(run))


def waits(run: Run, rate: int, warm_up: int = WARM_UP) -> Figures:
    """How long each packet waited for the link, in service times, after the first `warm_up`."""
    arrivals, departures = (_times(run, event)["time"].to_numpy() for event in ("enqueue", "depart"))
    # A FIFO keeps the order. Packets that wait when the run ends have not departed.
    waited: Figures = (departures - arrivals[: len(departures)]) / service(rate) - 1
    return waited[warm_up:]


def dropped(run: Run) -> Figures:
    """Of each packet whether the queue dropped it: 1 or 0."""
    return (_times(run, "enqueue", "drop")["event"] == "drop").to_numpy().astype(float)[WARM_UP:]


def estimate(values: Figures) -> tuple[float, float]:
    """Mean of values that depend on those shortly before, and its standard error, by batch means."""
    means = [float(np.mean(batch)) for batch in np.array_split(values, BATCHES)]
    return float(np.mean(values)), float(np.std(means, ddof=1)) / math.sqrt(BATCHES)


COLUMNS = ["load", "limit", "figure", "theory", "one source", "100 sources"]
KERNEL_COLUMNS = ["load", "intervals' mean off by", "their variation", "wait in theory", "wait"]
SIM_RATE, SIM_COUNT = 100_000_000, 400_000
# So slow that the time a sender takes to wake is a small part of a packet's.
KERNEL_RATE, KERNEL_SECONDS = 10_000_000, 60
LOADS = (0.5, 0.8, 0.9)
ROWS: tuple[tuple[float, int | None], ...] = (*((load, None) for load in LOADS), (0.8, 4), (0.9, 9), (1.2, 9))


def rows(folder: Path, run: RunIt) -> Iterator[list[str]]:
    """Mean waits without a limit and drops with one: theory and simulator."""
    for load, limit in ROWS:
        most = {} if limit is None else {"limit": limit}
        done = (
            run(scenario(SIM_RATE, load, SIM_COUNT, streams=streams, **most), "sim", folder)
            for streams in (1, 100)
        )
        yield [
            f"{load}",
            "none" if limit is None else f"{limit} packets",
            "wait" if limit is None else "dropped",
            f"{mean_wait(load):.3f}" if limit is None else f"{loss(load, limit) * 100:.2f} %",
            *(_wait(one, SIM_RATE) if limit is None else _dropped(one) for one in done),
        ]


def kernel_rows(folder: Path, run: RunIt, overloaded: Callable[[Run], str]) -> Iterator[list[str]]:
    """The intervals of a real sender, and the waits of its packets."""
    for load in LOADS:
        count = round(KERNEL_SECONDS * 1e9 * load / service(KERNEL_RATE))
        done = run(scenario(KERNEL_RATE, load, count), "kernel", folder)
        between = intervals(done)
        mean = float(np.mean(between))
        yield [
            f"{load}" + overloaded(done),
            f"{(mean * load / service(KERNEL_RATE) - 1) * 100:+.1f} %",
            f"{np.std(between) / mean:.3f}",
            f"{mean_wait(load):.3f}",
            _wait(done, KERNEL_RATE),
        ]


def _wait(run: Run, rate: int) -> str:
    mean, error = estimate(waits(run, rate))
    return f"{mean:.3f} ± {1.96 * error:.3f}"


def _dropped(run: Run) -> str:
    mean, error = estimate(dropped(run))
    return f"{mean * 100:.2f} ± {1.96 * error * 100:.2f} %"
