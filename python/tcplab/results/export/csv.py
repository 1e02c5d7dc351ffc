"""CSV: one file per table."""

from __future__ import annotations

from pathlib import Path

from tcplab.results.errors import ResultsError
from tcplab.results.export.documents import make_directory
from tcplab.results.files import write_text
from tcplab.results.run import Run


def write(run: Run, target: Path) -> list[Path]:
    """Write every table that has rows into the directory `target`; an empty cell is null."""
    tables = {target / f"{name}.csv": frame for name, frame in run.tables.items() if len(frame)}
    if not tables:
        raise ResultsError(run.path, "no table has a row")
    make_directory(target)
    for path, frame in tables.items():
        write_text(path, frame.write_csv())
    return [*tables]
