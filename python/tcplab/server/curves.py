"""Curves of a run: what a window of time shows, in as many points as the screen has.

Panels of a column of a table are read here; those that are worked out of several are `derived`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.plan.flow_direction import data_ends, goes_both_ways
from tcplab.plan.types import Plan
from tcplab.server import library, samples
from tcplab.server.derived import DERIVED, Derived
from tcplab.server.frames import encode

Array = NDArray[np.float64]
# Above, streams are added up (goodput) or averaged (windows, times) by flow.
MAX_STREAMS = 12
MAX_POINTS = 4000
MAX_MARKS = 2000
MAX_PHASES = 5000


@dataclass(frozen=True)
class Source:
    """Where a panel's series come from."""

    table: str
    column: str
    unit: str
    scale: float = 1.0
    together: str = "mean"
    """How streams of a flow become one series."""


_MIN_MARGIN = 200_000_000
# Jain's index is over a second.
_SECOND = 1_000_000_000

# Quantities of each panel. RTTs in seconds, so that the page scales every unit alike.
_COLUMNS = {
    "goodput": Source("intervals", "goodput", "bit/s", together="sum"),
    "cwnd": Source("sockets", "cwnd", "segments"),
    "ssthresh": Source("sockets", "ssthresh", "segments"),
    "rtt": Source("sockets", "srtt", "s", 1e-9),
    "queue": Source("queues", "packets", "packets"),
    "inflight": Source("sockets", "inflight", "segments"),
    "pacing": Source("sockets", "pacing_rate", "bit/s"),
    "delivery": Source("sockets", "delivery_rate", "bit/s"),
    "retransmits": Source("intervals", "retransmits", "segments", together="sum"),
    "sojourn": Source("queues", "sojourn", "s", 1e-9),
}
PANELS: dict[str, Source | Derived] = {**_COLUMNS, **DERIVED}
DEFAULT_PANELS = ("goodput", "cwnd", "rtt", "queue", "echo")


@dataclass
class Window:
    """The answer under construction."""

    start: int
    end: int
    points: int
    margin: int = _MIN_MARGIN
    """The time before and after it that is read too, so that lines reach its edges, ns."""
    series: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)

    def add(self, about: dict[str, Any], times: Array, values: Array) -> None:
        """A series, in no more points than the window shows."""
        start, end = self.start / 1e9, self.end / 1e9
        x, y = decimate(times, values, start, end, self.points)
        # Of the samples: the extremes that are drawn have another.
        inside = values[(times >= start) & (times <= end) & np.isfinite(values)]
        self.series.append({**about, "mean": float(inside.mean()) if len(inside) else None})
        self.arrays += [x, y]


def curves(
    run_dir: Path,
    plan: Plan,
    *,
    panels: tuple[str, ...] = DEFAULT_PANELS,
    start: int = 0,
    end: int | None = None,
    points: int = 1000,
    more: dict[str, Any] | None = None,
) -> bytes:
    """Every series of these panels from `start` to `end` ns as one message (`frames.encode`)."""
    duration = library.lasted(run_dir, plan)
    stop = duration if end is None else min(end, duration)
    window = Window(max(0, start), max(stop, start + 1), max(50, min(points, MAX_POINTS)))
    window.margin = max((window.end - window.start) // 50, _MIN_MARGIN, _longest_step(plan))
    queues: pl.DataFrame | None = None
    around = samples.in_window(
        run_dir, plan, window.start - _SECOND - window.margin, window.end + window.margin
    )
    for name in panels:
        source = PANELS[name]
        if isinstance(source, Derived):
            _add_derived(window, name, source, around)
        elif source.table == "queues":
            if queues is None:
                queues = _read(
                    run_dir,
                    "queues",
                    ["link", "direction", "packets", "sojourn", "drops", "marks", "lost"],
                    window,
                )
            _add_queues(window, name, source, queues)
        else:
            _add_streams(window, name, source, run_dir, plan)
    if "rtt" in panels:
        _add_pings(window, run_dir)
    header = {
        "duration": duration / 1e9,
        "start": window.start / 1e9,
        "end": window.end / 1e9,
        "series": window.series,
        "phases": list(_phases(run_dir, window)),
        "marks": list(_marks(queues, window)) if queues is not None else [],
        "unsampled": dict(_unsampled(panels, plan)),
        **(more or {}),
    }
    return encode(header, window.arrays)


def _unsampled(panels: tuple[str, ...], plan: Plan) -> Iterator[tuple[str, str]]:
    """The panels whose table is not sampled, each with the key of `sample` that is off."""
    sample = plan["sample"]
    tables = {
        "intervals": ("flows", sample["flows"]),
        "sockets": ("sockets", sample["sockets"]),
        "queues": ("queues", sample["queues"]),
    }
    for name in panels:
        source = PANELS[name]
        if isinstance(source, Source):
            key, interval = tables[source.table]
            if not interval:
                yield name, key


def _longest_step(plan: Plan) -> int:
    """The longest time between two samples of the run, or between two probes of a flow, ns."""
    sample = plan["sample"]
    probes = [flow.get("interval") for flow in plan["flows"]]
    return max(step or 0 for step in (sample["sockets"], sample["queues"], sample["flows"], *probes))


def decimate(x: Array, y: Array, start: float, end: float, points: int) -> tuple[Array, Array]:
    """The lowest and highest value of each of `points` stretches of time, where there are more than two.

    No extreme is lost. The sample before the window and that behind it stay, so that lines reach its edges.
    The stretches are the same for every series of a window, so that they share times.
    """
    first, last = np.searchsorted(x, start), np.searchsorted(x, end, side="right")
    if last - first <= 2 * points:
        seen = slice(max(first - 1, 0), last + 1)
        return x[seen], y[seen]
    known = np.isfinite(y)
    x, y = x[known], y[known]
    first, last = np.searchsorted(x, start), np.searchsorted(x, end, side="right")
    times, values = _extremes(x[first:last], y[first:last], start, (end - start) / points, points)
    before, after = slice(max(first - 1, 0), first), slice(last, last + 1)
    return np.concatenate([x[before], times, x[after]]), np.concatenate([y[before], values, y[after]])


def _extremes(x: Array, y: Array, start: float, width: float, points: int) -> tuple[Array, Array]:
    if not len(x):
        return x, y
    bucket = np.clip(((x - start) / width).astype(np.int64), 0, points - 1)
    first = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    low, high = np.minimum.reduceat(y, first), np.maximum.reduceat(y, first)
    falls = y[first] > np.r_[y[first[1:] - 1], y[-1]]
    left = start + (bucket[first] + 0.25) * width
    times = np.column_stack([left, left + 0.5 * width]).ravel()
    values = np.where(falls[:, None], np.column_stack([high, low]), np.column_stack([low, high])).ravel()
    return times, values


def _read(run_dir: Path, table: str, columns: list[str], window: Window) -> pl.DataFrame:
    first, last = window.start - window.margin, window.end + window.margin
    return library.rows(run_dir, table, ["time", *columns], first, last)


def _add_streams(window: Window, panel: str, source: Source, run_dir: Path, plan: Plan) -> None:
    keys = ["flow", "stream", "node"] if source.table == "sockets" else ["flow", "stream"]
    frame = _read(run_dir, source.table, [*keys, source.column], window)
    if source.table == "sockets":
        # Requests and echoes have a socket at either end. As in the report, that which sends most is shown.
        for flow in filter(goes_both_ways, plan["flows"]):
            is_other = (pl.col("flow") == flow["name"]) & (pl.col("node") != data_ends(flow)[0])
            frame = frame.filter(~is_other)
    if frame.select("flow", "stream").unique().height > MAX_STREAMS:
        value = pl.col(source.column)
        merged = value.sum() if source.together == "sum" else value.mean()
        frame = frame.group_by("flow", "time", maintain_order=True).agg(merged).with_columns(stream=0)
    parts = frame.partition_by(["flow", "stream"], as_dict=True, maintain_order=True)
    counts = Counter(flow for flow, _ in parts)
    for (flow, stream), part in parts.items():
        x, y = _xy(part.sort("time"), source)
        if not np.isfinite(y).any():
            continue
        label = str(flow) if counts[flow] == 1 else f"{flow} {stream}"
        window.add(
            {"panel": panel, "label": label, "flow": flow, "stream": stream, "unit": source.unit}, x, y
        )


def _add_queues(window: Window, panel: str, source: Source, queues: pl.DataFrame) -> None:
    for (link, direction), part in _by_direction(queues):
        x, y = _xy(part, source)
        # A way that never had anyone waiting says nothing.
        if not np.nanmax(y, initial=0.0) > 0:
            continue
        about = {"panel": panel, "link": link, "direction": direction, "unit": source.unit}
        window.add({**about, "label": str(link) if direction == "forward" else f"{link} back"}, x, y)


def _add_derived(window: Window, panel: str, source: Derived, around: samples.Samples) -> None:
    for about, x, y in source.make(around, window.start, window.end):
        if not np.isfinite(y).any():
            continue
        if source.across == "time":
            window.add({"panel": panel, **about}, x, y)
        else:
            window.series.append({"panel": panel, "across": source.across, **about})
            window.arrays += [x, y]


def _by_direction(queues: pl.DataFrame) -> Iterable[tuple[tuple[Any, ...], pl.DataFrame]]:
    return queues.partition_by(["link", "direction"], as_dict=True, maintain_order=True).items()


def _add_pings(window: Window, run_dir: Path) -> None:
    frame = _read(run_dir, "pings", ["flow", "stream", "rtt"], window)
    for (flow,), part in frame.group_by("flow", maintain_order=True):
        x, y = _xy(part.drop_nulls("rtt").sort("time"), Source("pings", "rtt", "s", 1e-9))
        window.add({"panel": "rtt", "label": str(flow), "flow": flow, "stream": 0, "unit": "s"}, x, y)


def _xy(frame: pl.DataFrame, source: Source) -> tuple[Array, Array]:
    x = frame["time"].to_numpy().astype(np.float64) / 1e9
    y = frame[source.column].cast(pl.Float64).fill_null(float("nan")).to_numpy() * source.scale
    return x, y


def _phases(run_dir: Path, window: Window) -> Iterator[dict[str, Any]]:
    """The control's phases of each flow's first stream: name and when it began."""
    frame = library.rows(run_dir, "events", ["time", "flow", "stream", "event", "detail"], 0, window.end)
    frame = frame.filter((pl.col("event") == "phase") & (pl.col("stream") == 0)).sort("time")
    for (flow,), part in frame.partition_by(["flow"], as_dict=True, maintain_order=True).items():
        # The phase that the window begins in began before it.
        first = max(0, int((part["time"] <= window.start).sum()) - 1)
        inside = part.slice(first)
        if inside.height > MAX_PHASES:
            continue
        yield {
            "flow": flow,
            "times": [time / 1e9 for time in inside["time"].to_list()],
            "names": [name or "" for name in inside["detail"].to_list()],
        }


def _marks(queues: pl.DataFrame, window: Window) -> Iterator[dict[str, Any]]:
    """When packets were dropped by a queue, lost by an impairment, or marked, and how many."""
    # Counts of a run's first sample are of the time before it.
    is_begin = window.start <= window.margin
    for (link, direction), part in _by_direction(queues):
        if not part.select("drops", "lost", "marks").tail(1).sum_horizontal().sum():
            continue
        for column, kind in (("drops", "drop"), ("lost", "loss"), ("marks", "mark")):
            count = pl.col(column)
            grown = count.diff().fill_null(count) if is_begin else count.diff()
            found = part.select("time", n=grown).filter(pl.col("n") > 0)
            if not found.height:
                continue
            if found.height > MAX_MARKS:
                size = -(-found.height // MAX_MARKS)
                found = (
                    found.with_row_index("row")
                    .group_by(pl.col("row") // size, maintain_order=True)
                    .agg(pl.col("time").first(), pl.col("n").sum())
                )
            yield {
                "link": link,
                "direction": direction,
                "kind": kind,
                "times": [time / 1e9 for time in found["time"].to_list()],
                "counts": found["n"].to_list(),
            }
