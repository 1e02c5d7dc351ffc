"""Packets on their way: for playback, each one's stretch of time on each link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.plan.types import Plan
from tcplab.server import library
from tcplab.server.frames import encode

# The maximum that a screen can show and a browser can keep for one window.
MAX_PACKETS = 30_000
MAX_CHANGES = 2000
_KEY = ["way", "flow", "stream", "seq"]
_COLUMNS = ["time", "link", "direction", "event", "flow", "stream", "seq", "len", "queue_packets"]
MARKED, LOST, DROPPED = 1, 2, 4


@dataclass(frozen=True)
class Journeys:
    """Every packet of a run, in the order of departures."""

    flights: pl.DataFrame
    """start, end (ns), way, flow, flags, len; sorted by start."""
    drops: pl.DataFrame
    """The same of what a queue dropped or lost at its entry: start is end."""
    waiting: pl.DataFrame
    """time, way, queue_packets, sorted by time."""
    longest: int
    """The longest flight, ns."""


def packets(run_dir: Path, plan: Plan, start: int, end: int) -> bytes:
    """The packets on any link from `start` to `end` ns, as one message (`frames.encode`).

    Arrays: start and end (s) on the link, way, flow's number (-1: none), flags, frame bytes. The way is twice
    the link's number, plus 1 backward. Flags: 1 marked, 2 lost on the way, 4 dropped by the queue. Flights
    come first, then
    drops. Then, for each way with a queue, times (s) and packets waiting, beginning with what waits when the
    window begins; `largest` is the maximum of the whole run. `until` says up to when the window is complete,
    `changes` how links change in the whole run.
    """
    found = _journeys(run_dir, json.dumps([plan["links"], [flow["name"] for flow in plan["flows"]]]))
    until = end
    first = pl.col("start").is_between(start - found.longest, end)
    flights = found.flights.filter(first & (pl.col("end") >= start))
    drops = found.drops.filter(pl.col("start").is_between(start, end))
    if flights.height > MAX_PACKETS:
        until = int(flights["start"][MAX_PACKETS - 1])
        flights = flights.head(MAX_PACKETS)
        drops = drops.filter(pl.col("start") <= until)
    both = pl.concat([flights, drops])
    seconds = [both[name].to_numpy() / 1e9 for name in ("start", "end")]
    arrays: list[NDArray[Any]] = [
        *seconds,
        *(both[name].to_numpy() for name in ("way", "flow", "flags", "len")),
    ]
    queues = []
    largest = dict(found.waiting.group_by("way").agg(pl.max("queue_packets")).iter_rows())
    before = found.waiting.filter(pl.col("time") < start).unique("way", keep="last", maintain_order=True)
    waiting = pl.concat([before, found.waiting.filter(pl.col("time").is_between(start, until))])
    for (way,), part in waiting.partition_by(["way"], as_dict=True, maintain_order=True).items():
        last = part.unique("time", keep="last", maintain_order=True)
        queues.append({"way": way, "largest": largest[way]})
        arrays += [last["time"].to_numpy() / 1e9, last["queue_packets"].to_numpy()]
    header = {
        "links": [link["name"] for link in plan["links"]],
        "flows": [flow["name"] for flow in plan["flows"]],
        "start": start / 1e9,
        "until": until / 1e9,
        "duration": plan["duration"] / 1e9,
        "queues": queues,
        "changes": list(_changes(run_dir, plan)),
        "recorded": found.flights.height > 0,
    }
    return encode(header, arrays)


def _changes(run_dir: Path, plan: Plan) -> Iterator[dict[str, Any]]:
    """How links change, in order of time: at first those that are down from the beginning."""
    for number, link in enumerate(plan["links"]):
        for direction in ("forward", "backward"):
            if link[direction].get("up") is False:
                yield {"link": number, "time": 0.0, "direction": direction, "detail": "down"}
    numbers = {link["name"]: number for number, link in enumerate(plan["links"])}
    events = library.rows(run_dir, "events", ["time", "link", "event", "detail"], 0, 2**62)
    changes = events.filter(pl.col("event") == "link_change").sort("time").head(MAX_CHANGES)
    for time, link, detail in changes.select("time", "link", "detail").iter_rows():
        direction, _, setting = (detail or "").partition(": ")
        if link in numbers:
            yield {"link": numbers[link], "time": time / 1e9, "direction": direction, "detail": setting}


@lru_cache(maxsize=2)
def _journeys(run_dir: Path, about: str) -> Journeys:
    """Pair every departure with its end, once for a run.

    Acknowledgments have one sequence number for all: of packets that look alike on a link, the first to leave
    is the first to arrive. A copy that the link makes leaves when it is made.
    """
    links, flows = json.loads(about)
    ways = {
        f"{link['name']} {direction}": 2 * number + backward
        for number, link in enumerate(links)
        for backward, direction in enumerate(("forward", "backward"))
    }
    early = [
        ways[f"{link['name']} {direction}"]
        for link in links
        for direction in ("forward", "backward")
        if (link[direction].get("loss") or {}).get("before_queue")
    ]
    numbers = {name: number for number, name in enumerate(flows)}
    events = library.rows(run_dir, "packets", _COLUMNS, 0, 2**62).select(
        "time",
        "event",
        "len",
        "queue_packets",
        way=pl.concat_str("link", pl.lit(" "), "direction").replace_strict(
            ways, default=-1, return_dtype=pl.Int64
        ),
        flow=pl.col("flow").replace_strict(numbers, default=-1, return_dtype=pl.Int64),
        stream=pl.col("stream").fill_null(-1),
        seq=pl.col("seq").fill_null(-1),
    )
    events = events.with_columns(at_entry=(pl.col("event") == "lose") & pl.col("way").is_in(early))
    nth = pl.int_range(pl.len()).over(_KEY).alias("nth")
    departs = events.filter(pl.col("event").is_in(["depart", "duplicate"])).with_columns(nth)
    ends = (
        events.filter(pl.col("event").is_in(["deliver", "lose", "corrupt"]) & ~pl.col("at_entry"))
        .with_columns(nth)
        .select(*_KEY, "nth", end="time", lost=pl.col("event") != "deliver")
    )
    marks = events.filter(pl.col("event") == "mark").select(*_KEY, marked="time").unique(_KEY)
    flights = (
        departs.join(ends, on=[*_KEY, "nth"])
        .join(marks, on=_KEY, how="left")
        .select(
            pl.col("time").alias("start"),
            "end",
            "way",
            "flow",
            flags=pl.col("lost").cast(pl.Int64) * LOST
            + (pl.col("marked") <= pl.col("time")).fill_null(value=False).cast(pl.Int64) * MARKED,
            len="len",
        )
        .filter(pl.col("end") >= pl.col("start"))
        .sort("start")
    )
    drops = (
        events.filter((pl.col("event") == "drop") | pl.col("at_entry"))
        .select(start="time", end="time", way="way", flow="flow", flags=pl.lit(DROPPED, pl.Int64), len="len")
        .sort("start")
    )
    waiting = events.drop_nulls("queue_packets").select("time", "way", "queue_packets").sort("time")
    longest = int(np.max((flights["end"] - flights["start"]).to_numpy(), initial=0))
    return Journeys(flights, drops, waiting, longest)
