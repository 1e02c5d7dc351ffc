"""JSON: manifests, plan and all tables in one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from tcplab.results.export.documents import write_documents
from tcplab.results.run import Run
from tcplab.results.schema import TABLES

_FLOATS = cs.float()
# JSON has no number for the others.
_FINITE = pl.when(_FLOATS.is_finite()).then(_FLOATS)


def document(run: Run) -> dict[str, Any]:
    """The whole result: each table as an object of columns, with the columns' units beside it."""
    return {
        "name": run.name,
        "engine": run.engine,
        "status": run.status,
        "manifests": {str(n): manifest.to_data() for n, manifest in run.manifests.items()},
        "plan": run.plan,
        "units": {
            name: {column.name: column.unit for column in columns if column.unit}
            for name, columns in TABLES.items()
        },
        "tables": {
            name: frame.with_columns(_FINITE).to_dict(as_series=False)
            for name, frame in run.tables.items()
            if len(frame)
        },
    }


def write(run: Run, target: Path) -> list[Path]:
    """Write the document to `target`."""
    return write_documents({"all": document(run)}, target)
