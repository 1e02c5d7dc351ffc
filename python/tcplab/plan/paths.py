"""Where a flow goes in a plan: its path, its bottleneck, its base round-trip time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcplab.plan.flow_direction import data_ends
from tcplab.plan.types import Direction, DirectionKey, Flow, Plan, Trace

# One delivery opportunity of a mahimahi trace carries 1500 bytes.
_OPPORTUNITY_BITS = 1500 * 8
FRAME_BYTES = 1514
"""Ethernet frame of a full-size packet: 1500 bytes of IP and 14 of header."""

DIRECTIONS: dict[DirectionKey, str] = {"forward": "forward", "backward": "reverse"}
"""The directions of a link: their keys in a plan and in tables, and the words for them."""


_BARE: Direction = {
    "rate": None,
    "queue": {"kind": "droptail", "limit": None},
    "delay": 0,
    "jitter": None,
    "reorder": None,
    "loss": None,
    "corrupt": None,
    "duplicate": None,
    "up": True,
    "trace": None,
    "changes": [],
}


@dataclass(frozen=True, order=True)
class Hop:
    """One direction of a link."""

    link: str
    direction: DirectionKey
    """Its key in a plan and in tables: forward or backward."""

    @property
    def label(self) -> str:
        """The link, and the word for its direction."""
        return f"{self.link} {DIRECTIONS[self.direction]}"


def path(plan: Plan, source: str, target: str) -> list[Hop]:
    """The link directions a packet passes from one node to another; empty when there is no route."""
    nodes = {node["name"]: node for node in plan.get("nodes", ())}
    links = {link["name"]: link for link in plan.get("links", ())}
    hops: list[Hop] = []
    here = source
    while here != target:
        link = links.get(nodes[here].get("routes", {}).get(target, "")) if here in nodes else None
        # A loop can be no longer than the number of nodes.
        if link is None or len(hops) > len(nodes):
            return []
        ahead = link["ends"][0] == here
        hops.append(Hop(link["name"], "forward" if ahead else "backward"))
        here = link["ends"][1] if ahead else link["ends"][0]
    return hops


def data_path(plan: Plan, flow: Flow) -> list[Hop]:
    """The path of most of a flow's payload."""
    return path(plan, *data_ends(flow))


def links_between(plan: Plan, source: str, target: str) -> set[str]:
    """The links that packets from one node to another may pass: of all paths where routers have several."""
    nodes = {node["name"]: node for node in plan.get("nodes", ())}
    ends = {link["name"]: link["ends"] for link in plan.get("links", ())}
    found: set[str] = set()
    waiting, seen = [source], {target}
    while waiting:
        here = waiting.pop()
        if here in seen or here not in nodes:
            continue
        seen.add(here)
        first = nodes[here].get("routes", {}).get(target, "")
        ways = (nodes[here].get("multipath") or {}).get(target) or [first]
        for link in set(ways) & set(ends):
            found.add(link)
            waiting += ends[link]
    return found


def settings(plan: Plan, hop: Hop) -> Direction:
    """A link direction's settings; those of a link without any when the plan has no such link."""
    for link in plan.get("links", ()):
        if link["name"] == hop.link:
            return link[hop.direction]
    return _BARE


def nominal_rate(direction: Direction) -> float | None:
    """Rate at the run's start, bit/s; a trace's mean; None when unlimited."""
    trace = direction.get("trace")
    if trace and trace["opportunities_ms"]:
        times = trace["opportunities_ms"]
        return float(len(times) * _OPPORTUNITY_BITS / (max(times[-1], 1) / 1e3))
    rate = direction.get("rate")
    return None if rate is None else float(rate)


def rate_at(direction: Direction, times: ArrayLike) -> NDArray[np.float64] | None:
    """Rate at each time (ns), following the link's changes, bit/s; None when unlimited."""
    rate = nominal_rate(direction)
    if rate is None:
        return None
    t = np.asarray(times, dtype=np.float64)
    rates = np.full(t.shape, rate)
    for change in sorted(direction.get("changes") or (), key=lambda change: change["at"]):
        if change.get("rate") is not None:
            rates[t >= change["at"]] = change["rate"]
    return rates


def mean_rate(direction: Direction, starts: ArrayLike, ends: ArrayLike) -> NDArray[np.float64] | None:
    """Mean rate from each start to each later end (ns), following changes, bit/s; None when unlimited."""
    first = rate_at(direction, 0.0)
    if first is None:
        return None
    begin, end = np.asarray(starts, dtype=np.float64), np.asarray(ends, dtype=np.float64)
    changes = [change["at"] for change in direction.get("changes") or () if change.get("rate") is not None]
    bits = float(first) * (end - begin)
    before = float(first)
    for at in sorted(changes):
        rate = float(rate_at(direction, at))  # type: ignore[arg-type]
        bits += (rate - before) * (np.maximum(end, at) - np.maximum(begin, at))
        before = rate
    return np.asarray(bits / (end - begin))


def trace_bits(trace: Trace, start: float, end: float) -> float:
    """Bits of IP packets that a trace can deliver in (start, end], ns."""
    times = np.asarray(trace["opportunities_ms"], dtype=np.float64) * 1e6
    period = float(times[-1])

    def until(time: float) -> float:
        whole, rest = divmod(time, period)
        return whole * len(times) + float(np.searchsorted(times, rest, side="right"))

    return (until(end) - until(start)) * _OPPORTUNITY_BITS


def bottlenecks(plan: Plan, flow: Flow) -> list[Hop]:
    """The slowest hops of a flow's path: usually one, several when rates are alike, none when unlimited.

    Where a rate changes, its mean counts while the flow is to last.
    """
    rated = [
        (rate, hop) for hop in data_path(plan, flow) if (rate := mean_rate_of(plan, flow, hop)) is not None
    ]
    slowest = min((rate for rate, _ in rated), default=0.0)
    return [hop for rate, hop in rated if rate <= slowest * 1.001]


def mean_rate_of(plan: Plan, flow: Flow, hop: Hop) -> float | None:
    """Mean rate of a hop while a flow is to last, bit/s; None when unlimited."""
    start, stop = flow.get("start", 0), flow.get("stop") or plan.get("duration", 0)
    rate = mean_rate(settings(plan, hop), start, max(stop, start + 1))
    return None if rate is None else float(rate)


def base_rtt(plan: Plan, flow: Flow) -> int | None:
    """Round-trip propagation at the run's start, ns; None when there is no route."""
    there = path(plan, flow["from"], flow["to"])
    back = path(plan, flow["to"], flow["from"])
    if not there or not back:
        return None
    return sum(int(settings(plan, hop).get("delay") or 0) for hop in (*there, *back))


def queue_limit_packets(
    direction: Direction, which: Literal["limit", "mark_above"] = "limit"
) -> float | None:
    """The queue's limit, or `mark_above`, at the start in full-size packets; None when not to be had."""
    limit = direction["queue"].get(which)
    if not limit:
        return None
    if "packets" in limit:
        return float(limit["packets"])
    if "bytes" in limit:
        return float(limit["bytes"]) / FRAME_BYTES
    rate = nominal_rate(direction)
    return None if rate is None else float(limit["time"]) / 1e9 * rate / 8 / FRAME_BYTES
