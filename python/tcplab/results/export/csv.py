"""CSV: one file per table."""

from __future__ import annotations

from pathlib import Path

from tcplab.results.export.documents import make_directory
from tcplab.results.files import write_text
from tcplab.results.run import Run


def write(run: Run, target: Path) -> list[Path]:
    """Write every table that has rows into the directory `target`; an empty cell is null."""
    make_directory(target)
    written = []
    for name, frame in run.tables.items():
        if len(frame):
            path = target / f"{name}.csv"
            write_text(path, frame.write_csv())
            written.append(path)
    return written
