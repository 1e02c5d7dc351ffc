"""What a person sees of a run: summary tables, figures and the HTML report.

Heavy libraries are imported only when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab.report.comparison import Comparison, compare
    from tcplab.report.html import write_comparison, write_report
    from tcplab.report.images import write_figures
    from tcplab.report.summaries import SummaryTable, summary

__all__ = [
    "Comparison",
    "SummaryTable",
    "compare",
    "summary",
    "write_comparison",
    "write_figures",
    "write_report",
]

_HOMES = {
    "Comparison": "comparison",
    "SummaryTable": "summaries",
    "compare": "comparison",
    "summary": "summaries",
    "write_comparison": "html",
    "write_figures": "images",
    "write_report": "html",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
