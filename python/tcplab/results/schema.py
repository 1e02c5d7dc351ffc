"""The result tables: one schema, whichever engine ran. `crates/tables` is its home.

Times are nanoseconds since the run's start, rates bit/s, sizes bytes, windows segments. A column that
an engine cannot know is null, never faked.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcplab import _core


@dataclass(frozen=True)
class Column:
    """One column.

    `kind` is int, float, bool or str; `unit` is ns, bit/s, B, segments, packets, s or empty.
    """

    name: str
    kind: str
    unit: str
    doc: str


_SCHEMA = _core.tables()

TABLES: dict[str, tuple[Column, ...]] = {
    name: tuple(Column(*column) for column in columns) for name, *_, columns in _SCHEMA
}
ROWS: dict[str, str] = {name: doc for name, doc, *_ in _SCHEMA}
"""The subject of a row of each table."""
REQUIRED: dict[str, tuple[str, ...]] = {name: tuple(required) for name, _, required, *_ in _SCHEMA}
"""The columns of each table that no row of any engine leaves null."""
COUNTED: dict[str, tuple[str, ...]] = {name: tuple(counted) for name, *_, counted, _ in _SCHEMA}
"""Counters of which each end of a flow has its own."""
