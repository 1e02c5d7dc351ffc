"""`tcplab export`: results in the formats of other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json, OneRun, results

if TYPE_CHECKING:
    from tcplab.results import Run

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
        typer.Option(
            "--output", "-o", metavar="PATH", help="A directory for csv, a file or - for the others."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a result in the format of another tool."""
    from tcplab.cli.output import say_files, warn
    from tcplab.cli.writing import naming
    from tcplab.results.export import export as write

    with results([run]) as (loaded,):
        for text in loaded.lost_files:
            warn(f"tcplab: warning: {text}")
        if output == Path("-"):
            _print(loaded, form)
            return
        target = output or loaded.path / ("csv" if form == "csv" else f"{form}.json")
        with naming(target):
            written = write(loaded, form, target)
        say_files(written, json=json)


def _print(run: Run, form: str) -> None:
    """Write the one document that there is to standard output."""
    from tcplab.results.export import export as write

    if form == "csv":
        raise CommandError("csv is several files, and standard output is one", Code.INPUT, "name a directory")
    with TemporaryDirectory() as folder:
        files = write(run, form, Path(folder) / "run.json")
        if len(files) != 1:
            said = f"{form} is {len(files)} files of this result, and standard output is one"
            raise CommandError(said, Code.INPUT, "name a file: the others get its name and their own")
        sys.stdout.write(files[0].read_text(encoding="utf-8"))
