"""`tcplab compare`: what differs between results, and whether it is significant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json, Level, Runs, level_of, results

EXAMPLE = "tcplab compare runs/cubic runs/bbr1 --output cubic-bbr1.html"


@guarded
def compare(
    run: Runs,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write an HTML report.")
    ] = None,
    level: Level = None,
    json: Json = False,
) -> None:
    """Compare two or more results, flow by flow."""
    from tcplab.cli.output import say, say_json, show, warn
    from tcplab.present import compare as compared

    confidence = level_of(level)
    if len(run) < 2:
        raise CommandError("comparing needs two results or more", Code.INPUT)
    with results(run) as loaded:
        for text in dict.fromkeys(text for one in loaded for text in one.lost_files):
            warn(f"tcplab: warning: {text}")
        comparison = compared(loaded, level=confidence)
        if json:
            say_json(comparison.to_json())
        else:
            show(comparison)
        if output is not None:
            from tcplab.cli.writing import naming
            from tcplab.present import write_comparison

            with naming(output):
                write_comparison(loaded, output, level=confidence)
            if not json:
                say(f"report   {output}")
