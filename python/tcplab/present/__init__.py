"""Results as people read them: text tables, HTML reports, comparisons.

Heavy libraries are imported only when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab.analysis.summaries import SummaryTable, summary
    from tcplab.figures.images import write_figures
    from tcplab.present.comparison import Comparison, compare
    from tcplab.present.report import write_comparison, write_report

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
    "Comparison": "present.comparison",
    "SummaryTable": "analysis.summaries",
    "compare": "present.comparison",
    "summary": "analysis.summaries",
    "write_comparison": "present.report",
    "write_figures": "figures.images",
    "write_report": "present.report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tcplab.{_HOMES[name]}"), name)
