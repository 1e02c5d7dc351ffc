"""Figures of captures as one HTML page, or as images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tcplab.figures.model import Figure

IMAGES = (".svg", ".png", ".pdf")


def write_page(
    target: Path, title: str, lead: str, figures: Sequence[Figure], remarks: Sequence[str]
) -> None:
    """Write an HTML page that needs nothing else. Raises ResultsError."""
    from tcplab.present.captures_page import captures_html
    from tcplab.results.files import write_text

    write_text(target, captures_html(title, lead, figures, remarks))


def write_image(target: Path, figure: Figure) -> None:
    """Draw one figure into one file. Raises ResultsError."""
    from tcplab.figures.images import write_image as draw

    draw(figure, target)
