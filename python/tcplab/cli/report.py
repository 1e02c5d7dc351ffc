"""`tcplab report`: the HTML report of results and studies, or their figures as images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import ImageFormats, Json, Level, level_of, results

if TYPE_CHECKING:
    from tcplab.results import Run

_FORMATS = ("svg", "png", "pdf")

EXAMPLE = "tcplab report runs/four-controls-20260101-120000 --figures figures -f svg"


@guarded
def report(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Directories of results or studies.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The report. [default: RUN/report.html]"),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Write the figures as images instead.")
    ] = None,
    formats: ImageFormats = None,
    level: Level = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    json: Json = False,
) -> None:
    """Write the reports of results and studies, or their figures."""
    from tcplab.cli.output import say_files
    from tcplab.results.listing import is_study

    kinds, confidence = image_formats(formats, figures), level_of(level)
    if output is not None and len(run) > 1:
        raise CommandError("--output names one file, but several results are given", Code.INPUT)
    if output is not None and figures is not None:
        raise CommandError("--figures writes images instead of the report that --output names", Code.INPUT)
    written: list[Path] = []
    for path, name in zip(run, _folders(run), strict=True):
        folder = figures if figures is None or len(run) == 1 else figures / name
        if is_study(path):
            written += write_study(path, folder, kinds, confidence, output)
        else:
            with results([path]) as (loaded,):
                written += _write_run(loaded, folder, kinds, confidence, output)
    say_files(written, json=json)
    if show and figures is None:
        for page in written:
            typer.launch(str(page))


def _folders(paths: list[Path]) -> list[str]:
    """A folder for the figures of each directory: its name, with a number where others have it too."""
    from tcplab.results.run import directory_name

    names = [directory_name(path) for path in paths]
    return [
        name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def image_formats(text: str | None, figures: Path | None) -> list[str]:
    """The formats of figures: those that `--format` names, else all."""
    if text is None:
        return [*_FORMATS]
    if figures is None:
        raise CommandError("--format names formats of figures", Code.INPUT, "add --figures DIR")
    kinds = [kind.strip() for kind in text.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in _FORMATS:
            raise CommandError(f"--format {kind}: figures are written as {', '.join(_FORMATS)}", Code.INPUT)
    if not kinds:
        raise CommandError(f"--format: a format is missing: {', '.join(_FORMATS)}", Code.INPUT)
    return kinds


def write_study(
    directory: Path, figures: Path | None, kinds: list[str], level: float, output: Path | None = None
) -> list[Path]:
    """Write a study's report, or its figures and table into `figures`; returns the files."""
    from tcplab.cli.writing import naming
    from tcplab.results import ResultsError
    from tcplab.study import open_results
    from tcplab.study import report as pages

    try:
        found = open_results(directory, level=level)
    except ResultsError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    if figures is not None:
        with naming(figures):
            return pages.write_study_figures(found, figures, kinds)
    with naming(output or directory):
        return [pages.write_study_report(found, output)]


def _write_run(
    run: Run, figures: Path | None, kinds: list[str], level: float, output: Path | None
) -> list[Path]:
    from tcplab.cli.writing import naming
    from tcplab.results.writer import REPORT_FILE

    if figures is not None:
        from tcplab.present import write_figures

        with naming(figures):
            written = write_figures(run, figures, formats=kinds)
        if not written:
            raise CommandError(f"{run.path}: there is nothing to draw", Code.INPUT)
        return written
    from tcplab.api import write_report

    page = output or run.path / REPORT_FILE
    with naming(page):
        return [write_report(run, page, level=level)]
