"""Charts and heatmaps, with matplotlib."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure as Canvas

from tcplab.figures.draw_matplotlib.legend import add_legend
from tcplab.figures.draw_matplotlib.panels import DASHES, Grouped, label_log
from tcplab.figures.model import Chart, Heatmap, Trace

_SIZE = (7.2, 3.6)
_MAX_COLUMNS = 4
# Characters of names that fit below the axes side by side.
_LINE = 95
# Inches that a character of an axis label takes.
_CHARACTER = 0.075
_FAINT, _GRID = "#777777", "#dddddd"
_SCALE = LinearSegmentedColormap.from_list("blues", ["#eef4f9", "#7db3d8", "#0072B2"])


def draw(chart: Chart | Heatmap) -> Canvas:
    """The chart as a matplotlib figure."""
    if isinstance(chart, Heatmap):
        return _heatmap(chart)
    canvas = Canvas(figsize=_SIZE, layout="constrained")
    axis = canvas.subplots()
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(_FAINT)
    axis.grid(visible=True, axis="y" if chart.categories else "both", color=_GRID, linewidth=0.5)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_formatter(Grouped())
    axis.yaxis.set_major_formatter(Grouped())
    for outline in chart.outlines:
        axis.fill(outline.x, outline.y, color=outline.style.color, alpha=0.12, linewidth=0)
        axis.plot(outline.x, outline.y, color=outline.style.color, linewidth=0.6)
    for number, trace in enumerate(chart.traces):
        _trace(axis, chart, trace, number)
    if chart.categories:
        long = max(map(len, chart.categories)) * len(chart.categories) > _LINE
        axis.set_xticks(
            range(len(chart.categories)),
            chart.categories,
            rotation=30 if long else 0,
            ha="right" if long else "center",
        )
    if chart.x_log:
        axis.set_xscale("log")
        label_log(axis.xaxis)
    if chart.y_log:
        axis.set_yscale("log")
        if chart.log_span is not None:
            axis.set_ylim(chart.log_span)
        label_log(axis.yaxis)
    elif chart.y_zero:
        # Down to 0 the margin of a narrow range of values is nothing: points at the top would be cut.
        low, high = axis.get_ylim()
        axis.set_ylim(min(0.0, low), high + (0.04 * high if low > 0 else 0.0))
    if chart.x_reversed:
        axis.invert_xaxis()
    if chart.level is not None:
        axis.axhline(chart.level, color=_FAINT, linewidth=0.8, linestyle=DASHES["dot"])
    axis.set_xlabel(chart.x_label, fontsize=9)
    axis.set_ylabel(chart.y_label, fontsize=9)
    if len(chart.traces) > 1:
        handles, keys = axis.get_legend_handles_labels()
        add_legend(canvas, handles, keys, 8, _MAX_COLUMNS)
    return canvas


def _trace(axis: Axes, chart: Chart, trace: Trace, number: int) -> None:
    errors: Any = trace.errors()
    color = trace.style.color
    if chart.kind == "bars":
        width = 0.8 / len(chart.traces)
        at = trace.x + (number - (len(chart.traces) - 1) / 2) * width
        axis.bar(at, trace.y, width * 0.94, color=color, label=trace.key)
        if errors is not None:
            axis.errorbar(at, trace.y, errors, fmt="none", ecolor="#222222", elinewidth=0.8, capsize=2)
        return
    line = DASHES[trace.style.dash] if chart.kind == "curve" else "none"
    # Where a color comes a second time, its dash tells lines apart, and the marker points.
    marker = "o" if trace.style.dash == "solid" or chart.kind == "curve" else "s"
    axis.errorbar(
        trace.x,
        trace.y,
        errors,
        color=color,
        linestyle=line,
        linewidth=1.1,
        marker=marker if trace.markers or chart.kind != "curve" else None,
        markersize=3.5,
        elinewidth=0.8,
        capsize=2,
        label=trace.key,
    )


def _heatmap(chart: Heatmap) -> Canvas:
    # Tall enough for the label of the color bar.
    height = max(1.1 + 0.32 * len(chart.rows), 0.9 + _CHARACTER * len(chart.z_label))
    canvas = Canvas(figsize=(_SIZE[0], height), layout="constrained")
    axis = canvas.subplots()
    norm = LogNorm() if chart.is_log else Normalize()
    image = axis.imshow(np.ma.masked_invalid(chart.values), cmap=_SCALE, norm=norm, aspect="auto")
    for row, texts in enumerate(chart.texts):
        for column, text in enumerate(texts):
            dark = text and norm(chart.values[row, column]) > 0.65
            axis.text(
                column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "#222222"
            )
    long = max(map(len, chart.columns)) * len(chart.columns) > 0.7 * _LINE
    axis.set_xticks(
        range(len(chart.columns)),
        chart.columns,
        fontsize=8,
        rotation=30 if long else 0,
        ha="right" if long else "center",
    )
    axis.set_yticks(range(len(chart.rows)), chart.rows, fontsize=8)
    axis.set_xlabel(chart.x_label, fontsize=9)
    axis.set_ylabel(textwrap.fill(chart.y_label, max(12, int(height / _CHARACTER) - 8)), fontsize=9)
    bar = canvas.colorbar(image, ax=axis)
    bar.set_label(chart.z_label, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    if chart.is_log:
        label_log(bar.ax.yaxis)
    return canvas
