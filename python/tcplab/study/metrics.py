"""Metrics of a run in a study: one row a flow, and one for all flows together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcplab.analysis.copies import fingerprint
from tcplab.analysis.leg_summaries import leg_figures
from tcplab.analysis.limits import Windows, limited_by, split_limit
from tcplab.analysis.samples import Samples, Series
from tcplab.analysis.starvation import faring
from tcplab.analysis.statistics import jain
from tcplab.analysis.steady_state import Window, asked_omit, steady_window
from tcplab.analysis.summaries import FlowSummary, Summary, summary
from tcplab.plan.kinds import traffic_kind
from tcplab.plan.paths import data_path
from tcplab.plan.types import Plan
from tcplab.results.run import Run

Row = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """One figure of a run."""

    name: str
    unit: str
    """bit/s, ns, B, segments, packets, s, cores, or empty."""
    doc: str
    share: bool = False
    """A share from 0 to 1, shown in percent."""
    signed: bool = False
    """It may be negative."""


_SPELLED = {"rtt": "RTT", "cpu": "CPU", "rpm": "RPM", "rtos": "RTOs"}
# Names of variables stay as they are at the beginning, too.
_KEPT = ("cwnd", "rwnd", "sndbuf")


def title(metric: str) -> str:
    """A metric's name as people write it: acronyms in capitals."""
    first, *rest = [_SPELLED.get(word, word) for word in metric.split("_")]
    return " ".join([first[:1].upper() + first[1:] if first not in _KEPT else first, *rest])


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("goodput", "bit/s", "steady goodput; of all flows: their sum"),
        Metric("transferred", "B", "payload received over the whole flow"),
        Metric("retransmits", "segments", "segments retransmitted over the whole flow"),
        Metric("retransmission_rate", "", "share of the segments that were retransmitted", share=True),
        Metric(
            "marked", "segments", "segments marked over the whole flow, as the peer reported to the sender"
        ),
        Metric("loss_rate", "", "share of the datagrams or pings that were lost", share=True),
        Metric("out_of_order", "packets", "datagrams that arrived after a later one"),
        Metric("jitter", "ns", "mean interarrival jitter (RFC 3550)"),
        Metric("rtos", "", "retransmission timeouts"),
        Metric("rtt_mean", "ns", "mean RTT in the steady state"),
        Metric("rtt_min", "ns", "minimum RTT"),
        Metric("rtt_p50", "ns", "median RTT in the steady state"),
        Metric("rtt_p95", "ns", "95th percentile of the RTT in the steady state"),
        Metric("rtt_p99", "ns", "99th percentile of the RTT in the steady state"),
        Metric("rpm", "", "round trips per minute of a ping or request: 60 s over its mean RTT"),
        Metric("queueing_delay", "ns", "mean wait of packets in the bottleneck's queue in the steady state"),
        Metric("cwnd_mean", "segments", "mean congestion window over the whole flow"),
        Metric("effective_window", "B", "goodput times mean RTT: the window that was really used"),
        Metric("cpu_sender", "cores", "CPU of the sender, in cores, while the flow was active"),
        Metric("cpu_receiver", "cores", "CPU of the receiver, in cores, while the flow was active"),
        Metric("rwnd_limited", "", "share of the busy time limited by the receive window", share=True),
        Metric("sndbuf_limited", "", "share of the busy time limited by the send buffer", share=True),
        Metric("completion_time", "ns", "how long the flow lasted"),
        Metric(
            "drift",
            "",
            "how much goodput grew from the first to the last third of the steady state",
            share=True,
            signed=True,
        ),
        Metric("utilization", "", "share of the bottleneck's rate that was used", share=True),
        Metric("jain", "", "Jain's fairness index of the flows that share the bottleneck"),
        Metric(
            "drops",
            "packets",
            "packets dropped at the bottleneck: by its queue, a policer, or a link that was down",
        ),
        Metric("convergence", "ns", "time until the flows stay near the fair share"),
        Metric("share", "", "goodput over the fair share of the bottleneck, all sources counted", share=True),
        Metric("starvation", "ns", "time with under 5 % of the fair share; of all flows: added up"),
        Metric("starvation_began", "ns", "when a flow first had under 5 % of its fair share for 1 s"),
        Metric("starvation_ended", "ns", "when that last ended"),
        Metric("outage", "ns", "longest time without an arrival around a failure of a link"),
        Metric("fib", "ns", "twice what a probe lost to a failure of a link, over its rate"),
        Metric("recovery", "ns", "from a link's failure until goodput is 90 % of what it was"),
    )
}
"""Every metric by name; their values are in base units."""

_EXTREMES: dict[str, Callable[[Any], Any]] = {
    "rtt_min": np.min,
    **dict.fromkeys(("rtt_p95", "rtt_p99", "completion_time", "outage", "fib", "recovery"), np.max),
}
_OF_LINKS: dict[str, Callable[[Any], Any]] = {"jain": np.min, "drops": np.sum}
# Of all flows together these say nothing.
_OF_ONE_FLOW = ("rpm", "effective_window", "share", "starvation_began", "starvation_ended")
_SUMS = (
    "goodput",
    "transferred",
    "retransmits",
    "marked",
    "out_of_order",
    "rtos",
    "starvation",
    "cpu_sender",
    "cpu_receiver",
)


def measure(run_dir: Path, repetition: int, plan: Plan) -> list[Row]:
    """The rows of one finished run of a plan: `flow`, `kind`, `cc`, `streams` and every metric.

    What is not known is null. The row whose `flow` is null is of all flows together. It has the sums of
    what adds up, the mean of RTT means and shares, and what only concerns all (fairness, utilization). Of
    minimum RTTs it has the least, of upper percentiles the greatest. Raises ResultsError.
    """
    run = Run(run_dir, {repetition: run_dir}, plan)
    found = summary(run)
    samples = Samples.of(run, repetition)
    rows = [{**_flow(row, samples), **_failures(row.flow, found)} for row in found.flows]
    copy = fingerprint(run.plan, run.engine, run.tables["flows"])
    return [{**row, "copy": copy} for row in (*rows, _all(rows, found, samples))]


def _flow(row: FlowSummary, samples: Samples) -> Row:
    streams = samples.streams(row.flow)
    sockets = samples.rows("sockets", row.flow)
    steady = steady_window(samples, row.flow, asked_omit(samples.plan, None))
    figures = {name: estimate.value for name, estimate in row.figures.items()}
    lasted, kind = _span(samples, row.flow), traffic_kind(row.kind)
    metrics: dict[str, float] = {
        **{name: figures[name] for name in figures if name in METRICS},
        "transferred": _sum(streams, "bytes_received"),
        "retransmits": _sum(streams, "retransmits"),
        "marked": _last(sockets, "delivered_ce"),
        "rtos": _sum(streams, "rtos"),
        "cwnd_mean": _mean(streams, "cwnd_mean"),
        "rpm": 60e9 / figures["rtt_mean"] if kind.round_trips else math.nan,
        "effective_window": figures["goodput"] * figures["rtt_mean"] / 8e9,
        "cpu_sender": _sum(streams, "cpu_sender") / lasted * 1e9 if lasted else math.nan,
        "cpu_receiver": _sum(streams, "cpu_receiver") / lasted * 1e9 if lasted else math.nan,
        "completion_time": lasted or math.nan,
        **_datagrams(samples, row.flow, row.kind),
        **_sockets(sockets, steady),
        **(_shortest(samples, row.flow) if kind.round_trips else {}),
        **(_faring(samples, row.flow, figures["goodput"], steady) if kind.bulk_tcp else {}),
        "utilization": _utilization(samples, row.flow, steady),
        "drift": drift(samples.goodput(row.flow), steady),
    }
    found = _row(row.flow, metrics, kind=row.kind, cc=row.cc, streams=row.streams)
    limit = limited_by(found, _windows(samples, row, found, sockets), found["utilization"])
    if len(rows := samples.rows("legs", row.flow)):
        limit = split_limit(limit, found["utilization"], leg_figures(_nearest(samples, row.flow, rows)))
    return {**found, "limited_by": limit if kind.bulk_tcp else None}


def _nearest(samples: Samples, flow: str, legs: pl.DataFrame) -> pl.DataFrame:
    """Of several accelerators, the legs at the one next to the sender, which waits for it."""
    planned = samples.plan_flow(flow)
    hops = data_path(samples.plan, planned) if planned else []
    links = {link["name"]: link["ends"] for link in samples.plan["links"]}
    passed = [end for hop in hops for end in links[hop.link]]
    nodes = set(legs["node"])
    return legs.filter(node=next((node for node in passed if node in nodes), next(iter(nodes))))


def _failures(flow: str, found: Summary) -> dict[str, float | None]:
    """The worst of what a flow felt of failures of links."""
    felt = [one for one in found.outages if one.flow == flow]

    def worst(values: Iterable[int | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(max(known)) if known else None

    return {
        "outage": worst(one.outage for one in felt),
        "fib": worst(one.fib for one in felt),
        "recovery": worst(one.recovered for one in felt),
    }


def _all(rows: list[Row], found: Summary, samples: Samples) -> Row:
    metrics: dict[str, float] = {}
    for name in METRICS:
        values = np.array([row[name] for row in rows if row[name] is not None], dtype=float)
        if len(values):
            metrics[name] = float(np.sum(values) if name in _SUMS else _EXTREMES.get(name, np.mean)(values))
    for name in _OF_ONE_FLOW:
        metrics.pop(name, None)
    for name in ("utilization", "jain", "drops", "convergence"):
        values = np.array([link.figures[name].value for link in found.links], dtype=float)
        values = values[np.isfinite(values)]
        if len(values):
            metrics[name] = float(_OF_LINKS.get(name, np.max)(values))
    if "jain" not in metrics:
        bulk = [row["goodput"] for row in rows if traffic_kind(row["kind"]).bulk]
        shares = [goodput for goodput in bulk if goodput is not None]
        if len(shares) > 1:
            metrics["jain"] = jain(shares)
    return _row(None, metrics, kind=None, cc=None, streams=None, limited_by=None)


def _row(flow: str | None, metrics: dict[str, float], **what: Any) -> Row:
    values = {name: metrics.get(name) for name in METRICS}
    known = {name: None if value is None or math.isnan(value) else value for name, value in values.items()}
    return {"flow": flow, **what, **known}


def _datagrams(samples: Samples, flow: str, kind: str) -> dict[str, float]:
    if not traffic_kind(kind).datagrams:
        return {}
    rows = samples.rows("intervals", flow)
    return {"out_of_order": _sum(rows, "out_of_order"), "jitter": _mean(rows, "jitter")}


def _sockets(rows: pl.DataFrame, steady: Window | None) -> dict[str, float]:
    """The minimum RTT, and what limited the sender, over the steady state."""
    if not len(rows):
        return {}
    found = {"rtt_min": _minimum(rows, "min_rtt")}
    if steady is not None:
        inside = rows.filter((pl.col("time") >= steady.start) & (pl.col("time") <= steady.end))
        rows = inside if len(inside) > 1 else rows
    busy = _grown(rows, "busy_time")
    if busy > 0:
        found["rwnd_limited"] = _grown(rows, "rwnd_limited") / busy
        found["sndbuf_limited"] = _grown(rows, "sndbuf_limited") / busy
    return found


def _shortest(samples: Samples, flow: str) -> dict[str, float]:
    """The minimum of what a ping or request measured, as its other RTTs; not of its packets."""
    measured = pl.concat([samples.rows(table, flow).select("rtt") for table in ("pings", "echoes")])
    return {"rtt_min": _minimum(measured, "rtt")}


def _faring(samples: Samples, flow: str, goodput: float, steady: Window | None) -> dict[str, float]:
    found = faring(samples, flow, goodput, steady)
    if found is None:
        return {}
    return {
        "share": found.share,
        "starvation": found.starved,
        "starvation_began": found.began,
        "starvation_ended": found.ended,
    }


def _windows(samples: Samples, row: FlowSummary, found: Row, sockets: pl.DataFrame) -> Windows:
    planned = samples.plan_flow(row.flow)
    sender = (planned.get("sender") if planned else None) or {}
    used = found["effective_window"]
    return Windows(
        used / row.streams if used is not None else None,
        sender.get("send_buffer") or sender.get("send_buffer_max"),
        _mean(sockets, "rwnd") if len(sockets) else None,
    )


def drift(goodput: Series, steady: Window | None) -> float:
    """The share by which mean goodput grew from the first to the last third of the steady state.

    NaN where it is not known, or was nothing in the first third.
    """
    if steady is None:
        return math.nan
    first_end, last_start = steady.start + steady.length / 3, steady.end - steady.length / 3
    first = goodput.between(steady.start, first_end).mean_since(steady.start)
    last = goodput.between(last_start, steady.end).mean_since(last_start)
    return last / first - 1 if first > 0 else math.nan


def _utilization(samples: Samples, flow: str, steady: Window | None) -> float:
    hop = samples.bottleneck(flow)
    if hop is None or steady is None:
        return math.nan
    used = samples.utilization(hop, steady.start, steady.end).value
    return float(np.mean(used)) if len(used) else math.nan


def _grown(rows: pl.DataFrame, column: str) -> float:
    """How much a counter grew between the first and the last sample, its sockets added up."""
    grown = rows.group_by("stream", "node").agg((pl.col(column).max() - pl.col(column).min()).alias("by"))
    return float(grown["by"].sum() or 0)


def _last(rows: pl.DataFrame, column: str) -> float:
    """A counter's last value, its streams added up."""
    if not len(rows):
        return math.nan
    return _sum(rows.group_by("stream", "node").agg(pl.col(column).max()), column)


def _span(samples: Samples, flow: str) -> float:
    span = samples.span(flow)
    return span[1] - span[0] if span else 0.0


def _sum(rows: pl.DataFrame, column: str) -> float:
    values = rows[column].drop_nulls()
    return float(values.sum()) if len(values) else math.nan


def _mean(rows: pl.DataFrame, column: str) -> float:
    value = rows[column].mean()
    return math.nan if value is None else float(value)  # type: ignore[arg-type]


def _minimum(rows: pl.DataFrame, column: str) -> float:
    value = rows[column].min()
    return math.nan if value is None else float(value)  # type: ignore[arg-type]
