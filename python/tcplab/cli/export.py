"""`tcplab export`: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tcplab.cli.failure import guarded
from tcplab.cli.options import Json, OneRun, results

EXAMPLE = "tcplab export runs/four-controls-20260101-120000 --format csv --output csv"


@guarded
def export(
    run: OneRun,
    form: Annotated[
        Literal["csv", "json", "iperf3", "flent"],
        typer.Option("--format", "-f", help="csv: a directory with a file for each table."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A directory for csv, a file for the others."),
    ] = None,
    json: Json = False,
) -> None:
    """Write a result in the format of another tool."""
    from tcplab.cli.output import say_files
    from tcplab.cli.writing import naming
    from tcplab.results.export import export as write

    with results([run]) as (loaded,):
        target = output or loaded.path / ("csv" if form == "csv" else f"{form}.json")
        with naming(target):
            written = write(loaded, form, target)
        say_files(written, json=json)
