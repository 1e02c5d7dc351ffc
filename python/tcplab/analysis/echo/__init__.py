"""How long messages take to come back, by size and number of clients: in numbers and words."""

from __future__ import annotations

from tcplab.analysis.echo.explain import Path, Step, explain
from tcplab.analysis.echo.flows import FlowEchoes, by_size, echoes_of
from tcplab.analysis.echo.round_trips import Series, from_events, from_tables
from tcplab.analysis.echo.statistics import Echoes, SizeStatistics, statistics
from tcplab.analysis.echo.table import LABELS, csv_text, document, heading, tables

__all__ = [
    "LABELS",
    "Echoes",
    "FlowEchoes",
    "Path",
    "Series",
    "SizeStatistics",
    "Step",
    "by_size",
    "csv_text",
    "document",
    "echoes_of",
    "explain",
    "from_events",
    "from_tables",
    "heading",
    "statistics",
    "tables",
]
