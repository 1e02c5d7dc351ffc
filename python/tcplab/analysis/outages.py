"""What a flow felt of each failure of a link: how long nothing arrived, what was lost, when it had recovered.

Arrivals are known to the probe for pings, and to the sampling interval for flows that carry payload.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from tcplab.results.run import Run

# Goodput before a failure and after it, over so much time, ns; recovered is so much of what it was.
_SPAN = 2_000_000_000
_RECOVERED = 0.9


@dataclass(frozen=True)
class Outage:
    """One flow through one failure; times in ns."""

    repetition: int
    link: str
    at: int
    """When the link failed, since the run's start."""
    flow: str
    outage: int
    """The longest time without an arrival that overlaps the failure."""
    resolution: int
    """It is known to this."""
    lost: int | None
    """Probes lost meanwhile; none: not a flow of probes."""
    recovered: int | None
    """From the failure until goodput is 90 % of what it was; none: never, or not a flow of payload."""
    routes: int | None
    """From the failure to the last change of a router's table before the link changed again; none: none."""


def outages(run: Run) -> list[Outage]:
    """Every flow through every failure of a link during a run, by time."""
    return [one for repetition in run.repetitions for one in _of(run, repetition)]


def _of(run: Run, repetition: int) -> Iterator[Outage]:
    def rows(table: str) -> pl.DataFrame:
        return run.tables[table].filter(pl.col("repetition") == repetition)

    changes = rows("events").filter(pl.col("event") == "link_change").sort("time")
    if changes.is_empty():
        return
    flows = [flow["name"] for flow in run.plan.get("flows", ())]
    for link, at, end in _failures(changes, int(run.plan["duration"])):
        moved = rows("routes").filter(pl.col("time").is_between(at, end, closed="left"))["time"]
        routes = int(moved[-1]) - at if len(moved) else None
        for flow in flows:
            pings = rows("pings").filter(pl.col("flow") == flow).sort("time")
            intervals = rows("intervals").filter(pl.col("flow") == flow).sort("time")
            if len(pings):
                answered = pings.filter(~pl.col("lost"))
                gap = _longest_gap((answered["time"] + answered["rtt"]).sort().to_numpy(), at, end)
                lost = pings.filter(pl.col("lost"), pl.col("time").is_between(at, end)).height
                between = int(np.median(np.diff(pings["time"].to_numpy()))) if len(pings) > 1 else 0
                yield Outage(repetition, link, at, flow, gap, between, lost, None, routes)
            elif len(intervals):
                busy = intervals.filter(pl.col("bytes_received") > 0)
                starts = (busy["time"] - busy["duration"]).to_numpy()
                arrivals = np.sort(np.concatenate([starts, busy["time"].to_numpy()]))
                duration = int(intervals["duration"].max() or 0)  # type: ignore[arg-type]
                gap = _longest_gap(arrivals, at, end)
                gap = 0 if gap <= duration else gap
                recovered = _recovery(intervals, at, gap)
                yield Outage(repetition, link, at, flow, gap, duration, None, recovered, routes)


def _failures(changes: pl.DataFrame, duration: int) -> Iterator[tuple[str, int, int]]:
    """Link, when it failed, and when it changed next, or the run ended."""
    seen: set[tuple[str, int]] = set()
    for link, at, detail in changes.select("link", "time", "detail").iter_rows():
        words = detail.split(": ")[-1].split(", ")
        if "down" not in words or (link, at) in seen:
            continue
        # Both directions are one failure.
        seen.add((link, at))
        later = changes.filter(pl.col("link") == link, pl.col("time") > at)["time"]
        yield link, at, int(later[0]) if len(later) else duration


def _longest_gap(arrivals: np.ndarray, at: int, end: int) -> int:
    """The longest time between two arrivals that overlaps [at, end); without a later arrival until `end`."""
    before = arrivals[arrivals < at]
    edges = np.concatenate([before[-1:], arrivals[arrivals >= at]])
    if not len(edges) or edges[-1] < end:
        edges = np.append(edges, end)
    inside = np.diff(edges)[edges[:-1] < end]
    return int(inside.max()) if len(inside) else end - at


def _recovery(intervals: pl.DataFrame, at: int, gap: int) -> int | None:
    sums = intervals.group_by("time", maintain_order=True).agg(pl.col("bytes_received").sum())
    time, received = sums["time"].to_numpy(), sums["bytes_received"].to_numpy()

    def rate(since: int, until: int) -> float:
        return float(received[(time > since) & (time <= until)].sum()) / (until - since)

    former = rate(at - _SPAN, at) if at >= _SPAN else 0.0
    if former == 0.0:
        return None
    later = time[time >= at + gap + _SPAN]
    return next(
        (int(one) - _SPAN - at for one in later if rate(int(one) - _SPAN, int(one)) >= _RECOVERED * former),
        None,
    )
