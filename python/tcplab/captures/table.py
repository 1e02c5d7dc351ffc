"""The flow table as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcplab.captures.columns import GAP, Column, widths
from tcplab.captures.flow import Flow


def lines(columns: Sequence[Column], flows: Sequence[Flow]) -> Iterator[str]:
    """A heading and a line per flow."""
    rows = [[column.show(flow) for column in columns] for flow in flows]
    taken = widths(columns, rows)
    for row in ([column.title for column in columns], *rows):
        yield _line(columns, row, taken)


def _line(columns: Sequence[Column], row: Sequence[str], taken: Sequence[int]) -> str:
    cells = (
        cell.ljust(width) if column.left else cell.rjust(width)
        for column, cell, width in zip(columns, row, taken, strict=True)
    )
    return (" " * GAP).join(cells).rstrip()
