"""Charts and heatmaps, with plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tcplab.figures.model import Array, Chart, Heatmap, Trace
from tcplab.figures.plotly_theme import AXIS, LOG, layout, rgba, room_above

# Pixels: axes with their labels below, these labels alone, a row of a heat map. One of fewer rows is as
# high as one of `_MIN_ROWS`, so that the title of its scale has room.
_HEIGHT, _BOTTOM, _ROW, _MIN_ROWS = 360, 60, 34, 5
_LEFT = 82
# Pixels: the axes of a page of 1,280, and the width of a character of a name that is slanted.
_WIDTH, _CHARACTER = 1020, 6.2
# Characters that fit below the axis on one line.
_LONG_NAMES = 90
# Light to dark for little to much, readable in grey; the second end is the palette's blue.
_SCALE = ((0.0, "#eef4f9"), (0.5, "#7db3d8"), (1.0, "#0072B2"))


def draw(chart: Chart | Heatmap) -> go.Figure:
    """The chart as a plotly figure."""
    return _heatmap(chart) if isinstance(chart, Heatmap) else _chart(chart)


def _chart(chart: Chart) -> go.Figure:
    made = go.Figure()
    for outline in chart.outlines:
        made.add_scatter(
            x=outline.x,
            y=outline.y,
            mode="lines",
            fill="toself",
            fillcolor=rgba(outline.style.color, 0.12),
            line={"color": outline.style.color, "width": 1},
            legendgroup=outline.key,
            showlegend=False,
            hoverinfo="skip",
        )
    for trace in chart.traces:
        common: dict[str, Any] = {
            "x": trace.x,
            "y": trace.y,
            "name": trace.key,
            "legendgroup": trace.key,
            "error_y": _errors(trace),
            "text": list(trace.hover) or None,
            "textposition": "none" if chart.kind == "bars" else None,
            "hovertemplate": "%{text}<extra></extra>" if trace.hover else None,
        }
        if chart.kind == "bars":
            made.add_bar(**common, marker_color=trace.style.color)
            continue
        made.add_scatter(
            **common,
            mode=_mode(chart, trace),
            line={"color": trace.style.color, "dash": trace.style.dash, "width": 1.5},
            marker={
                "color": trace.style.color,
                "size": 7,
                # Where a color comes a second time, its dash tells lines apart, and the symbol points.
                "symbol": "circle" if trace.style.dash == "solid" or chart.kind == "curve" else "square",
            },
        )
    x_axis: dict[str, Any] = AXIS | {"title": {"text": chart.x_label}}
    names, slanted = _below_bars(chart.categories)
    if chart.categories:
        x_axis |= {
            "tickvals": list(range(len(chart.categories))),
            "ticktext": names,
            "automargin": True,
            # Long names end at their bars.
            "tickangle": -30 if slanted else 0,
            "ticklabeloverflow": "allow",
        }
    if chart.x_log:
        x_axis |= LOG | _labelled(np.concatenate([trace.x for trace in chart.traces]))
    x_axis |= {"autorange": "reversed"} if chart.x_reversed else {}
    y_axis: dict[str, Any] = AXIS | {"title": {"text": chart.y_label}}
    y_axis |= LOG if chart.y_log else {"rangemode": "tozero" if chart.y_zero else "normal"}
    if chart.y_log and chart.log_span is not None:
        span = np.log10(chart.log_span)
        y_axis |= {"range": span.tolist()} | _labelled(np.array(chart.log_span))
    made.update_layout(
        **_layout(_HEIGHT, [trace.key for trace in chart.traces]), barmode="group", xaxis=x_axis, yaxis=y_axis
    )
    if slanted:
        # The first name begins left of its bar.
        room = _CHARACTER * len(names[0]) - _WIDTH / (2 * len(names))
        made.update_layout(margin={"l": max(_LEFT, int(room))})
    if chart.level is not None:
        made.add_hline(y=chart.level, line={"color": "#888888", "width": 1, "dash": "dot"})
    return made


def _below_bars(names: Sequence[str]) -> tuple[list[str], bool]:
    """The names of bars as they stand below them, and whether they are slanted.

    Names of several values have a line for each, where those fit.
    """
    if sum(map(len, names)) <= _LONG_NAMES:
        return list(names), False
    parts = [name.replace(", ", ",<br>") for name in names]
    longest = max(len(line) for name in parts for line in name.split("<br>"))
    return (parts, False) if longest * len(names) <= _LONG_NAMES * 1.4 else (list(names), True)


def _labelled(values: Array) -> dict[str, str]:
    """Fewer numbers at a logarithmic axis of one to three decades: plotly's 1 to 9 overlap."""
    values = values[np.isfinite(values) & (values > 0)]
    decades = float(np.log10(values.max() / values.min())) if len(values) else 0.0
    return {"dtick": "D2"} if 1 <= decades < 3 else {}


def _mode(chart: Chart, trace: Trace) -> str:
    if chart.kind != "curve":
        return "markers"
    return "lines+markers" if trace.markers else "lines"


def _errors(trace: Trace) -> dict[str, Any] | None:
    errors = trace.errors()
    if errors is None:
        return None
    # plotly draws null as a bar of no length, and nothing for what is not a number.
    below, above = ([value if np.isfinite(value) else "none" for value in row.tolist()] for row in errors)
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "thickness": 1,
        "width": 4,
    }


def _heatmap(chart: Heatmap) -> go.Figure:
    bar: dict[str, Any] = {"title": {"text": chart.z_label, "side": "right"}, "thickness": 14}
    values = chart.values
    if chart.is_log:
        # Plotly's scale of colors is linear.
        values = np.log10(values)
        decades = range(int(np.floor(np.nanmin(values))), int(np.ceil(np.nanmax(values))) + 1)
        ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
        bar |= {"tickvals": np.log10(ticks).tolist(), "ticktext": [f"{tick:,.10g}" for tick in ticks]}
    made = go.Figure(
        go.Heatmap(
            z=values,
            x=list(range(len(chart.columns))),
            y=list(range(len(chart.rows))),
            text=[list(row) for row in chart.texts],
            texttemplate="%{text}",
            colorscale=[list(stop) for stop in _SCALE],
            colorbar=bar,
            hovertemplate="%{text}<extra></extra>",
            xgap=2,
            ygap=2,
        )
    )
    bare = {"showgrid": False, "zeroline": False}
    made.update_layout(
        **_layout(_BOTTOM + _ROW * max(len(chart.rows), _MIN_ROWS)),
        xaxis=bare
        | {
            "title": {"text": chart.x_label},
            "tickvals": list(range(len(chart.columns))),
            "ticktext": list(chart.columns),
            "automargin": True,
        },
        yaxis=bare
        | {
            # Beyond the longest name of a row.
            "title": {"text": chart.y_label, "standoff": 12},
            "tickvals": list(range(len(chart.rows))),
            "ticktext": list(chart.rows),
            "autorange": "reversed",
            "automargin": True,
        },
    )
    return made


def _layout(height: int, names: Sequence[str] = ()) -> dict[str, Any]:
    """The layout of axes that take `height` with what is below, and of a legend, where several need one."""
    top = room_above(names if len(names) > 1 else ())
    return layout(height + top, {"l": _LEFT, "r": 24, "t": top, "b": _BOTTOM}) | {"hovermode": "closest"}
