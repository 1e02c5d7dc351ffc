"""`tcplab export`: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import OneRun, results

FORMATS = ("csv", "json", "iperf3", "flent")

EXAMPLE = "tcplab export runs/four-controls-20260101-120000 --format csv --output csv"


@guarded
def export(
    run: OneRun,
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="csv, json, iperf3 or flent.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A directory for csv, a file for the others."),
    ] = None,
) -> None:
    """Write a result in the format of another tool."""
    from tcplab.cli.output import say
    from tcplab.cli.writing import naming
    from tcplab.results.export import export as write

    if form not in FORMATS:
        raise CommandError(f"--format {form}: there is {', '.join(FORMATS)}", Code.INPUT)
    with results([run]) as (loaded,):
        target = output or loaded.path / ("csv" if form == "csv" else f"{form}.json")
        with naming(target):
            for path in write(loaded, form, target):
                say(str(path))
