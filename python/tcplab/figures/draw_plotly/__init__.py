"""Drawing a figure with plotly: zoom, hover, one legend entry per flow."""

from __future__ import annotations

import plotly.graph_objects as go

from tcplab.figures.draw_plotly import charts, panels
from tcplab.figures.model import Drawable, Figure


def draw(figure: Drawable) -> go.Figure:
    """The figure as one of plotly."""
    return panels.draw(figure) if isinstance(figure, Figure) else charts.draw(figure)
