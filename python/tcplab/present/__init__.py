"""Results as people read them: text tables, HTML reports, comparisons.

Heavy libraries are imported only when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab.present.comparison import Comparison, compare
    from tcplab.present.report import write_comparison, write_report
    from tcplab.present.run_figures import write_figures
    from tcplab.present.summary_table import SummaryTable, summary

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
    "SummaryTable": "summary_table",
    "compare": "comparison",
    "summary": "summary_table",
    "write_comparison": "report",
    "write_figures": "run_figures",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
