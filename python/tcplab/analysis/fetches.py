"""Objects fetched over HTTP: time to the first byte and to the last, by size."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tcplab.analysis.estimate import Estimate, estimate
from tcplab.analysis.statistics import weighted_quantiles
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
    hits: Estimate | None = None
    """Share of requests that a cache answered from what it had stored; none without a cache."""
    byte_hits: Estimate | None = None
    """Share of the bytes asked for that it answered them with."""


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
    completion = pl.col("last") - pl.col("time")
    runs = whole.group_by("flow", "size", "repetition").agg(
        (pl.col("first") - pl.col("time")).mean().alias("first_byte"),
        completion.mean().alias("completion"),
        completion.alias("completions"),
        pl.len().alias("objects"),
    )
    hits = _hits(table, level)
    rows = []
    for (flow, size), own in sorted(
        runs.group_by("flow", "size"), key=lambda item: (str(item[0][0]), item[0][1])
    ):
        values = own.sort("repetition")
        tails = [float(weighted_quantiles(one.to_numpy(), 0.95)[0]) for one in values["completions"]]
        figures = [estimate(values[key].to_list(), level) for key in ("first_byte", "completion")]
        figures.append(estimate(tails, level))
        own_hits = hits.get((flow, size), (None, None))
        rows.append(Fetches(str(flow), int(str(size)), int(values["objects"].sum()), *figures, *own_hits))
    return rows


def _hits(table: pl.DataFrame, level: float) -> dict[tuple[object, ...], tuple[Estimate, Estimate]]:
    """The hit ratio and the byte hit ratio by flow and size, of requests that passed a cache."""
    asked = table.filter(pl.col("cache").is_not_null()).with_columns((pl.col("cache") != "miss").alias("hit"))
    runs = asked.group_by("flow", "size", "repetition").agg(
        pl.col("hit").mean().alias("hits"),
        (pl.col("bytes").filter("hit").sum() / pl.col("bytes").sum()).alias("byte_hits"),
    )
    found = {}
    for key, own in runs.group_by("flow", "size"):
        values = own.sort("repetition")
        hits, byte_hits = (estimate(values[name].to_list(), level) for name in ("hits", "byte_hits"))
        found[key] = (hits, byte_hits)
    return found
