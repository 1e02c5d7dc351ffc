"""Summaries of the legs of connections that an accelerator has split."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tcplab.analysis.estimate import Estimate, estimate
from tcplab.results.run import Run


@dataclass(frozen=True)
class LegSummary:
    """One leg of a flow's connections at one accelerator."""

    flow: str
    node: str
    """The accelerator's."""
    leg: str
    """`client` or `server`."""
    rtt: Estimate
    """Mean smoothed RTT, ns."""
    window: Estimate
    """Mean congestion window, segments."""
    retransmits: Estimate
    """Segments retransmitted in the whole run."""
    exposed: Estimate
    """The most that was acknowledged to this leg's far end and not yet by the other's, bytes."""


def leg_summaries(run: Run, level: float) -> list[LegSummary]:
    """A row for each flow, accelerator and leg; a repetition is one observation."""
    table = run.tables["legs"].filter(pl.col("flow").is_not_null())
    if not len(table):
        return []
    keys = ("flow", "node", "leg")
    # The connections of a flow at one time, added up or averaged; then over time.
    at_once = table.group_by("repetition", *keys, "time").agg(
        pl.col("srtt").mean(), pl.col("cwnd").mean(), pl.col("retransmits").sum(), pl.col("exposed").sum()
    )
    runs = at_once.group_by("repetition", *keys).agg(
        pl.col("srtt").mean(), pl.col("cwnd").mean(), pl.col("retransmits").max(), pl.col("exposed").max()
    )
    rows = []
    for names, own in sorted(runs.group_by(*keys), key=lambda item: [str(name) for name in item[0]]):
        flow, node, leg = (str(name) for name in names)
        values = own.sort("repetition")
        figures = [
            estimate([float("nan") if one is None else float(one) for one in values[column].to_list()], level)
            for column in ("srtt", "cwnd", "retransmits", "exposed")
        ]
        rows.append(LegSummary(flow, node, leg, *figures))
    return rows
