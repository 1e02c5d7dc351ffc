"""A figure before it is drawn, by plotly or matplotlib.

A `Figure` has panels on one x axis, or side by side. A `Chart` has traces on one pair of axes. A `Heatmap`
has a value for each pair of two axes' values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tcplab.figures.palette import Style

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """One line of a panel."""

    key: str
    """The group it belongs to, usually a flow: one legend entry, one colour in every panel."""
    x: Array
    y: Array
    style: Style
    label: str = ""
    """How the legend and the hover name it; the key when empty."""
    steps: bool = False
    """The value holds over the interval that ends at x."""
    width: float = 1.5
    faint: bool = False
    """In the background, without a legend entry."""
    unnamed: bool = False
    """Without a legend entry, because its panel says what it is."""


@dataclass(frozen=True)
class Points:
    """Single events of a panel, each on its own."""

    key: str
    """Their legend entry."""
    x: Array
    y: Array
    color: str
    symbol: str = "dot"
    """dot, cross or tick (upright)"""
    size: float = 4.0
    """Pixels."""


@dataclass(frozen=True)
class Band:
    """A shaded range, such as the 10th to 90th percentile."""

    key: str
    x: Array
    low: Array
    high: Array
    style: Style
    label: str


@dataclass(frozen=True)
class Level:
    """A horizontal reference line."""

    y: float
    label: str
    """May have two lines; it stands to the right of the panel."""
    style: Style = field(default_factory=lambda: Style("#888888", "dot"))


@dataclass(frozen=True)
class Marks:
    """Moments on a strip."""

    label: str
    x: Array
    symbol: str
    """tick or cross"""


@dataclass(frozen=True)
class Segment:
    """A stretch of a strip."""

    start: float
    end: float
    label: str
    shade: float
    """0 is the page, 1 the strip's own colour."""


@dataclass(frozen=True)
class Strip:
    """A row that says what state something was in, and marks its events."""

    key: str
    style: Style
    segments: tuple[Segment, ...] = ()
    marks: tuple[Marks, ...] = ()


@dataclass(frozen=True)
class Moment:
    """Something that happened to all panels at once: a thin vertical line."""

    x: float
    label: str


@dataclass(frozen=True)
class Panel:
    """One set of axes. A panel of strips has a row per strip and no y scale."""

    title: str
    """The y axis's label without the unit."""
    unit: str
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    levels: tuple[Level, ...] = ()
    strips: tuple[Strip, ...] = ()
    points: tuple[Points, ...] = ()
    height: float = 1.0
    """Relative to the other panels."""
    zero: bool = True
    """The y axis starts at zero."""
    top: float | None = None
    """The y axis ends here; None: where the data do."""
    x_title: str = ""
    """Its own x axis, where panels stand side by side; empty there: a distribution of what the title says."""
    log: str = ""
    """The axes that are logarithmic: x, y or xy, where panels stand side by side."""
    ticks: tuple[tuple[float, str], ...] = ()
    """Where its own x axis is labelled; empty: wherever suits."""

    @property
    def y_range(self) -> tuple[float | None, float | None]:
        """Where the y axis starts and ends; None: where the data do. Reference lines are always inside."""
        highest = max((level.y for level in self.levels), default=None)
        heights = [*(line.y for line in self.lines), *(points.y for points in self.points)]
        drawn = max((float(np.nanmax(y)) for y in heights if np.isfinite(y).any()), default=0.0)
        top = self.top
        if top is None and highest is not None and highest >= drawn:
            top = highest * 1.04
        return (0.0 if self.zero else None), top

    @property
    def label(self) -> str:
        """The y axis's label."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Figure:
    """Panels that share an x axis."""

    name: str
    """Short and file-name safe."""
    title: str
    x_label: str
    panels: tuple[Panel, ...]
    x_range: tuple[float, float] | None = None
    moments: tuple[Moment, ...] = ()
    notes: tuple[str, ...] = ()
    """A note for the reader: decimation, aggregation, which repetition."""
    columns: int = 1
    """Panels side by side (small multiples); with 1 they are stacked on one x axis."""


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

    @property
    def log_span(self) -> tuple[float, float] | None:
        """Ends of a logarithmic y axis: an error bar that ends near zero would stretch it over decades."""
        values = np.concatenate([trace.y for trace in self.traces]) if self.traces else np.array([])
        values = values[np.isfinite(values) & (values > 0)]
        return (float(values.min()) / _BEYOND, float(values.max()) * _BEYOND) if len(values) else None


_BEYOND = 1.6
"""Factor by which a logarithmic axis goes on below and above its values."""
LOG_COLORS = 50
"""Ratio of the largest value of a heat map to its smallest from which its colors go by the logarithm."""


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

    @property
    def is_log(self) -> bool:
        """Whether colors go by the logarithm: a few large values would make all others look alike."""
        known = self.values[np.isfinite(self.values)]
        return len(known) > 0 and bool(known.min() > 0) and bool(known.max() / known.min() > LOG_COLORS)


Drawable = Figure | Chart | Heatmap
"""Input of both renderers."""
