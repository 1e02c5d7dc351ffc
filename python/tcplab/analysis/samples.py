"""A run's samples as arrays, by flow or link direction: what figures draw and statistics judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.plan.flow_direction import data_ends, goes_both_ways
from tcplab.plan.kinds import kind_of
from tcplab.plan.paths import Hop, base_rtt, bottlenecks, data_path, mean_rate, rate_at, settings, trace_bits
from tcplab.plan.types import DirectionKey, Flow
from tcplab.results.run import Run

Array = NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Series:
    """Values over time; times in ns."""

    time: Array
    value: Array

    def between(self, start: float, end: float) -> Series:
        """The samples in (start, end]."""
        keep = (self.time > start) & (self.time <= end)
        return Series(self.time[keep], self.value[keep])

    def mean_since(self, start: float) -> float:
        """Mean of intervals since `start`, of which the last may be shorter; NaN without any."""
        lengths = np.diff(self.time, prepend=start)
        return float(np.average(self.value, weights=lengths)) if len(self) else math.nan

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Waits:
    """How long packets waited in a queue before their transmission began, by sample period."""

    time: Array
    """When it ends, ns."""
    mean: Array
    """Mean of the packets that left the queue in a period, ns."""
    packets: Array
    """How many these were. Where that is not known each period counts the same."""

    @property
    def of_all(self) -> float:
        """Mean of all packets, ns; NaN where none left."""
        return float(np.average(self.mean, weights=self.packets)) if self.packets.any() else math.nan

    @property
    def linearized(self) -> Series:
        """Values by period whose mean is that of all packets.

        Their spread is that of a ratio estimator's errors (Cochran, Sampling Techniques, section 6.3).
        """
        if not self.packets.any():
            return EMPTY
        off = self.packets * (self.mean - self.of_all) / self.packets.mean()
        return Series(self.time, self.of_all + off)


Unit = tuple[str, int | None]
"""A flow, or one of its streams."""

_SECOND = 1e9

EMPTY = Series(np.empty(0), np.empty(0))

NO_WAITS = Waits(np.empty(0), np.empty(0), np.empty(0))


def once(question: Callable[Concatenate[Samples, P], R]) -> Callable[Concatenate[Samples, P], R]:
    """Cache the answer to a question about `Samples`, by its arguments: figures ask for one flow often."""

    @wraps(question)
    def answer(samples: Samples, *args: P.args, **kwargs: P.kwargs) -> R:
        asked = (question.__name__, *args, *kwargs.values())
        if asked not in samples.known:
            samples.known[asked] = question(samples, *args, **kwargs)
        return cast("R", samples.known[asked])

    return cast("Callable[Concatenate[Samples, P], R]", answer)


class Samples:
    """One repetition of a run, cut into series."""

    def __init__(self, run: Run, repetition: int) -> None:
        self.run = run
        self.repetition = repetition
        self.plan = run.plan
        self.known: dict[tuple[object, ...], Any] = {}

    @staticmethod
    def of(run: Run, repetition: int) -> Samples:
        """The samples of a run's repetition, with what was asked of them before."""
        return cast("Samples", run.computed.setdefault(repetition, Samples(run, repetition)))

    @once
    def table(self, name: str) -> pl.DataFrame:
        """The rows of a table that are of this repetition."""
        return self.run.tables.of(self.repetition, name)

    def rows(self, table: str, flow: str) -> pl.DataFrame:
        """A flow's rows of a table, those of all its streams."""
        part = self._by_flow(table).get(flow)
        return self.table(table).clear() if part is None else part

    @once
    def _by_flow(self, table: str) -> dict[str, pl.DataFrame]:
        """The rows of each flow: of thousands of flows each would look through the whole table."""
        return _parts(self.table(table), "flow")

    @cached_property
    def _sockets(self) -> dict[str, pl.DataFrame]:
        """Sockets of the ends that send most of their flows' payload."""
        parts = dict(self._by_flow("sockets"))
        for name, part in parts.items():
            if (flow := self.plan_flow(name)) and goes_both_ways(flow):
                parts[name] = part.filter(pl.col("node") == data_ends(flow)[0])
        return parts

    @cached_property
    def _queues(self) -> dict[tuple[str, DirectionKey], pl.DataFrame]:
        parts = self.table("queues").partition_by("link", "direction", as_dict=True, maintain_order=True)
        return {
            (str(link), "forward" if direction == "forward" else "backward"): part.sort("time")
            for (link, direction), part in parts.items()
        }

    @cached_property
    def flow_names(self) -> list[str]:
        """Flows in the plan's order, then those only the tables know."""
        return [*self._planned, *(name for name in self._by_flow("flows") if name not in self._planned)]

    @cached_property
    def _planned(self) -> dict[str, Flow]:
        return {flow["name"]: flow for flow in self.plan.get("flows", ())}

    def plan_flow(self, flow: str) -> Flow | None:
        """The flow's entry in the plan; None when it has none."""
        return self._planned.get(flow)

    def streams(self, flow: str) -> pl.DataFrame:
        """The flow's rows of the flows table."""
        return self.rows("flows", flow)

    @once
    def span(self, flow: str) -> tuple[float, float] | None:
        """When the flow was active, ns; None when it never was."""
        rows = self.streams(flow)
        starts, ends = rows["start"].drop_nulls(), rows["end"].drop_nulls()
        if len(starts) and len(ends):
            return float(starts.min()), float(ends.max())  # type: ignore[arg-type]
        rows = self._by_flow("intervals").get(flow, pl.DataFrame())
        if not len(rows):
            return None
        return float((rows["time"] - rows["duration"]).min()), float(rows["time"].max())  # type: ignore[arg-type]

    @once
    def intervals(self, flow: str) -> pl.DataFrame:
        """The flow's intervals, its streams added up: one row per time.

        The two ends of a flow that finishes before the run does cut their last interval short at times of
        their own. What no stream knows at a time, as the receiver's figures at the sender's, is null.
        """
        rows = self._by_flow("intervals").get(flow)
        if rows is None:
            return pl.DataFrame()
        sums = ("goodput", "bytes_received", "bytes_sent", "retransmits", "lost")
        known = (pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in sums)
        return rows.group_by("time").agg(pl.col("duration").max(), *known).sort("time")

    def datagram_losses(self, flow: str, start: float) -> float:
        """Share of a UDP flow's datagrams that was lost from `start` on; NaN where it is not known.

        A receiver knows of a loss by the next datagram, which may come long after the lost one. So losses
        are divided by arrivals and losses, not by what was sent meanwhile. Those behind the last arrival may
        be known only when the flow has ended. Of what was sent after it, all is lost that could have come
        before the run's end.
        """
        planned = self.plan_flow(flow)
        payload = planned.get("payload") if planned else None
        rows = self._by_flow("intervals").get(flow)
        if rows is None or planned is None or not payload:
            return math.nan
        rows = rows.filter(pl.col("time") > start)
        if rows["lost"].null_count() == len(rows):
            return math.nan
        begin = pl.col("time") - pl.col("duration")
        last = pl.col("time").filter(pl.col("bytes_received") > 0).max().over("stream")
        is_behind = (begin >= last.fill_null(0)).alias("is_behind")
        could_arrive = (begin < self.plan["duration"] - self._longest_way(planned)).alias("could_arrive")
        sent = pl.col("bytes_sent").filter("is_behind", "could_arrive").sum() / payload
        # A late datagram takes back a loss, which may have been counted before `start`.
        lost = pl.col("lost").filter(~pl.col("is_behind")).sum().clip(lower_bound=0)
        found = pl.col("lost").filter("is_behind").sum()
        streams = rows.with_columns(is_behind, could_arrive).group_by("stream")
        losses = lost + pl.max_horizontal(sent, found)
        all_lost, came = (
            streams.agg(losses.alias("lost"), pl.col("bytes_received").sum() / payload)
            .select(pl.col("lost").sum(), pl.col("bytes_received").sum())
            .row(0)
        )
        known = all_lost + came
        return float(all_lost / known) if known else math.nan

    def _longest_way(self, flow: Flow) -> float:
        """Delays of the path of a flow's data, and the longest waits in its queues that were sampled, ns."""
        path = data_path(self.plan, flow)
        delay = sum(int(settings(self.plan, hop).get("delay") or 0) for hop in path)
        waits = (self.waits(hop, 0.0, self.plan["duration"]).mean for hop in path)
        return delay + sum(float(np.max(wait, initial=0.0)) for wait in waits)

    @once
    def goodput(self, flow: str, stream: int | None = None) -> Series:
        """Goodput of each interval, at its end, bit/s: the flow's, or one stream's."""
        if stream is None:
            rows = self.intervals(flow)
            return _series(rows.drop_nulls("goodput"), "goodput") if len(rows) else EMPTY
        times, _, rates = self._stream_intervals[flow][stream]
        return Series(times, rates)

    @cached_property
    def _stream_intervals(self) -> dict[str, dict[int, tuple[Array, Array, Array]]]:
        """End, duration and goodput of each interval of known goodput, by flow and stream.

        Slices of arrays: a flow may have 100,000 streams, and a table of each costs a millisecond.
        """
        found: dict[str, dict[int, tuple[Array, Array, Array]]] = {}
        for flow, rows in self._by_flow("intervals").items():
            known = rows.drop_nulls("goodput").sort("stream", "time")
            times, durations, rates = (_floats(known[name]) for name in ("time", "duration", "goodput"))
            numbers, firsts = np.unique(known["stream"].to_numpy(), return_index=True)
            ends = np.append(firsts, len(known))[1:]
            found[flow] = {
                int(number): (times[first:end], durations[first:end], rates[first:end])
                for number, first, end in zip(numbers, firsts, ends, strict=True)
            }
        return found

    def stream_numbers(self, flow: str) -> list[int]:
        """The flow's streams that have intervals."""
        return sorted(self._stream_intervals.get(flow, ()))

    def sharing(self, flows: Sequence[str]) -> list[Unit]:
        """Who shares a bottleneck: the flows that carry payload, or, of a single one, its streams."""
        moving = [flow for flow in flows if kind_of(self.plan_flow(flow)).moves_payload]
        if len(moving) == 1:
            return [(moving[0], number) for number in self.stream_numbers(moving[0])]
        return [(flow, None) for flow in moving]

    def recent_goodput(self, units: Sequence[Unit]) -> tuple[Array, Array]:
        """Sample times, and the mean goodput over the second before: a row per time, a column per unit.

        NaN while a unit's flow is not active. The first and last intervals of a flow may be shorter than the
        others: each counts by its length.
        """
        delivered = [self._delivered(*unit) for unit in units]
        times = np.unique(np.concatenate([ends for _, ends, _ in delivered]))
        rates = np.full((len(times), len(units)), np.nan)
        for column, (unit, (begins, ends, bits)) in enumerate(zip(units, delivered, strict=True)):
            start, end = self.span(unit[0]) or (0.0, 0.0)
            total = np.concatenate([[0.0], np.cumsum(bits)])
            last = np.searchsorted(ends, times, side="right")
            first = np.searchsorted(ends, times - _SECOND, side="right")
            active = (times > start) & (times <= end) & (last > first)
            first, last = first[active], last[active]
            rates[active, column] = (total[last] - total[first]) / (ends[last - 1] - begins[first])
        return times, rates

    @once
    def _delivered(self, flow: str, stream: int | None) -> tuple[Array, Array, Array]:
        """Where intervals begin and end, ns, and what arrived in each, in bits times 10^9."""
        if stream is not None:
            times, durations, rates = self._stream_intervals[flow][stream]
            ends, firsts = np.unique(times, return_index=True)
            if not len(ends):
                return ends, ends, ends
            begins = np.minimum.reduceat(times - durations, firsts)
            return begins, ends, np.add.reduceat(rates * durations, firsts)
        rows = self._by_flow("intervals").get(flow)
        if rows is None:
            return np.empty(0), np.empty(0), np.empty(0)
        begin = (pl.col("time") - pl.col("duration")).min()
        bits = (pl.col("goodput") * pl.col("duration")).sum()
        found = rows.drop_nulls("goodput").group_by("time").agg(begin=begin, bits=bits).sort("time")
        return _floats(found["begin"]), _floats(found["time"]), _floats(found["bits"])

    def window(self, flow: str, column: str = "cwnd") -> Series:
        """Congestion window (or `ssthresh`) of the flow, its streams added up, segments."""
        rows = self._sockets.get(flow)
        if rows is None:
            return EMPTY
        return _series(rows.group_by("time").agg(pl.col(column).sum()).sort("time"), column)

    def threshold(self, flow: str) -> Series:
        """Slow-start threshold of a flow of one stream, segments; NaN before the first loss."""
        rows = self._sockets.get(flow)
        if rows is None or rows["stream"].n_unique() != 1:
            return EMPTY
        return _series(rows.sort("time"), "ssthresh")

    @once
    def rtt(self, flow: str) -> Series:
        """Round-trip time, ns: smoothed RTT of every TCP sample, or what pings and requests measured."""
        for table in ("pings", "echoes"):
            # Echoes that are too many for a row each have no time; their batches have.
            known = pl.col("rtt").is_not_null() & pl.col("time").is_not_null()
            if flow not in self._by_flow(table):
                continue
            measured = self.rows(table, flow).filter(known)
            if len(measured) and table == "echoes":
                means = self.rows("echo_batches", flow).select("time", pl.col("rtt_mean").alias("rtt"))
                measured = pl.concat([measured.select("time", pl.col("rtt").cast(pl.Float64)), means])
            if len(measured):
                return _series(measured.sort("time"), "rtt")
        rows = self._sockets.get(flow)
        if rows is None:
            return EMPTY
        return _series(rows.filter(pl.col("srtt").is_not_null()).sort("time"), "srtt")

    def rtt_between(self, flow: str, start: float, end: float) -> Series:
        """The round-trip times of a part of the flow.

        A socket's sample tells of the time before it. A probe or request has the time at which it was sent:
        the first of a flow is sent as the flow starts.
        """
        series = self.rtt(flow)
        if not kind_of(self.plan_flow(flow)).round_trips:
            return series.between(start, end)
        keep = (series.time >= start) & (series.time <= end)
        return Series(series.time[keep], series.value[keep])

    def round_trips(self, flow: str, start: float, end: float) -> tuple[Array, Array]:
        """The round-trip times of a part of the flow, and how many each stands for.

        Echoes that are too many for a row each are in histograms by client and size. Where only some of the
        batches of one belong to that part, it counts for as many as these have.
        """
        batches = self.rows("echo_batches", flow)
        if not len(batches):
            values = self.rtt_between(flow, start, end).value
            return values, np.ones(len(values))
        inside = pl.col("time").is_between(start, end)
        kept = batches.group_by("client", "size").agg(
            (pl.col("count").filter(inside).sum() / pl.col("count").sum()).alias("kept")
        )
        echoes = self.rows("echoes", flow)
        many = echoes.filter(pl.col("time").is_null()).join(kept, on=["client", "size"])
        weighted = pl.concat(
            [
                echoes.filter(inside).select("rtt", weight=pl.col("count").cast(pl.Float64)),
                many.select("rtt", weight=pl.col("count") * pl.col("kept")),
            ]
        )
        return _floats(weighted["rtt"]), _floats(weighted["weight"])

    def mean_rtt(self, flow: str) -> Series:
        """As `rtt`, the mean over streams sampled at the same time."""
        pooled = self.rtt(flow)
        times, index = np.unique(pooled.time, return_inverse=True)
        if len(times) == len(pooled):
            return pooled
        return Series(times, np.bincount(index, pooled.value) / np.bincount(index))

    def phases(self, flow: str) -> pl.DataFrame:
        """Time, state and phase of the flow's first stream."""
        rows = self._sockets.get(flow)
        if rows is None:
            return pl.DataFrame(schema={"time": pl.Int64(), "state": pl.String(), "phase": pl.String()})
        first = rows.filter(pl.col("stream") == pl.col("stream").min())
        return first.sort("time").select("time", "state", "phase")

    def gauges(self, flow: str) -> pl.DataFrame:
        """Gauges of the control of the flow's first stream: rows of the table `gauges`, by time."""
        rows = self.rows("gauges", flow)
        if rows.is_empty():
            return rows
        first = rows.filter(pl.col("stream") == pl.col("stream").min())
        planned = self.plan_flow(flow)
        if planned and goes_both_ways(planned):
            first = first.filter(pl.col("node") == data_ends(planned)[0])
        return first.sort("time", maintain_order=True)

    def gauge(self, rows: pl.DataFrame) -> Series:
        """One figure of `gauges` over time; not a number where a socket sample has no value of it."""
        flow, stream = str(rows["flow"][0]), rows["stream"][0]
        sampled = self._sockets.get(flow, rows).filter(pl.col("stream") == stream).select("time")
        within = sampled.filter(pl.col("time") >= rows["time"].min()).unique().sort("time")
        return _series(within.join(rows, on="time", how="left"), "value")

    def legs(self, flow: str) -> pl.DataFrame:
        """The legs at an accelerator of the flow's first stream: rows of the table `legs`, by time."""
        rows = self.rows("legs", flow)
        if rows.is_empty():
            return rows
        return rows.filter(pl.col("stream") == pl.col("stream").min()).sort("time")

    def mss(self, flow: str) -> float | None:
        """Largest segment payload seen, bytes."""
        rows = self._sockets.get(flow)
        value = None if rows is None else rows["mss"].max()
        return None if value is None else float(value)  # type: ignore[arg-type]

    def ping_losses(self, flow: str, start: float) -> float:
        """Share of the probes sent from `start` on that were lost; NaN without probes.

        A flow ends with its last reply. Probes sent later are lost all the same, but for those that may be on
        their way when the run ends: sent within an RTT, the longest seen, before.
        """
        rows = self.rows("pings", flow)
        if rows.is_empty():
            return math.nan
        planned = self.plan_flow(flow)
        rtt: Any = rows["rtt"].max() or (planned and base_rtt(self.plan, planned)) or 0
        rows = rows.filter(pl.col("time") >= start, pl.col("time") < self.plan["duration"] - rtt)
        return float(rows["lost"].cast(pl.Float64()).mean()) if len(rows) else float("nan")  # type: ignore[arg-type]

    def hops(self) -> list[Hop]:
        """Link directions whose queue was sampled."""
        return [Hop(link, direction) for link, direction in self._queues]

    def queue(self, hop: Hop) -> Series:
        """Packets waiting."""
        return _series(self._queues.get((hop.link, hop.direction), pl.DataFrame()), "packets")

    @once
    def waits(self, hop: Hop, start: float, end: float) -> Waits:
        """How long the packets waited that left the queue in (start, end].

        Where results do not know it, how long the packet at the head had waited at each sample.
        """
        rows = self._queues.get((hop.link, hop.direction), pl.DataFrame())
        if "waited" not in rows.columns or rows["waited"].null_count():
            delays = self.head_delay(hop).between(start, end)
            return Waits(delays.time, delays.value, np.ones(len(delays)))
        begun = rows.filter(pl.col("time") <= start).tail(1)
        within = rows.filter((pl.col("time") > start) & (pl.col("time") <= end))
        packets, waited = (
            np.diff(_floats(pl.concat([begun, within])[column]), prepend=[0.0][len(begun) :])
            for column in ("packets_out", "waited")
        )
        mean = np.divide(waited, packets, out=np.zeros_like(waited), where=packets > 0)
        return Waits(_floats(within["time"]), mean, packets)

    def head_delay(self, hop: Hop) -> Series:
        """How long the packet at the head has waited, ns; nothing waiting is 0.

        Where an engine cannot know it, the time to drain what waits at the link's rate.
        """
        rows = self._queues.get((hop.link, hop.direction))
        if rows is None:
            return EMPTY
        if rows["sojourn"].null_count() < len(rows) or not rows["packets"].max():
            return _series(rows.with_columns(pl.col("sojourn").fill_null(0)), "sojourn")
        rate = rate_at(settings(self.plan, hop), rows["time"].to_numpy())
        if rate is None:
            return EMPTY
        return Series(_floats(rows["time"]), _floats(rows["bytes"]) * 8e9 / rate)

    def queue_gauges(self, hop: Hop) -> dict[str, dict[str, Series]]:
        """Gauges of the queue discipline, by unit and name."""
        found: dict[str, dict[str, Series]] = {}
        parts = self._of_hop("queue_gauges", hop).partition_by(
            "name", "unit", as_dict=True, maintain_order=True
        )
        for (name, unit), rows in parts.items():
            found.setdefault(str(unit), {})[str(name)] = _series(rows, "value")
        return found

    def class_delays(self, hop: Hop) -> dict[str, Series]:
        """How long the packet at the head of each class has waited, ns; nothing waiting is 0."""
        rows = self._of_hop("queue_classes", hop).with_columns(pl.col("sojourn").fill_null(0))
        parts = rows.partition_by("class", as_dict=True, maintain_order=True)
        return {str(name): _series(part, "sojourn") for (name,), part in parts.items()}

    def _of_hop(self, table: str, hop: Hop) -> pl.DataFrame:
        is_own = (pl.col("link") == hop.link) & (pl.col("direction") == hop.direction)
        return self.table(table).filter(is_own).sort("time", maintain_order=True)

    def capacity_used(self, hop: Hop) -> Series:
        """Bytes of the capacity that frames took so far; results of older versions have frame bytes only."""
        rows = self._queues.get((hop.link, hop.direction), pl.DataFrame())
        known = "capacity_used" in rows.columns and rows["capacity_used"].null_count() < len(rows)
        return _series(rows, "capacity_used" if known else "bytes_out")

    def counter(self, hop: Hop, column: str) -> float:
        """A queue counter's last value: drops, marks or lost."""
        rows = self._queues.get((hop.link, hop.direction))
        value = None if rows is None or not len(rows) else rows[column].max()
        return float("nan") if value is None else float(value)  # type: ignore[arg-type]

    def counted(self, hop: Hop, column: str, start: float, end: float) -> float:
        """The increase of a queue counter (drops, marks or lost) in (start, end]; NaN where not known."""
        series = _series(self._queues.get((hop.link, hop.direction), pl.DataFrame()), column)
        before, within = series.value[series.time <= start], series.value[series.time <= end]
        if not len(within) or np.isnan(within).all():
            return float("nan")
        return float(np.nanmax(within)) - (float(np.nanmax(before)) if len(before) else 0.0)

    def utilization(self, hop: Hop, start: float, end: float) -> Series:
        """Bits of capacity used in each sample period of (start, end], over the mean that the rate allowed.

        So the mean is all that it used over all that its rate allowed, also where the rate changes.
        """
        used = self.capacity_used(hop)
        keep = (used.time >= start) & (used.time <= end)
        time, count = used.time[keep], used.value[keep]
        if start <= 0 and len(time) and time[0] > 0:
            # The simulator's first sample is one interval after the run's start.
            time, count = np.append(0.0, time), np.append(0.0, count)
        if len(time) < 2:
            return EMPTY
        direction = settings(self.plan, hop)
        if trace := direction.get("trace"):
            allowed = trace_bits(trace, time[0], time[-1])
        else:
            # A rate may change between two samples.
            rate = mean_rate(direction, time[0], time[-1])
            if rate is None:
                return EMPTY
            allowed = float(rate) * (time[-1] - time[0]) / 1e9
        if not allowed > 0:
            return EMPTY
        return Series(time[1:], np.diff(count) * 8 / (allowed / (len(time) - 1)))

    def bottleneck(self, flow: str) -> Hop | None:
        """The slowest hop of the flow's path; of several alike, that with the longest mean queue."""
        return next(iter(self.bottlenecks(flow)), None)

    @once
    def bottlenecks(self, flow: str) -> list[Hop]:
        """The slowest hops of the flow's path, the longest mean queue first.

        Of several alike, those whose queue was always empty limited nothing and are left out.
        """
        planned = self.plan_flow(flow)
        if not planned:
            return []
        sampled = [hop for hop in data_path(self.plan, planned) if hop in self.hops()]
        slowest = bottlenecks(self.plan, planned) or sampled
        longest = sorted(slowest, key=self._mean_queue, reverse=True)
        return [hop for index, hop in enumerate(longest) if index == 0 or self._mean_queue(hop) > 0]

    def _mean_queue(self, hop: Hop) -> float:
        queue = self.queue(hop)
        return float(queue.value.mean()) if len(queue) else -1.0


def _parts(frame: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
    """The rows of each value of a column: slices where they are together, as in the table of flows."""
    lengths = frame[column].rle()
    values = lengths.struct.field("value")
    if values.n_unique() == len(values):
        ends = lengths.struct.field("len").cum_sum()
        return {
            str(value): frame.slice(end - length, length)
            for value, length, end in zip(values, lengths.struct.field("len"), ends, strict=True)
        }
    parts = frame.partition_by(column, as_dict=True, maintain_order=True)
    return {str(key[0]): part for key, part in parts.items()}


def _series(frame: pl.DataFrame, column: str) -> Series:
    if column not in frame.columns:
        return EMPTY
    return Series(_floats(frame["time"]), _floats(frame[column]))


def _floats(values: pl.Series) -> Array:
    return values.cast(pl.Float64()).fill_null(float("nan")).to_numpy()
