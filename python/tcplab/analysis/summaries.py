"""The summary of a run: steady-state figures per flow and per bottleneck, with intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tcplab.analysis.copies import fingerprint
from tcplab.analysis.echo import FlowEchoes, by_size
from tcplab.analysis.estimate import Estimate, estimate
from tcplab.analysis.fetches import Fetches, fetches
from tcplab.analysis.leg_summaries import LegSummary, leg_summaries
from tcplab.analysis.outages import Outage, outages
from tcplab.analysis.samples import NO_WAITS, Array, Samples, Series, Waits
from tcplab.analysis.sharing import convergence, starvation
from tcplab.analysis.statistics import DETERMINISTIC, jain, weighted_quantiles
from tcplab.analysis.steady_state import Window, asked_omit, steady_window, windows_of_load
from tcplab.plan.describe import describe_direction
from tcplab.plan.kinds import kind_of, traffic_kind
from tcplab.plan.paths import Hop, nominal_rate, settings
from tcplab.plan.types import Plan
from tcplab.results.run import Run


@dataclass(frozen=True)
class FlowSummary:
    """One flow's steady state."""

    flow: str
    kind: str
    cc: str | None
    streams: int
    bottleneck: Hop | None
    warm_up: tuple[float, ...]
    """Left out at the flow's start in each repetition, ns."""
    figures: dict[str, Estimate]
    """goodput (bit/s), retransmission_rate and loss_rate (shares), rtt_mean, rtt_p50, rtt_p95, rtt_p99 and
    queueing_delay (ns)"""

    @property
    def n(self) -> int:
        """Repetitions."""
        return len(self.warm_up)


@dataclass(frozen=True)
class LinkSummary:
    """One bottleneck while the flows that it limits are in their steady state."""

    hop: Hop
    label: str
    rate: float | None
    """bit/s at the run's start, or a trace's mean; None when unlimited."""
    rate_words: str
    flows: tuple[str, ...]
    figures: dict[str, Estimate]
    """Of the steady state: utilization (share), queueing_delay and queueing_delay_p95 (ns), drops_steady and
    lost_steady (packets), jain. Of the whole run: drops, lost (packets), convergence, starvation (ns)"""


@dataclass(frozen=True)
class Summary:
    """A run's steady state: flows, bottlenecks, and what to know of them."""

    name: str
    engine: str
    status: str
    repetitions: int
    level: float
    """Confidence level of the intervals."""
    omit: int | str
    flows: tuple[FlowSummary, ...]
    links: tuple[LinkSummary, ...]
    outages: tuple[Outage, ...] = ()
    """The outage of each flow for each failure of a link."""
    legs: tuple[LegSummary, ...] = ()
    """Summaries of the legs of accelerated connections."""
    fetches: tuple[Fetches, ...] = ()
    """Objects fetched over HTTP, by size."""
    echoes: tuple[FlowEchoes, ...] = ()
    """Round trips of echo flows by message size, of the whole run."""
    notes: tuple[str, ...] = field(default=())
    """Notes that the reader needs to interpret the figures."""

    def to_json(self) -> dict[str, Any]:
        """Plain data in base units: bit/s, ns, shares from 0 to 1."""
        return {
            "name": self.name,
            "engine": self.engine,
            "status": self.status,
            "repetitions": self.repetitions,
            "level": self.level,
            "omit": self.omit,
            "flows": [
                {
                    "flow": row.flow,
                    "kind": row.kind,
                    "cc": row.cc,
                    "streams": row.streams,
                    "bottleneck": _hop_json(row.bottleneck),
                    "warm_up": list(row.warm_up),
                    **{key: value.to_json() for key, value in row.figures.items()},
                }
                for row in self.flows
            ],
            "links": [
                {
                    **(_hop_json(row.hop) or {}),
                    "rate": row.rate,
                    "flows": list(row.flows),
                    **{key: value.to_json() for key, value in row.figures.items()},
                }
                for row in self.links
            ],
            "outages": [asdict(one) for one in self.outages],
            "legs": [_plain(one) for one in self.legs],
            "fetches": [_plain(one) for one in self.fetches],
            "echoes": [{"flow": one.flow, **size.to_json()} for one in self.echoes for size in one.sizes],
            "notes": list(self.notes),
        }


def _plain(row: LegSummary | Fetches) -> dict[str, Any]:
    return {
        key: value.to_json() if isinstance(value, Estimate) else value for key, value in vars(row).items()
    }


def summary(run: Run, *, omit: int | str | None = None, level: float = 0.95) -> Summary:
    """Summarise a run's steady state.

    `omit` is the warm-up left out at each flow's start: ns, a time such as `10 s`, or `auto` (MSER-5 on its
    goodput); the plan's when None. `level` is the confidence level.
    """
    asked = asked_omit(run.plan, omit)
    samples = [Samples.of(run, repetition) for repetition in run.repetitions]
    if _copies(run):
        # Copies of the first, moved in time: differences in where samples fall are not a spread.
        samples = [samples[0]] * len(samples)
    names = list(dict.fromkeys(name for one in samples for name in one.flow_names))
    windows = {name: [steady_window(one, name, asked) for one in samples] for name in names}
    hops = {name: next((hop for one in samples if (hop := one.bottleneck(name))), None) for name in names}
    flows = tuple(
        _flow_summary(name, hops[name], samples, windows[name], level) for name in names if any(windows[name])
    )
    sharing: dict[Hop, list[str]] = defaultdict(list)
    for row in flows:
        for hop in samples[0].bottlenecks(row.flow):
            sharing[hop].append(row.flow)
    links = tuple(_link_summary(hop, shared, samples, windows, level) for hop, shared in sharing.items())
    return Summary(
        name=run.name,
        engine=run.engine,
        status=run.status,
        repetitions=len(samples),
        level=level,
        omit=asked,
        flows=flows,
        links=links,
        outages=tuple(outages(run)),
        legs=tuple(leg_summaries(run, level)),
        fetches=tuple(fetches(run, level)),
        echoes=tuple(by_size(run, level)),
        notes=tuple(_notes(run, asked, level, flows, links, windows)),
    )


def _copies(run: Run) -> bool:
    if len(run.repetitions) == 1:
        return False
    found = {
        fingerprint(run.plan, run.engine, run.tables.of(repetition, "flows"))
        for repetition in run.repetitions
    }
    return len(found) == 1 and None not in found


def _flow_summary(
    name: str, hop: Hop | None, samples: list[Samples], windows: list[Window | None], level: float
) -> FlowSummary:
    active = [(one, window) for one, window in zip(samples, windows, strict=True) if window]
    first = active[0][0].streams(name)
    planned = active[0][0].plan_flow(name)
    kind = planned["kind"] if planned else first["kind"][0] if len(first) else ""
    control = planned.get("cc") if planned else None
    cc = first["cc"][0] if len(first) else control["name"] if control else None
    goodputs = [one.goodput(name).between(window.start, window.end) for one, window in active]
    rtts = [one.rtt_between(name, window.start, window.end) for one, window in active]
    waits = [one.waits(hop, window.start, window.end) if hop else NO_WAITS for one, window in active]
    trips = [one.round_trips(name, window.start, window.end) for one, window in active]
    quantiles = [weighted_quantiles(values, (0.5, 0.95, 0.99), weights) for values, weights in trips]
    counts = [_counts(one, name, window, kind) for one, window in active]
    moved = traffic_kind(kind).moves_payload
    figures = {
        "goodput": estimate(
            [_goodput(one, name, window) if moved else math.nan for one, window in active], level, goodputs[0]
        ),
        "retransmission_rate": estimate([count[0] for count in counts], level),
        "loss_rate": estimate([count[1] for count in counts], level),
        "rtt_mean": estimate([_weighted_mean(*one) for one in trips], level, rtts[0]),
        "rtt_p50": estimate([float(q[0]) for q in quantiles], level),
        "rtt_p95": estimate([float(q[1]) for q in quantiles], level),
        "rtt_p99": estimate([float(q[2]) for q in quantiles], level),
        "queueing_delay": estimate([one.of_all for one in waits], level, waits[0].linearized),
    }
    warm_up = tuple(window.warm_up for _, window in active)
    return FlowSummary(name, kind, cc, max(len(first), 1), hop, warm_up, figures)


def _goodput(samples: Samples, flow: str, window: Window) -> float:
    """Payload of the intervals within the window over their time; without one, that of the whole flow.

    The last interval may go on beyond the flow's last byte: it counts up to there. Streams that end at times
    of their own, as on a real host, have intervals that overlap: their time counts once.
    """
    rows = samples.rows("intervals", flow)
    if len(rows):
        rows = rows.drop_nulls("bytes_received")
        begins = pl.col("time") - pl.col("duration")
        inside = rows.filter((begins >= window.start) & (begins < window.end))
        ends = pl.min_horizontal(pl.col("time").cast(pl.Float64), window.end)
        time = _covered(inside.select(begins.cast(pl.Float64).alias("begin"), ends.alias("end")))
        if time > 0:
            return float(inside["bytes_received"].sum()) * 8e9 / time
    received = samples.streams(flow)["bytes_received"].drop_nulls()
    span = samples.span(flow)
    if not len(received) or span is None or span[1] <= span[0]:
        return math.nan
    return float(received.sum()) * 8e9 / (span[1] - span[0])


def _covered(spans: pl.DataFrame) -> float:
    """The time that spans from `begin` to `end` cover together, ns."""
    ordered = spans.sort("begin")
    before = ordered["end"].cum_max().shift(1)
    new = ordered.select(
        (pl.col("end") - pl.max_horizontal(pl.col("begin"), before.alias("before"))).clip(lower_bound=0)
    )
    return float(new.to_series().sum())


def _counts(samples: Samples, flow: str, window: Window, kind: str) -> tuple[float, float]:
    """Share of segments retransmitted (TCP) and of datagrams lost (UDP, ping); NaN where there is none."""
    streams = samples.streams(flow)
    if not traffic_kind(kind).moves_payload:
        return math.nan, samples.ping_losses(flow, window.start)
    rows = samples.intervals(flow)
    if len(rows):
        rows = rows.filter(pl.col("time") > window.start, pl.col("time") - pl.col("duration") < window.end)
    if traffic_kind(kind).datagrams:
        share = samples.datagram_losses(flow, window.start)
        if not math.isnan(share):
            return math.nan, share
        known = streams.select("segments_sent", "losses_true").drop_nulls()
        sent, lost = float(known["segments_sent"].sum()), float(known["losses_true"].sum())
        return math.nan, lost / sent if sent else math.nan
    counted = streams.select("bytes_sent", "segments_sent", "retransmits").drop_nulls()
    if len(counted) and not counted["segments_sent"].sum():
        # As of a connection that was never established.
        return math.nan, math.nan
    mss = samples.mss(flow)
    first = _first_sent(counted, mss)
    if len(rows):
        again = float(rows["retransmits"].sum())
        # Intervals have bytes. A segment has the mean payload; if none were counted, the MSS.
        payload = float(counted["bytes_sent"].sum()) / first if first else mss
        first = float(rows["bytes_sent"].sum()) / payload if payload else 0.0
    else:
        again = float(counted["retransmits"].sum())
    return again / (first + again) if first else math.nan, math.nan


def _first_sent(counted: pl.DataFrame, mss: float | None) -> float:
    """Segments with data that streams sent for the first time.

    The difference of the two counts is too small where a SYN or a FIN was retransmitted, which counts as a
    retransmission alone. But there are as many segments as the payload takes.
    """
    counts = [pl.col("segments_sent") - pl.col("retransmits"), pl.lit(0)]
    if mss:
        counts.append((pl.col("bytes_sent") / mss).ceil().cast(pl.Int64()))
    return float(counted.select(pl.max_horizontal(counts).sum()).item())


def _link_summary(
    hop: Hop, flows: list[str], samples: list[Samples], windows: dict[str, list[Window | None]], level: float
) -> LinkSummary:
    use: list[Series] = []
    waits: list[Waits] = []
    fairness: list[float] = []
    steady_counts: dict[str, list[float]] = {"drops": [], "lost": []}
    for index, one in enumerate(samples):
        steady = windows_of_load(one, {flow: windows[flow][index] for flow in flows})
        if not steady:
            continue
        start, end = min(w.start for w in steady), max(w.end for w in steady)
        use.append(one.utilization(hop, start, end))
        waits.append(one.waits(hop, start, end))
        fairness.append(_shared_jain(one, flows, steady))
        for column, counts in steady_counts.items():
            counts.append(one.counted(hop, column, start, end))
    first = samples[0]
    label = hop.label
    return LinkSummary(
        hop=hop,
        label=label,
        rate=nominal_rate(settings(first.plan, hop)),
        rate_words=describe_direction(settings(first.plan, hop)).rate,
        flows=tuple(flows),
        figures={
            "utilization": estimate([_mean(series) for series in use], level, use[0]),
            "queueing_delay": estimate([one.of_all for one in waits], level, waits[0].linearized),
            "queueing_delay_p95": estimate(
                [float(weighted_quantiles(one.mean, 0.95, one.packets)[0]) for one in waits], level
            ),
            "drops_steady": estimate(steady_counts["drops"], level),
            "lost_steady": estimate(steady_counts["lost"], level),
            "drops": estimate([one.counter(hop, "drops") for one in samples], level),
            "lost": estimate([one.counter(hop, "lost") for one in samples], level),
            "jain": estimate(fairness, level),
            "convergence": estimate([convergence(one, flows) for one in samples], level),
            "starvation": estimate([starvation(one, flows) for one in samples], level),
        },
    )


def _shared_jain(samples: Samples, flows: Sequence[str], windows: Sequence[Window]) -> float:
    """Jain's index of the mean goodput of those who share, while all are steady; NaN for one alone."""
    start, end = max(w.start for w in windows), min(w.end for w in windows)
    units = samples.sharing(flows)
    if len(units) < 2 or end <= start:
        return math.nan
    goodputs = [samples.goodput(*unit).between(start, end).mean_since(start) for unit in units]
    # A run that was cut off may have ended before a flow began.
    return jain(goodputs) if np.isfinite(goodputs).sum() > 1 else math.nan


def _weighted_mean(values: Array, weights: Array) -> float:
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def _mean(series: Series) -> float:
    return float(np.nanmean(series.value)) if np.isfinite(series.value).any() else math.nan


def _notes(
    run: Run,
    omit: int | str,
    level: float,
    flows: tuple[FlowSummary, ...],
    links: tuple[LinkSummary, ...],
    windows: dict[str, list[Window | None]],
) -> list[str]:
    if not flows:
        return ["No flow has a sample: nothing to summarize."]
    n = len(run.repetitions)
    percent = f"{level * 100:g} %"
    notes = [_warm_up_note(omit, flows)]
    if any(traffic_kind(row.kind).bulk_tcp and row.figures["rtt_mean"].known for row in flows):
        notes.append("RTT: the sender's smoothed RTT (srtt) at every sample, not every packet's.")
    both = [row.flow for row in flows if traffic_kind(row.kind).both_ways and row.figures["goodput"].known]
    if both:
        notes.append(f"{_some(both)}: goodput is the payload of both directions together.")
    if n > 1:
        notes.append(
            f"± is the {percent} confidence interval of the mean over {n} repetitions (Student's t)."
        )
        alike = [row.flow for row in flows if row.figures["goodput"].interval.method == DETERMINISTIC]
        if alike:
            notes.append(
                f"{_some(alike)}: deterministic. Every repetition gave the same goodput: it has no interval "
                "and no grade."
            )
    else:
        notes.append(
            f"One repetition: ± is the {percent} interval of the mean within this run, by batch means"
            f"{_batches(flows)}; it says nothing about how another run would differ."
        )
    for row in links:
        if 0 < (converged := row.figures["convergence"].n) < n:
            notes.append(
                f"{row.label}: flows converged in {converged} of {n} repetitions; the time is of these."
            )
    if silent := [row.flow for row in flows if row.figures["goodput"].value == 0]:
        notes.append(f"{_some(silent)}: no payload arrived in the steady state.")
    if cut := _cut_off(run):
        notes.append(f"{_some(cut)}: ended before all bytes had arrived.")
    if _changes(run.plan):
        notes.append("Links change during the run: the figures are averages over different conditions.")
    notes.extend(dict.fromkeys(w.note for ws in windows.values() for w in ws if w and w.note))
    return notes


def _cut_off(run: Run) -> list[str]:
    """The TCP transfers of which a stream ended before all its bytes had arrived.

    Of a receiver that does not say what it has, they are those that were not all sent.
    """
    asked = {
        flow["name"]: size
        for flow in run.plan.get("flows", ())
        if kind_of(flow).bulk_tcp and (size := flow.get("bytes")) is not None
    }
    if not asked:
        return []
    moved = pl.coalesce("bytes_received", "bytes_sent")
    least = dict(run.tables["flows"].group_by("flow").agg(moved.min()).iter_rows())
    return [flow for flow, size in asked.items() if (least.get(flow) or 0) < size]


def _changes(plan: Plan) -> bool:
    return any(
        link[direction].get("changes")
        for link in plan.get("links", ())
        for direction in ("forward", "backward")
    )


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:6])} and {len(names) - 6} more"


def _batches(flows: tuple[FlowSummary, ...]) -> str:
    """How the goodput series were cut into batches, for as many flows as a reader can take in."""
    cuts = [(row.flow, row.figures["goodput"].interval.method.partition(", ")[2]) for row in flows]
    known = [f"{flow} {cut}" for flow, cut in cuts if "batches" in cut]
    return f" (goodput: {'; '.join(known)})" if 0 < len(known) <= 4 else ""


def _warm_up_note(omit: int | str, flows: tuple[FlowSummary, ...]) -> str:
    if omit == "auto":
        found = ", ".join(f"{row.flow} {_seconds_range(row.warm_up)}" for row in flows[:8])
        more = f" and {len(flows) - 8} more flows" if len(flows) > 8 else ""
        return f"Steady state: warm-up found by MSER-5 on each flow's goodput and left out ({found}{more})."
    if not omit:
        return "Figures are of the whole run of every flow, start-up included (no warm-up is left out)."
    return f"Steady state: the first {float(omit) / 1e9:g} s of every flow are left out."


def _seconds_range(values: tuple[float, ...]) -> str:
    low, high = (f"{found(values) / 1e9:.3g}" for found in (min, max))
    return f"{low} s" if low == high else f"{low} to {high} s"


def _hop_json(hop: Hop | None) -> dict[str, str] | None:
    return None if hop is None else {"link": hop.link, "direction": hop.direction}
