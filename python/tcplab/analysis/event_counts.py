"""Events of flows and links, counted."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tcplab.results.run import Run

_MAX_TIMES = 6


@dataclass(frozen=True)
class EventRow:
    """One kind of event of one flow or link."""

    who: str
    what: str
    count: int
    when: str
    """The first few times, s."""


_NAMES = {
    "rto": "retransmission timeout",
    "tail_loss_probe": "tail loss probe",
    "undo": "undo of a needless reduction",
    "ecn": "ECN response",
    "aborted": "connection aborted",
    "link_change": "link change",
    "adjacency": "change of an OSPF adjacency",
    "session": "change of a BGP session",
}


def event_rows(run: Run) -> list[EventRow]:
    """Events worth a reader's attention, by flow or link and kind, over all repetitions."""
    events = run.tables["events"]
    loss = (pl.col("event") == "state") & pl.col("detail").is_in(["recovery", "loss"])
    named = events.filter(loss | pl.col("event").is_in(list(_NAMES))).with_columns(
        pl.coalesce("flow", "link").alias("who"),
        pl.when(pl.col("event") == "state")
        .then(pl.lit("loss episode (") + pl.col("detail") + pl.lit(")"))
        .otherwise(pl.col("event").replace(_NAMES))
        .alias("what"),
    )
    groups = (
        named.sort("repetition", "time")
        .group_by("who", "what", maintain_order=True)
        .agg(pl.len().alias("count"), pl.col("time").head(_MAX_TIMES), pl.col("repetition").head(_MAX_TIMES))
    )
    many = len(run.repetitions) > 1
    rows = [
        EventRow(str(who), what, count, _when(times, repetitions if many else None, count))
        for who, what, count, times, repetitions in groups.iter_rows()
    ]
    order = {name: index for index, name in enumerate(flow["name"] for flow in run.plan.get("flows", ()))}
    return sorted(rows, key=lambda row: (order.get(row.who, len(order)), row.who, row.what))


def _when(times: list[int], repetitions: list[int] | None, count: int) -> str:
    first = repetitions[0] if repetitions else None
    same = [time for i, time in enumerate(times) if repetitions is None or repetitions[i] == first]
    text = ", ".join(f"{time / 1e9:.3f}" for time in same)
    more = ", …" if count > len(same) else ""
    return f"{text}{more} s" + (f" (repetition {first})" if first is not None else "")
