"""The echo flows of a run, repetitions pooled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from tcplab.analysis.echo.round_trips import from_tables
from tcplab.analysis.echo.statistics import Echoes, SizeStatistics, statistics
from tcplab.plan.types import Flow
from tcplab.quantities import plural
from tcplab.results.run import Run


@dataclass(frozen=True)
class FlowEchoes:
    """The round trips of one echo flow by message size."""

    flow: str
    sizes: tuple[SizeStatistics, ...]


def by_size(run: Run, level: float) -> list[FlowEchoes]:
    """A row for each echo flow with results; `level` is that of the bounds of the mean."""
    return [FlowEchoes(flow["name"], echoes.sizes) for flow, echoes in echoes_of(run, level)]


def echoes_of(run: Run, level: float = 0.98) -> Iterator[tuple[Flow, Echoes]]:
    """Each echo flow of a run that has results, with their statistics."""
    planned = [flow for flow in run.plan.get("flows", ()) if "iterations" in flow]
    for flow in planned:
        of_flow = pl.col("flow") == flow["name"]
        series = from_tables(run.tables["echoes"].filter(of_flow), run.tables["echo_batches"].filter(of_flow))
        if series:
            yield (
                flow,
                statistics(
                    series,
                    clients=int(flow["streams"]),
                    iterations=int(flow["iterations"]),
                    warmup=int(flow.get("warmup") or 0),
                    level=level,
                    label=_label(flow, planned),
                ),
            )


def _label(flow: Flow, flows: Sequence[Flow]) -> str:
    """By the number of clients where that tells the flows apart."""
    counts = [one["streams"] for one in flows]
    clients = plural(int(flow["streams"]), "client")
    return clients if len(set(counts)) == len(flows) else f"{flow['name']}, {clients}"
