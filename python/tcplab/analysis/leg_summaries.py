"""Summaries of the legs of connections that an accelerator has split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from tcplab.analysis.estimate import Estimate, estimate
from tcplab.results.run import Run

LEGS = ("client", "server")
# A leg is the slower one where payload waits most of the time, for more than this share of its RTT.
_WAITS, _MOSTLY = 0.1, 0.5
# A receive window is filled where less than this share of it is free.
_FREE = 0.05
_FIGURES = ("goodput", "srtt", "cwnd", "retransmits", "queueing", "exposed")


@dataclass(frozen=True)
class LegSummary:
    """One leg of a flow's connections at one accelerator."""

    flow: str
    node: str
    """The accelerator's."""
    leg: str
    """`client` or `server`."""
    bottleneck: bool
    """Whether it is the slower of the two."""
    goodput: Estimate
    """Payload that it carried in both directions, bit/s."""
    rtt: Estimate
    """Mean smoothed RTT, ns."""
    window: Estimate
    """Mean congestion window, segments."""
    retransmits: Estimate
    """Segments retransmitted in the whole run."""
    queueing: Estimate
    """Mean time that payload waits at the accelerator before it is sent on this leg, ns."""
    exposed: Estimate
    """The most that was acknowledged to this leg's far end and not yet by the other's, bytes."""


def leg_summaries(run: Run, level: float) -> list[LegSummary]:
    """A row for each flow, accelerator and leg; a repetition is one observation."""
    found = leg_figures(run.tables["legs"])
    rows = []
    for names, own in sorted(
        found.group_by("flow", "node", "leg"), key=lambda item: [str(name) for name in item[0]]
    ):
        flow, node, leg = (str(name) for name in names)
        values = own.sort("repetition")
        figures = [
            estimate([float("nan") if one is None else float(one) for one in values[column].to_list()], level)
            for column in _FIGURES
        ]
        slower = slower_leg(found.filter(flow=flow, node=node))
        rows.append(LegSummary(flow, node, leg, leg == slower, *figures))
    return rows


def leg_figures(table: pl.DataFrame) -> pl.DataFrame:
    """The figures of each repetition, flow, accelerator and leg, from rows of the table `legs`."""
    keys = ("repetition", "flow", "node", "leg")
    carried = pl.col("bytes_received") + pl.col("bytes_acked")
    # Payload acknowledged on the other leg is under way on this one, or waits for it.
    sample = ("repetition", "flow", "node", "stream", "connection", "time")
    under_way = pl.col("exposed").sum().over(sample) - pl.col("exposed") - pl.col("unsent")
    filled = (under_way >= (1 - _FREE) * pl.col("rwnd")).alias("window_filled")
    of_connections = (
        table.filter(pl.col("flow").is_not_null())
        .with_columns(filled)
        .sort("time")
        .group_by(*keys, "stream", "connection")
        .agg(
            (carried.last() - carried.first()).alias("carried"),
            (pl.col("bytes_acked").last() - pl.col("bytes_acked").first()).alias("sent"),
            pl.col("time").first().alias("begin"),
            pl.col("time").last().alias("end"),
            pl.col("unsent").mean(),
            (pl.col("unsent") > 0).mean().alias("waiting"),
            pl.col("srtt").mean(),
            pl.col("cwnd").mean(),
            pl.col("retransmits").max(),
            pl.col("window_filled").mean(),
        )
    )
    exposed = (
        table.group_by(*keys, "time")
        .agg(pl.col("exposed").sum())
        .group_by(*keys)
        .agg(pl.col("exposed").max())
    )
    lasted = (pl.col("end").max() - pl.col("begin").min()).cast(pl.Float64)
    return (
        of_connections.group_by(*keys)
        .agg(
            (pl.col("carried").sum() * 8e9 / lasted).alias("goodput"),
            # Results of earlier versions do not know what waited.
            pl.when(pl.col("unsent").is_not_null().any())
            .then(pl.col("unsent").sum() * lasted / pl.col("sent").sum())
            .alias("queueing"),
            pl.col("waiting").mean(),
            pl.col("window_filled").mean(),
            pl.col("sent").sum(),
            pl.col("srtt").mean(),
            pl.col("cwnd").mean(),
            pl.col("retransmits").sum(),
        )
        .with_columns(pl.col("goodput", "queueing").replace([float("inf")], None).fill_nan(None))
        .join(exposed, on=keys)
    )


def slower_leg(figures: pl.DataFrame) -> str | None:
    """The slower of two legs, from their figures: payload waits for it, or none waits for the other.

    None where nothing was carried, or where it is not known what waited.
    """
    means = figures.group_by("leg").agg(pl.col("queueing", "waiting", "srtt", "sent").mean())
    legs = {row["leg"]: row for row in means.to_dicts()}
    if set(legs) != set(LEGS) or not any(row["sent"] for row in legs.values()):
        return None
    onwards, before = _ordered([legs[leg] for leg in LEGS])
    if onwards["queueing"] is None:
        return None
    # A burst waits, too: what a loss on the way here had held back.
    waits = onwards["queueing"] > _WAITS * (onwards["srtt"] or 0.0) and onwards["waiting"] > _MOSTLY
    return str((onwards if waits else before)["leg"])


def _ordered(legs: Sequence[dict[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """The leg that most of the payload leaves by, and the one it comes by."""
    one, other = legs
    return (one, other) if one["sent"] > other["sent"] else (other, one)
