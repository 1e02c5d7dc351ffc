"""Panels, with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, ScalarFormatter

from tcplab.figures.draw_matplotlib.legend import add_legend
from tcplab.figures.model import Figure, Panel, Strip

_WIDTH = 7.2
_PANEL_HEIGHT = 1.45
_CDF_HEIGHT = 3.0
DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": (0, (5, 2)),
    "dot": (0, (1, 1.4)),
    "dashdot": (0, (5, 1.5, 1, 1.5)),
}
_MARKERS = {"dot": "o", "cross": "x", "tick": "|"}
# More points than this are a picture within the drawing: a page of them would open slowly.
_MAX_POINTS = 3000
_INK, _FAINT, _GRID = "#222222", "#777777", "#dddddd"
# A range of few decades: its largest value over its smallest.
_FEW_DECADES, _ONE_DECADE = 300, 10


def draw(figure: Figure) -> Canvas:
    """The figure as a matplotlib figure: stacked on one x axis, or side by side."""
    if not figure.panels:
        return Canvas()
    return _draw_beside(figure) if figure.columns > 1 else _draw_stacked(figure)


def _draw_stacked(figure: Figure) -> Canvas:
    heights = [panel.height for panel in figure.panels]
    canvas = Canvas(figsize=(_WIDTH, sum(heights) * _PANEL_HEIGHT + 0.9), layout="constrained")
    axes = canvas.subplots(
        len(figure.panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    for axis, panel in zip(axes, figure.panels, strict=True):
        _draw_panel(axis, panel)
        if not panel.strips:
            axis.set_ylabel(f"{panel.title}\n({panel.unit})" if panel.unit else panel.title)
        for moment in figure.moments:
            axis.axvline(moment.x, color=_FAINT, linewidth=0.6, linestyle=(0, (1, 2)), zorder=1)
    axes[-1].set_xlabel(figure.x_label)
    if figure.x_range:
        axes[-1].set_xlim(*figure.x_range)
        _label_strips(list(axes), figure)
    canvas.align_ylabels(axes)
    _legend(canvas, figure)
    return canvas


def _draw_beside(figure: Figure) -> Canvas:
    rows = -(-len(figure.panels) // figure.columns)
    canvas = Canvas(figsize=(_WIDTH, rows * _CDF_HEIGHT + 0.4), layout="constrained")
    axes = canvas.subplots(rows, figure.columns, squeeze=False).ravel()
    for axis, panel in zip(axes, figure.panels, strict=False):
        _draw_panel(axis, panel)
        axis.set_xlabel(panel.x_title or panel.label)
        axis.set_ylabel(panel.label if panel.x_title else "Share of samples")
        if "x" in panel.log:
            axis.set_xscale("log", base=2 if panel.ticks else 10)
            label_log(axis.xaxis)
        if "y" in panel.log:
            axis.set_yscale("log")
            label_log(axis.yaxis)
        if panel.ticks:
            values, names = zip(*panel.ticks, strict=True)
            axis.set_xticks(values, names)
            axis.minorticks_off()
    for axis in axes[len(figure.panels) :]:
        axis.set_visible(False)
    _legend(canvas, figure)
    return canvas


def _draw_panel(axis: Axes, panel: Panel) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(_FAINT)
    axis.tick_params(colors=_INK, labelsize=8)
    axis.yaxis.label.set_fontsize(9)
    axis.xaxis.label.set_fontsize(9)
    if panel.strips:
        _draw_strips(axis, panel.strips)
        return
    axis.grid(visible=True, color=_GRID, linewidth=0.5)
    axis.xaxis.set_major_formatter(Grouped())
    axis.yaxis.set_major_formatter(Grouped())
    axis.set_axisbelow(True)
    for band in panel.bands:
        axis.fill_between(band.x, band.low, band.high, color=band.style.color, alpha=0.2, linewidth=0)
    for line in panel.lines:
        axis.plot(
            line.x,
            line.y,
            color=line.style.color,
            linestyle=DASHES[line.style.dash],
            linewidth=0.8 if line.faint else 1.1,
            alpha=0.6 if line.faint else 1.0,
            drawstyle="steps-pre" if line.steps else "default",
            marker="o" if panel.x_title else None,
            markersize=3,
        )
    for points in panel.points:
        axis.plot(
            points.x,
            points.y,
            linestyle="none",
            marker=_MARKERS[points.symbol],
            markersize=points.size * 0.6 if points.symbol == "dot" else points.size,
            markeredgewidth=0 if points.symbol == "dot" else 0.9,
            color=points.color,
            rasterized=len(points.x) > _MAX_POINTS,
        )
    if "y" not in panel.log:
        axis.yaxis.set_major_locator(MaxNLocator(nbins=5))
    if panel.lines and all(np.array_equal(line.x, np.round(line.x)) for line in panel.lines):
        # They are counted, such as round trips.
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    bottom, top = panel.y_range
    if bottom is not None:
        # A constant line has no margin of its own: it would lie on the frame.
        axis.set_ylim(bottom, max(axis.get_ylim()[1], bottom + 1.05 * (axis.dataLim.y1 - bottom)))
    if top is not None:
        axis.set_ylim(top=top)
    for level in panel.levels:
        axis.axhline(level.y, color=_FAINT, linewidth=0.8, linestyle=DASHES[level.style.dash], zorder=1)
        axis.annotate(
            level.label,
            (1, level.y),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=7,
            color=_FAINT,
        )


def _draw_strips(axis: Axes, strips: Sequence[Strip]) -> None:
    for row, strip in enumerate(reversed(strips)):
        axis.broken_barh(
            [(s.start, s.end - s.start) for s in strip.segments],
            (row - 0.4, 0.8),
            facecolors=[(*_rgb(strip.style.color), s.shade) for s in strip.segments],
            linewidth=0,
        )
        for marks in strip.marks:
            tick = marks.symbol == "tick"
            axis.plot(
                marks.x,
                np.full(len(marks.x), row),
                linestyle="none",
                marker="|" if tick else "x",
                markersize=5 if tick else 4,
                markeredgewidth=0.7 if tick else 1.2,
                color=strip.style.color,
            )
    axis.set_ylim(-0.6, len(strips) - 0.4)
    axis.set_yticks(range(len(strips)), [strip.key for strip in reversed(strips)], fontsize=8)
    axis.tick_params(axis="y", length=0)
    axis.spines[["left", "bottom"]].set_visible(False)


def _label_strips(axes: Sequence[Axes], figure: Figure) -> None:
    start, end = figure.x_range or (0.0, 1.0)
    for axis, panel in zip(axes, figure.panels, strict=True):
        for row, strip in enumerate(reversed(panel.strips)):
            for segment in strip.segments:
                if (segment.end - segment.start) / (end - start) > 0.014 * len(segment.label):
                    middle = (segment.start + segment.end) / 2
                    axis.text(
                        middle,
                        row,
                        segment.label.replace("_", " "),
                        ha="center",
                        va="center",
                        fontsize=6.5,
                        color=_INK,
                    )


def _legend(canvas: Canvas, figure: Figure) -> None:
    handles: dict[str, Line2D] = {}
    for panel in figure.panels:
        for line in panel.lines:
            if not line.faint and not line.unnamed and line.key not in handles:
                handles[line.key] = Line2D(
                    [], [], color=line.style.color, linestyle=DASHES[line.style.dash], linewidth=1.6
                )
        for points in panel.points:
            if points.key not in handles:
                handles[points.key] = Line2D(
                    [],
                    [],
                    color=points.color,
                    linestyle="none",
                    marker=_MARKERS[points.symbol],
                    markersize=5,
                    markeredgewidth=0 if points.symbol == "dot" else 0.9,
                )
    if len(handles) > 1 or figure.columns > 1:
        add_legend(canvas, list(handles.values()), list(handles), 9, 5)


def _rgb(color: str) -> tuple[float, float, float]:
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


class Grouped(ScalarFormatter):
    """Numbers in full, with a comma between thousands."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """A tick's label."""
        whole, point, rest = super().__call__(x, pos).partition(".")
        return (f"{int(whole):,}" if whole.isdigit() else whole) + point + rest


def label_log(axis: Axis) -> None:
    """Plain numbers: at each decade, at 1, 2 and 5 of few decades, at more of less than one."""
    low, high = axis.get_view_interval()
    subs = (
        (1,)
        if high / low > _FEW_DECADES
        else (1, 2, 5)
        if high / low > _ONE_DECADE
        else (1, 1.5, 2, 3, 4, 5, 7)
    )
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
