"""`tcplab report`: the HTML report of results, or their figures as images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Runs, results

FORMATS = ("svg", "png", "pdf")

EXAMPLE = "tcplab report runs/four-controls-20260101-120000 --figures figures --format svg,pdf"


@guarded
def report(
    run: Runs,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it. [default: RUN/report.html]"),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Write the figures as images instead.")
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", metavar="LIST", help="Image formats: svg, png, pdf, joined by commas.")
    ] = ",".join(FORMATS),
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
) -> None:
    """Write the reports of results, or their figures."""
    from tcplab.cli.output import say
    from tcplab.cli.writing import naming
    from tcplab.results.writer import REPORT_FILE

    kinds = [kind.strip() for kind in formats.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in FORMATS:
            raise CommandError(f"--format {kind}: figures are written as {', '.join(FORMATS)}", Code.INPUT)
    if output is not None and len(run) > 1:
        raise CommandError("--output names one file, but several results are given", Code.INPUT)
    with results(run) as loaded:
        if figures is not None:
            from tcplab.present import write_figures

            for one in loaded:
                folder = figures if len(loaded) == 1 else figures / one.path.name
                with naming(folder):
                    for path in write_figures(one, folder, formats=kinds):
                        say(str(path))
            return
        from tcplab.api import write_report

        for one in loaded:
            page = output or one.path / REPORT_FILE
            with naming(page):
                write_report(one, page)
            say(str(page))
            if show:
                typer.launch(str(page))
