"""Objects fetched over HTTP: time to the first byte and to the last, by size."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tcplab.analysis.estimate import Estimate, estimate
from tcplab.results.run import Run


@dataclass(frozen=True)
class Fetches:
    """The objects of one size that a flow fetched."""

    flow: str
    size: int
    """Bytes of each object."""
    objects: int
    """Over all repetitions."""
    first_byte: Estimate
    """From the first request for an object to the first byte of it, ns: the mean."""
    completion: Estimate
    """To its last byte, ns: the mean."""
    completion_p95: Estimate
    """95th percentile of that, ns."""


def fetches(run: Run, level: float) -> list[Fetches]:
    """A row for each flow and size; a repetition is one observation."""
    table = run.tables["fetches"]
    if not len(table):
        return []
    # A page may ask for an object twice, and its ranges then add up to twice its size: they are taken as one.
    objects = table.group_by("repetition", "flow", "page", "object", "size").agg(
        (pl.col("time") + pl.col("first_byte")).min().alias("first"),
        (pl.col("time") + pl.col("duration")).max().alias("last"),
        pl.col("time").min(),
        pl.col("bytes").sum(),
    )
    whole = objects.filter(pl.col("bytes") >= pl.col("size"))
    runs = whole.group_by("flow", "size", "repetition").agg(
        (pl.col("first") - pl.col("time")).mean().alias("first_byte"),
        (pl.col("last") - pl.col("time")).mean().alias("completion"),
        (pl.col("last") - pl.col("time")).quantile(0.95).alias("completion_p95"),
        pl.len().alias("objects"),
    )
    rows = []
    for (flow, size), own in sorted(
        runs.group_by("flow", "size"), key=lambda item: (str(item[0][0]), item[0][1])
    ):
        values = own.sort("repetition")
        figures = [
            estimate(values[key].to_list(), level) for key in ("first_byte", "completion", "completion_p95")
        ]
        rows.append(Fetches(str(flow), int(str(size)), int(values["objects"].sum()), *figures))
    return rows
