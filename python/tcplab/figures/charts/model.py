"""A chart before it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcplab.figures.palette import Style

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """Values that belong together: one legend entry, one colour."""

    key: str
    x: Array
    """Positions: numbers of the x axis, or of its categories from 0."""
    y: Array
    style: Style
    low: Array | None = None
    high: Array | None = None
    """Intervals of y; NaN where there is none."""
    hover: tuple[str, ...] = ()
    """The label of each value, for the hover text."""
    markers: bool = True
    """Of a curve: its points are drawn."""

    def errors(self) -> Array | None:
        """How far the interval reaches below and above each value, two rows; NaN in both: there is none.

        None where no value has an interval.
        """
        if self.low is None or self.high is None:
            return None
        found = np.array([self.y - self.low, self.high - self.y]).clip(min=0)
        none = np.isnan(found).all(axis=0)
        return None if none.all() else np.where(none, np.nan, np.nan_to_num(found))


@dataclass(frozen=True)
class Outline:
    """A closed line around values, such as an ellipse of their spread."""

    key: str
    x: Array
    y: Array
    style: Style


@dataclass(frozen=True)
class Chart:
    """Traces on one pair of axes."""

    kind: str
    """bars, curve (points joined) or cloud (points alone)."""
    name: str
    """Short and file-name safe."""
    title: str
    x_label: str
    y_label: str
    traces: tuple[Trace, ...]
    outlines: tuple[Outline, ...] = ()
    categories: tuple[str, ...] = ()
    """Labels of the x axis' positions; empty: a numeric axis."""
    x_log: bool = False
    y_log: bool = False
    y_zero: bool = True
    """The y axis starts at zero (where it is not logarithmic)."""
    x_reversed: bool = False
    """Values fall to the right."""
    level: float | None = None
    """A reference line."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Heatmap:
    """A value for each pair of two axes' values."""

    name: str
    title: str
    x_label: str
    y_label: str
    z_label: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: Array
    """A row for each of `rows`, a column for each of `columns`; NaN: none."""
    texts: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
