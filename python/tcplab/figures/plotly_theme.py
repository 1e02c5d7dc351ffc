"""How every interactive figure looks, whatever it shows."""

from __future__ import annotations

from typing import Any

GRID = "rgba(128,128,128,0.22)"
AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "zeroline": False,
    "showline": True,
    "linecolor": GRID,
    "ticks": "outside",
    "tickcolor": GRID,
}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def layout(height: float, margin: dict[str, int], legend: dict[str, Any]) -> dict[str, Any]:
    """A plotly layout on the page's own background, in its font; the legend stands above, from the left."""
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
