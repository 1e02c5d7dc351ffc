"""How every interactive figure looks, whatever it shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

GRID = "rgba(128,128,128,0.22)"
AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "zeroline": False,
    "showline": True,
    "linecolor": GRID,
    "ticks": "outside",
    "tickcolor": GRID,
    "exponentformat": "none",
    "separatethousands": True,
}
# Whole numbers at every tick: plotly itself labels 0.3 as 3 between two powers of ten.
LOG: dict[str, Any] = {"type": "log", "tickformat": ",.4~r"}
# The tool bar's row and the legend's rows, and the width of these; pixels.
_BAR, _LEGEND_ROW, _LEGEND_WIDTH = 30, 21, 900
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def room_above(names: Iterable[str]) -> int:
    """Pixels above the axes for the tool bar's row, and below it the legend of these names."""
    rows, used = 0, _LEGEND_WIDTH
    for name in names:
        # A line sample and about 7 pixels a character.
        width = 45 + 7 * len(name)
        rows, used = (rows + 1, width) if used + width > _LEGEND_WIDTH else (rows, used + width)
    return _BAR + _LEGEND_ROW * rows + 8


def layout(height: float, margin: dict[str, int]) -> dict[str, Any]:
    """A plotly layout on the page's own background, in its font; the legend stands below the tool bar."""
    legend = {"y": 1 - _BAR / height, "yref": "container", "yanchor": "top"}
    return {
        "height": height,
        "margin": margin,
        "font": {"family": _FONT, "size": 13},
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "font": {"size": 12}} | legend,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#999999", "activecolor": "#0072B2"},
    }


def rgba(color: str, alpha: float) -> str:
    """A colour of the palette, `#rrggbb`, let through."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:.2f})"
