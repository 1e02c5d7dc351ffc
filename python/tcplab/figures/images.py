"""Figures as files: SVG, PNG and PDF."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from tcplab.figures.model import Drawable, Figure
from tcplab.results.errors import ResultsError
from tcplab.results.files import write_whole

FORMATS = ("svg", "png", "pdf")


def write_image(figure: Drawable, target: Path) -> None:
    """Draw one figure into one file, in the format its name ends with. Raises ResultsError."""
    from tcplab.figures.draw_matplotlib import draw

    with _settings():
        write_whole(target, partial(_save, draw(figure), target.suffix.removeprefix(".")))


def write_images(
    figures: Sequence[Drawable], directory: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Draw figures and write each in every format; empty ones are left out."""
    from tcplab.figures.draw_matplotlib import draw

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError.from_os(directory, error) from error
    written: list[Path] = []
    with _settings():
        for figure in figures:
            if isinstance(figure, Figure) and not figure.panels:
                continue
            canvas = draw(figure)
            for kind in formats:
                path = directory / f"{figure.name}.{kind}"
                write_whole(path, partial(_save, canvas, kind))
                written.append(path)
    return written


def _settings() -> AbstractContextManager[Any]:
    """Of matplotlib: text stays text in SVG and PDF, so that it can be searched and its font replaced."""
    import matplotlib as mpl

    return mpl.rc_context(
        {
            "svg.fonttype": "none",
            "pdf.fonttype": 42,
            "svg.hashsalt": "tcplab",
            # Axes have their own numbers, not differences to one that stands beside them.
            "axes.formatter.useoffset": False,
        }
    )


def _save(canvas: Any, kind: str, path: Path) -> None:
    """Write a matplotlib figure; the same results give the same file."""
    # Without a date, the same results give the same file.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    canvas.savefig(path, format=kind, dpi=200, facecolor="white", metadata=metadata)
