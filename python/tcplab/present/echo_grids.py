"""Tables of the round trips of echo flows by message size, as text cells."""

from __future__ import annotations

from collections.abc import Sequence

from tcplab.analysis.echo import FlowEchoes, SizeStatistics
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import fine_time_scale

_TITLE = "Round-trip time by message size"
# Columns that a narrow terminal leaves out, the highest first.
_MINOR = {"SD": 4, "Median": 3, "Maximum": 2, "p99": 1}


def echo_grids(rows: Sequence[FlowEchoes]) -> list[Grid]:
    """One table per flow, one row per size."""
    return [_echo_grid(_TITLE if len(rows) == 1 else f"{_TITLE}, {one.flow}", one.sizes) for one in rows]


def _echo_grid(title: str, sizes: Sequence[SizeStatistics]) -> Grid:
    columns = (
        ("Mean", [one.mean for one in sizes]),
        ("SD", [one.deviation for one in sizes]),
        ("Median", [one.median for one in sizes]),
        ("p99", [one.p99 for one in sizes]),
        ("Maximum", [one.maximum for one in sizes]),
    )
    scale = fine_time_scale(one.mean for one in sizes)
    headings = (
        Heading("Message", "B", about="Payload of a message"),
        Heading("Round trips", about="All clients and repetitions, without the warm-up"),
        *(Heading(label, scale.unit, minor=_MINOR.get(label, 0)) for label, _ in columns),
    )
    rows = zip(*([scale.number(value) for value in values] for _, values in columns), strict=True)
    return Grid(
        title,
        headings,
        tuple((str(one.size), str(one.count), *cells) for one, cells in zip(sizes, rows, strict=True)),
    )
