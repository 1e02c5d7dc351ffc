"""Tables of objects fetched over HTTP and of the legs of accelerated connections, as text cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tcplab.analysis.estimate import Estimate
from tcplab.analysis.fetches import Fetches
from tcplab.analysis.leg_summaries import LegSummary
from tcplab.analysis.statistics import mean_interval
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import (
    Scale,
    bytes_text,
    count_scale,
    percent_scale,
    rate_scale,
    size_scale,
    time_scale,
)


def fetch_grid(rows: Sequence[Fetches]) -> Grid:
    """One row per flow and size of objects."""
    columns: tuple[_Column, ...] = (
        ("First byte", time_scale, "From the request to the first byte", [row.first_byte for row in rows]),
        (
            "Completion",
            time_scale,
            "From the first request to the last byte",
            [row.completion for row in rows],
        ),
        ("Completion p95", time_scale, "95th percentile", [row.completion_p95 for row in rows]),
    )
    if any(row.hits is not None for row in rows):
        nothing = Estimate(mean_interval([], 0.95), ())
        hits = [row.hits or nothing for row in rows]
        byte_hits = [row.byte_hits or nothing for row in rows]
        columns += (
            ("Hits", percent_scale, "Share of requests that a cache answered", hits),
            ("Byte hits", percent_scale, "Share of their bytes", byte_hits),
        )
    texts = [(row.flow, bytes_text(row.size), str(row.objects)) for row in rows]
    headings = (Heading("Flow", numeric=False), Heading("Object"), Heading("n", about="Objects fetched"))
    return _grid("Objects fetched", headings, texts, columns)


def leg_grid(rows: Sequence[LegSummary]) -> Grid:
    """One row per flow, accelerator and leg."""
    columns = (
        ("Goodput", rate_scale, "Payload that the leg carried", [row.goodput for row in rows]),
        ("RTT", time_scale, "Smoothed round-trip time of the leg", [row.rtt for row in rows]),
        ("Window", _segments, "Mean congestion window", [row.window for row in rows]),
        ("Retransmitted", _segments, "By the accelerator", [row.retransmits for row in rows]),
        (
            "Waiting",
            time_scale,
            "Mean time that payload waits at the accelerator before it is sent on the leg",
            [row.queueing for row in rows],
        ),
        (
            "Exposed",
            size_scale,
            "The most that is lost, although acknowledged, if the accelerator dies",
            [row.exposed for row in rows],
        ),
    )
    texts = [(row.flow, row.node, f"towards the {row.leg}", "yes" if row.bottleneck else "") for row in rows]
    headings = (
        *(Heading(label, numeric=False) for label in ("Flow", "Accelerator", "Leg")),
        Heading("Bottleneck", numeric=False, about="The slower of the two legs"),
    )
    return _grid("Legs", headings, texts, columns)


def _segments(values: Iterable[float]) -> Scale:
    return replace(count_scale(values), unit="segments")


_Column = tuple[str, Callable[[Iterable[float]], Scale], str, list[Estimate]]


def _grid(
    title: str, headings: Sequence[Heading], texts: Sequence[tuple[str, ...]], columns: Sequence[_Column]
) -> Grid:
    made = list(headings)
    cells = [list(text) for text in texts]
    for label, scaler, about, figures in columns:
        scale = scaler([figure.value for figure in figures])
        made.append(Heading(label, scale.unit, about=about))
        for row, figure in zip(cells, figures, strict=True):
            row.append(scale.measured(figure.value, figure.interval.half_width))
    return Grid(title=title, headings=tuple(made), rows=tuple(tuple(row) for row in cells))
