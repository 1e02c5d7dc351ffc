"""The legend above the axes of a figure."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure as Canvas

# Characters that the figure's width holds at the legend's size.
_LONGEST_KEY = 100
# Height of a row in units of the font's size, and points in an inch.
_ROW, _POINTS = 1.5, 72


def add_legend(
    canvas: Canvas, handles: Sequence[Artist], keys: Sequence[str], font_size: int, most_columns: int
) -> None:
    """A legend in as many columns as fit; the figure grows by its rows, the axes stay."""
    keys = [textwrap.shorten(key, _LONGEST_KEY, placeholder=" …") for key in keys]
    for columns in range(min(most_columns, len(keys)), 0, -1):
        legend = canvas.legend(
            handles, keys, fontsize=font_size, frameon=False, ncols=columns, loc="outside upper left"
        )
        if columns == 1 or legend.get_window_extent().width <= canvas.bbox.width:
            more = math.ceil(len(keys) / columns) - 1
            canvas.set_figheight(canvas.get_figheight() + more * _ROW * font_size / _POINTS)
            return
        legend.remove()
