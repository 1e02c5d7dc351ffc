"""How long messages take to come back, by size and number of clients: in numbers and words."""

from __future__ import annotations

from tcplab.analysis.echo.explain import Path, Step, explain
from tcplab.analysis.echo.round_trips import Series, from_events, from_tables
from tcplab.analysis.echo.statistics import Echoes, SizeStatistics, statistics
from tcplab.analysis.echo.table import LABELS, csv_text, document, heading, tables

__all__ = [
    "LABELS",
    "Echoes",
    "Path",
    "Series",
    "SizeStatistics",
    "Step",
    "csv_text",
    "document",
    "explain",
    "from_events",
    "from_tables",
    "heading",
    "statistics",
    "tables",
]
