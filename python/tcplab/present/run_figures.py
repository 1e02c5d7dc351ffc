"""A run's figures as image files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcplab.figures.images import FORMATS, write_images
from tcplab.figures.runs.disciplines import disciplines
from tcplab.figures.runs.distributions import cdf
from tcplab.figures.runs.failures import failures
from tcplab.figures.runs.gauges import gauges
from tcplab.figures.runs.legs import legs
from tcplab.figures.runs.timeseries import timeseries
from tcplab.present.echo import echo_part
from tcplab.results.run import Run


def write_figures(
    run: Run, directory: Path | str, *, formats: Sequence[str] = FORMATS, omit: int | str | None = None
) -> list[Path]:
    """Write a run's figures into a directory, made if it is missing; returns the files.

    Raises ResultsError when they cannot be written.
    """
    echo = echo_part(run)
    echoes = [figure for _, figure in echo.figures] if echo is not None else []
    figures = [
        timeseries(run),
        failures(run),
        gauges(run),
        disciplines(run),
        legs(run),
        cdf(run, omit=omit),
        *echoes,
    ]
    return write_images(figures, Path(directory), formats)
