"""The run directory: writing it, reading it, and what its tables hold.

Heavy libraries are imported only when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tcplab.results.errors import ResultsError
from tcplab.results.schema import TABLES, Column

if TYPE_CHECKING:
    from tcplab.results.listing import Listed, list_results
    from tcplab.results.manifest import Host, Manifest, plan_digest
    from tcplab.results.run import Run, load
    from tcplab.results.tables import SchemaError, conform, read_table, write_table
    from tcplab.results.writer import RunWriter, create_result_dir, run_dir_of

__all__ = [
    "TABLES",
    "Column",
    "Host",
    "Listed",
    "Manifest",
    "ResultsError",
    "Run",
    "RunWriter",
    "SchemaError",
    "conform",
    "create_result_dir",
    "list_results",
    "load",
    "plan_digest",
    "read_table",
    "run_dir_of",
    "write_table",
]

_HOMES = {
    "Host": "manifest",
    "Listed": "listing",
    "Manifest": "manifest",
    "Run": "run",
    "RunWriter": "writer",
    "SchemaError": "tables",
    "conform": "tables",
    "create_result_dir": "writer",
    "list_results": "listing",
    "load": "run",
    "plan_digest": "manifest",
    "read_table": "tables",
    "run_dir_of": "writer",
    "write_table": "tables",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
