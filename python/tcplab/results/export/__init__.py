"""Results in the formats of other tools, one format a file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcplab.results.run import Run

FORMATS = {
    "csv": "one CSV file per table, in a directory",
    "json": "all tables in one JSON document",
    "iperf3": "the JSON that `iperf3 -J` prints, one document per TCP or UDP flow and repetition",
    "flent": "flent's data format, one document per repetition",
}
"""Format to what it is."""


def export(run: Run, form: str, target: Path | str) -> list[Path]:
    """Write a run in another tool's format; returns the files.

    `target` is a directory for csv and a file for the others. A format that holds less than a whole result
    writes several files, with the flow's name or the repetition's number before the ending. Raises
    ValueError for an unknown format and ResultsError when a file cannot be written or would hold nothing.
    """
    if form not in FORMATS:
        raise ValueError(f"unknown format {form!r} (formats: {', '.join(FORMATS)})")
    write: Callable[[Run, Path], list[Path]] = import_module(f"{__name__}.{form}").write
    return write(run, Path(target))
