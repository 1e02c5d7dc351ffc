"""JSON: manifests, plan and all tables in one document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcplab.results.export.documents import write_documents
from tcplab.results.run import Run
from tcplab.results.schema import TABLES


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
            name: frame.fill_nan(None).to_dict(as_series=False)
            for name, frame in run.tables.items()
            if len(frame)
        },
    }


def write(run: Run, target: Path) -> list[Path]:
    """Write the document to `target`."""
    return write_documents({"all": document(run)}, target)
