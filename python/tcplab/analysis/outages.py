"""Outages of a flow for each failure of a link: how long nothing arrived, packets lost, time of recovery.

Arrivals are known to the probe for pings, and to the sampling interval for flows that carry payload. What is
counted is from the failure to the link's next change, or to the end of an outage that lasts longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from tcplab.analysis.forwarding import Forwarding
from tcplab.plan.flow_direction import goes_both_ways
from tcplab.plan.paths import links_between
from tcplab.plan.types import Flow, Plan
from tcplab.results.run import Run

# Goodput before a failure and after it, over so much time, ns; recovered is so much of what it was.
_SPAN = 2_000_000_000
_RECOVERED = 0.9
# A probability of one in a plan.
_CERTAIN = 1_000_000_000


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
    restored: int | None
    """The data plane: from the failure to the first arrival after that; none: nothing arrived any more."""
    lost: int | None = None
    """Probes, datagrams, or packets of TCP with data, lost; none: not known."""
    fib: int | None = None
    """Of a probe at a constant rate: twice what it lost until arrivals went on and the tables were at rest,
    over its rate. Routers change their routes one after another, so that a loss lasts half as long on average
    as the change of all of them."""
    reordered: int | None = None
    """Probes or datagrams that arrived after a later one."""
    rtos: int | None = None
    """Retransmission timeouts of TCP."""
    retransmitted: int | None = None
    """Segments that TCP retransmitted."""
    undone: int | None = None
    """Reductions of the congestion window that TCP took back, for nothing had been lost."""
    recovered: int | None = None
    """From the failure to the first interval with 90 % of the former goodput, within 2 s that have as much on
    average. None: never, or not a flow of payload."""
    detected: int | None = None
    """From the failure to the first change of an adjacency or session; none: no protocol noticed."""
    routes: int | None = None
    """The control plane: from the failure to the last change of a router's table; none: no table changed."""
    before: str = ""
    """The nodes that the flow passed before the failure; empty: not known."""
    after: str = ""
    """And at the end of it."""


def outages(run: Run) -> list[Outage]:
    """Every failure of a link, by time, for each flow; with static routes, for each that passes the link."""
    return [one for repetition in run.repetitions for one in _of(run, repetition)]


def _of(run: Run, repetition: int) -> Iterator[Outage]:
    def rows(table: str) -> pl.DataFrame:
        return run.tables.of(repetition, table)

    changes = rows("events").filter(pl.col("event") == "link_change").sort("time")
    if changes.is_empty():
        return
    routes, forwarding = rows("routes").sort("time", maintain_order=True), None
    if len(routes):
        forwarding = Forwarding(run.plan, routes)
    for link, at, end in _failures(changes, run.plan, int(run.plan["duration"])):
        routing = _routing(rows("events"), routes, at, end)
        for flow in run.plan.get("flows", ()):
            # Static routes lead no other flow over the link.
            if forwarding is None and link not in _links_of(run.plan, flow):
                continue
            # Linux reports to nobody that it took a reduction back.
            at_rest = at + (routing["routes"] or 0)
            felt = _felt(rows, flow, at, end, at_rest, undo=run.engine == "sim")
            if felt is None:
                continue
            paths: dict[str, Any] = {}
            if forwarding is not None:
                paths = {"before": forwarding.path(flow, at - 1), "after": forwarding.path(flow, end - 1)}
            yield Outage(repetition, link, at, flow["name"], **felt, **routing, **paths)


def _links_of(plan: Plan, flow: Flow) -> set[str]:
    """The links that packets of a flow may pass, in either direction, by the plan's routes."""
    ends = flow["from"], flow["to"]
    return links_between(plan, *ends) | links_between(plan, *reversed(ends))


def _routing(events: pl.DataFrame, routes: pl.DataFrame, at: int, end: int) -> dict[str, Any]:
    """When the routers noticed, and when their tables were at rest."""
    during = pl.col("time").is_between(at, end, closed="left")
    noticed = events.filter(during, pl.col("event").is_in(("adjacency", "session")))["time"]
    moved = routes.filter(during, pl.col("time") > 0)["time"]
    return {
        "detected": int(noticed.min()) - at if len(noticed) else None,  # type: ignore[arg-type]
        "routes": int(moved[-1]) - at if len(moved) else None,
    }


def _felt(
    rows: Callable[[str], pl.DataFrame], flow: Flow, at: int, end: int, at_rest: int, *, undo: bool
) -> dict[str, Any] | None:
    name = flow["name"]
    pings = rows("pings").filter(pl.col("flow") == name).sort("time")
    if len(pings):
        return _probes(pings, at, end, at_rest)
    intervals = rows("intervals").filter(pl.col("flow") == name).sort("time")
    if not len(intervals):
        return None
    busy = intervals.filter(pl.col("bytes_received") > 0)
    starts = (busy["time"] - busy["duration"]).to_numpy()
    arrivals = np.sort(np.concatenate([starts, busy["time"].to_numpy()]))
    # Without an arrival in it, an interval may be longer.
    duration = int((busy if len(busy) else intervals)["duration"].max() or 0)  # type: ignore[arg-type]
    began, ended = _longest_gap(arrivals, at, end)
    gap = ended - began if ended - began > duration else 0
    # A receiver knows of losses by the next arrival, whose interval begins where the outage ends.
    during = pl.col("time").is_between(at, max(end, ended + duration), closed="right")
    found = {
        "outage": gap,
        "resolution": duration,
        "restored": _after(arrivals, ended, at) if gap else 0,
        "recovered": _recovery(intervals, at, gap),
    }
    felt = intervals.filter(during)
    if intervals["lost"].is_not_null().any():
        streams = rows("flows").filter(pl.col("flow") == name)
        before = int(intervals.filter(pl.col("time") <= at)["lost"].sum())
        converging = pl.col("time") <= max(ended if gap else at, at_rest) + duration
        if found["restored"] is None:
            lost = while_converging = _missing(streams) - before
        else:
            lost, while_converging = (int(one["lost"].sum()) for one in (felt, felt.filter(converging)))
        return {
            **found,
            "lost": max(0, lost),
            "fib": _fib(max(0, while_converging), _datagrams_per_ns(streams)),
            "reordered": int(felt["out_of_order"].sum()),
        }
    events = rows("events").filter(during, pl.col("flow") == name)["event"]
    streams = rows("flows").filter(pl.col("flow") == name)
    losses = rows("losses").filter(pl.col("flow") == name)
    # Only links know them. Results that are older than the table of losses have no times of them.
    total = streams["losses_true"]
    known = len(losses) > 0 or (total.is_not_null().any() and total.sum() == 0)
    with_data = ("forward", "reverse") if goes_both_ways(flow) else ("forward",)
    lost = sum(int(losses.filter(during)[direction].sum()) for direction in with_data)
    return {
        **found,
        "lost": lost if known else None,
        "rtos": int((events == "rto").sum()) if streams["rtos"].is_not_null().any() else None,
        "retransmitted": int(felt["retransmits"].sum()) if felt["retransmits"].is_not_null().any() else None,
        "undone": int((events == "undo").sum()) if undo else None,
    }


def _probes(pings: pl.DataFrame, at: int, end: int, at_rest: int) -> dict[str, Any]:
    answered = pings.filter(~pl.col("lost"))
    arrivals = (answered["time"] + answered["rtt"]).to_numpy()
    began, ended = _longest_gap(np.sort(arrivals), at, end)
    # Of the last ones it is not known: the run may have ended before their answers came.
    longest = int(answered["rtt"].max() or 0)  # type: ignore[arg-type]
    known = min(max(end, ended), int(pings["time"].max()) - longest)  # type: ignore[arg-type]
    # Those sent before the failure met it on their way: in a queue, or as answers.
    arrived = answered.filter(pl.col("time") + pl.col("rtt") <= min(began, at))["time"]
    since = min(at, int(arrived.max()) + 1) if len(arrived) else at  # type: ignore[arg-type]
    sent = pl.col("time").is_between(since, known)
    missing = pings.filter(pl.col("lost"), sent)["time"]
    while_converging = int((missing <= max(ended, at_rest)).sum())
    between = int(np.median(np.diff(pings["time"].to_numpy()))) if len(pings) > 1 else 0
    # An answer that comes when a later probe has been answered already.
    felt = answered.filter(sent)
    came = (felt["time"] + felt["rtt"]).to_numpy()
    late = int((came[1:] < np.maximum.accumulate(came)[:-1]).sum()) if len(came) else 0
    return {
        "outage": ended - began,
        "resolution": between,
        "restored": _after(arrivals, ended, at),
        "lost": len(missing),
        "fib": _fib(while_converging, 1 / between) if between else None,
        "reordered": late,
    }


def _fib(lost: int, rate: float) -> int | None:
    """The time that routers took to change their tables, by a probe of so many packets a ns."""
    return round(2 * lost / rate) if rate else None


def _datagrams_per_ns(streams: pl.DataFrame) -> float:
    lasted = int((streams["end"] - streams["start"]).max() or 0)  # type: ignore[arg-type]
    return float(streams["segments_sent"].sum() or 0) / lasted if lasted else 0.0


def _missing(streams: pl.DataFrame) -> int:
    """Datagrams of a flow that never arrived."""
    sent, arrived = float(streams["bytes_sent"].sum()), float(streams["bytes_received"].sum())
    return round((sent - arrived) * float(streams["segments_sent"].sum() or 0) / sent) if sent else 0


def _after(arrivals: np.ndarray, ended: int, at: int) -> int | None:
    """How long after the failure arrivals went on; none: they did not."""
    return max(0, ended - at) if bool((arrivals >= ended).any()) else None


def _failures(changes: pl.DataFrame, plan: Plan, duration: int) -> Iterator[tuple[str, int, int]]:
    """Link, when it failed, and when it changed next, or the run ended."""
    seen: set[tuple[str, int]] = set()
    for link, at, detail in changes.select("link", "time", "detail").iter_rows():
        direction, _, settings = detail.rpartition(": ")
        words = settings.split(", ")
        fails = "down" in words or ("loss" in words and _loses_all(plan, link, direction, at))
        if (link, at) in seen or not fails:
            continue
        # Both directions are one failure.
        seen.add((link, at))
        later = changes.filter(pl.col("link") == link, pl.col("time") > at)["time"]
        yield link, at, int(later[0]) if len(later) else duration


def _loses_all(plan: Plan, link: str, direction: str, at: int) -> bool:
    """Whether the latest planned change of a direction's losses by then is to lose every packet."""
    planned = [
        change
        for one in plan["links"]
        if one["name"] == link
        for change in (one["forward"] if direction == "forward" else one["backward"])["changes"]
        if change.get("loss") and change["at"] <= at
    ]
    if not planned:
        return False
    latest = max(planned, key=lambda change: change["at"])
    return bool(latest["loss"]["model"].get("chance", {}).get("rate") == _CERTAIN)


def _longest_gap(arrivals: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """The longest time between two arrivals that overlaps [at, end); without a later arrival until `end`."""
    before = arrivals[arrivals < at]
    edges = np.concatenate([before[-1:], arrivals[arrivals >= at]])
    if not len(edges) or edges[-1] < end:
        edges = np.append(edges, end)
    if len(edges) == 1:
        return at, end
    starts, gaps = edges[:-1], np.diff(edges)
    longest = int(np.argmax(np.where(starts < end, gaps, -1)))
    return int(edges[longest]), int(edges[longest + 1])


def _recovery(intervals: pl.DataFrame, at: int, gap: int) -> int | None:
    sums = intervals.group_by("time", maintain_order=True).agg(pl.col("bytes_received").sum())
    time, received = sums["time"].to_numpy(), sums["bytes_received"].to_numpy()

    def rate(since: int, until: int) -> float:
        return float(received[(time > since) & (time <= until)].sum()) / (until - since)

    former = rate(at - _SPAN, at) if at >= _SPAN else 0.0
    if former == 0.0:
        return None
    for until in time[time >= at + gap + _SPAN]:
        since = int(until) - _SPAN
        if rate(since, int(until)) < _RECOVERED * former:
            continue
        # A tenth of the span may be missing at its beginning: its first interval with enough counts.
        edges = np.concatenate([[since], time[(time > since) & (time <= until)]])
        enough = (int(one) for one, end in pairwise(edges) if rate(one, end) >= _RECOVERED * former)
        return next(enough, since) - at
    return None
