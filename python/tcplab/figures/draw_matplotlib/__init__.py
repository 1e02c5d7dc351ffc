"""Drawing a figure with matplotlib, for SVG, PNG and PDF."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from tcplab.figures.draw_matplotlib import charts, panels
from tcplab.figures.model import Drawable, Figure


def draw(figure: Drawable) -> Canvas:
    """The figure as one of matplotlib."""
    return panels.draw(figure) if isinstance(figure, Figure) else charts.draw(figure)
