"""Panels, with plotly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from tcplab.figures.model import Band, Figure, Line, Panel, Points, Segment, Strip
from tcplab.figures.palette import Style
from tcplab.figures.plotly_theme import AXIS, GRID, LOG, layout, rgba, room_above

_PANEL_PIXELS = 190
_GAP_PIXELS = 22
_BESIDE_PIXELS = 300
_BOTTOM = 52
# Between the axis and its title: the usual labels of ticks.
_TICKS = 40
# Characters of a name beside a strip; the hover has all of it.
_MAX_NAME = 24


def draw(figure: Figure) -> go.Figure:
    """The figure as a plotly figure: stacked on one x axis, or side by side."""
    if not figure.panels:
        return go.Figure()
    return _draw_beside(figure) if figure.columns > 1 else _draw_stacked(figure)


def _draw_beside(figure: Figure) -> go.Figure:
    made = go.Figure()
    named: set[str] = set()
    columns = figure.columns
    rows = -(-len(figure.panels) // columns)
    axes: dict[str, Any] = {}
    gap = 0.07
    width, height = (1 - gap * (columns - 1)) / columns, (1 - 0.16 * (rows - 1)) / rows
    for number, panel in enumerate(figure.panels):
        row, column = divmod(number, columns)
        suffix = "" if number == 0 else str(number + 1)
        left, top = column * (width + gap), 1 - row * (height + 0.16)
        axes[f"yaxis{suffix}"] = _y_axis(panel, [max(0.0, top - height), top]) | {
            "anchor": f"x{suffix}",
            "title": {"text": panel.label if panel.x_title else "Share of samples", "standoff": 8},
        }
        axes[f"xaxis{suffix}"] = AXIS | {
            "anchor": f"y{suffix}",
            "domain": [left, left + width],
            "title": {"text": panel.x_title or panel.label},
            "hoverformat": ".4~g",
        }
        for letter in panel.log:
            axes[f"{letter}axis{suffix}"] |= LOG
        if "y" in panel.log:
            minor = {"showgrid": True, "gridcolor": GRID}
            axes[f"yaxis{suffix}"] |= {"rangemode": "normal", "minor": minor}
        if panel.ticks:
            values, names = zip(*panel.ticks, strict=True)
            axes[f"xaxis{suffix}"] |= {"tickvals": values, "ticktext": names, "tickangle": 0}
        for line in panel.lines:
            _draw_line(made, panel, line, f"y{suffix}", named, x_axis=f"x{suffix}")
        for band in panel.bands:
            _draw_band(made, band, f"x{suffix}", f"y{suffix}")
    made.update_layout(**_layout(figure, rows * _BESIDE_PIXELS), hovermode="closest", **axes)
    made.update_layout(margin={"r": 24})
    if not any(panel.x_title for panel in figure.panels):
        made.update_traces(hovertemplate="%{x:.4~g} ms: %{y:.1%}")
    return made


def _draw_band(made: go.Figure, band: Band, x_axis: str, y_axis: str) -> None:
    made.add_scatter(
        x=np.concatenate([band.x, band.x[::-1]]).astype(np.float32),
        y=np.concatenate([band.high, band.low[::-1]]).astype(np.float32),
        xaxis=x_axis,
        yaxis=y_axis,
        fill="toself",
        fillcolor=rgba(band.style.color, 0.2),
        line={"width": 0},
        mode="lines",
        name=band.label,
        legendgroup=band.key,
        showlegend=False,
        hoverinfo="skip",
    )


def _draw_stacked(figure: Figure) -> go.Figure:
    made = go.Figure()
    heights = [panel.height * _PANEL_PIXELS for panel in figure.panels]
    inner = sum(heights) + _GAP_PIXELS * (len(heights) - 1)
    named: set[str] = set()
    edge = inner
    room = max(_tick_room(panel) for panel in figure.panels)
    axes: dict[str, Any] = {}
    for number, (panel, height) in enumerate(zip(figure.panels, heights, strict=True), start=1):
        axis = "y" if number == 1 else f"y{number}"
        domain = [max(0.0, (edge - height) / inner), min(1.0, edge / inner)]
        edge -= height + _GAP_PIXELS
        axes["yaxis" + axis[1:]] = _y_axis(panel, domain)
        _draw_panel(made, panel, axis, named, figure)
        if not panel.strips:
            _label(made, panel, sum(domain) / 2, room)
    last = "y" if len(figure.panels) == 1 else f"y{len(figure.panels)}"
    x_axis = AXIS | {
        "anchor": last,
        "title": {"text": figure.x_label},
        "range": list(figure.x_range) if figure.x_range else None,
        "hoverformat": ".4~g",
    }
    made.update_layout(
        **_layout(figure, inner), hovermode="x unified", hoversubplots="axis", xaxis=x_axis, **axes
    )
    for moment in figure.moments:
        made.add_shape(
            type="line",
            xref="x",
            yref="paper",
            x0=moment.x,
            x1=moment.x,
            y0=0,
            y1=1,
            line={"color": "#888888", "width": 1, "dash": "dot"},
        )
    return made


def _label(made: go.Figure, panel: Panel, y: float, room: int) -> None:
    # An annotation, not the axis's title: titles stand at a different distance in every panel.
    made.add_annotation(
        text="<br>".join(_title_lines(panel)),
        xref="paper",
        yref="paper",
        x=0,
        y=y,
        xanchor="right",
        yanchor="middle",
        xshift=-room,
        textangle=-90,
        showarrow=False,
        font={"size": 12},
    )


def _tick_room(panel: Panel) -> int:
    """Pixels that the labels of a panel's ticks take: many digits, where large values differ by little."""
    drawn = [line.y for line in panel.lines] + [points.y for points in panel.points]
    values = np.concatenate(drawn) if drawn else np.empty(0)
    values = values[np.isfinite(values)]
    if not len(values) or panel.zero:
        return _TICKS
    low, high = values.min(), values.max()
    step = (high - low) / 4 or 1.0
    digits = len(f"{high:,.0f}") + max(0, math.ceil(-math.log10(step)))
    return max(_TICKS, 10 + 8 * (digits + 1))


def _layout(figure: Figure, inner: float) -> dict[str, Any]:
    top = room_above(_legend_names(figure))
    height = inner + top + _BOTTOM
    margin = {"l": _left_margin(figure), "r": 106, "t": top, "b": _BOTTOM}
    return layout(height, margin) | {"dragmode": "zoom"}


def _title_lines(panel: Panel) -> list[str]:
    return [*panel.title.split("\n"), *([f"({panel.unit})"] if panel.unit else [])]


def _left_margin(figure: Figure) -> int:
    """Room for the lines of the axis titles, two at least, or for the names of the strips."""
    longest = max((len(_strip_name(s)) for panel in figure.panels for s in panel.strips), default=0)
    lines = max((len(_title_lines(panel)) for panel in figure.panels), default=0)
    ticks = max((_tick_room(panel) for panel in figure.panels if not panel.strips), default=_TICKS)
    return max(82, 14 + 8 * longest, ticks + 10 + 16 * lines)


def _strip_name(strip: Strip) -> str:
    return strip.key if len(strip.key) <= _MAX_NAME else strip.key[: _MAX_NAME - 1] + "…"


def _legend_names(figure: Figure) -> Iterable[str]:
    """The entries of the legend, each once."""
    keys = {line.key: None for p in figure.panels for line in p.lines if not (line.faint or line.unnamed)}
    keys |= {band.label: None for p in figure.panels for band in p.bands}
    keys |= {points.key: None for p in figure.panels for points in p.points}
    return keys


def _y_axis(panel: Panel, domain: list[float]) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "domain": domain,
        "anchor": "x",
        "gridcolor": GRID,
        "zeroline": False,
        "nticks": 6,
        "fixedrange": False,
        "exponentformat": "none",
        "separatethousands": True,
    }
    if panel.strips:
        count = len(panel.strips)
        return axis | {
            "range": [-0.6, count - 0.4],
            "tickvals": list(range(count)),
            "ticktext": [_strip_name(strip) for strip in reversed(panel.strips)],
            "showgrid": False,
            "fixedrange": True,
        }
    bottom, top = panel.y_range
    if top is not None:
        return axis | {"range": [bottom, top], "autorange": "min" if bottom is None else False}
    return axis | {"rangemode": "tozero" if panel.zero else "normal"}


def _draw_panel(made: go.Figure, panel: Panel, axis: str, named: set[str], figure: Figure) -> None:
    for band in panel.bands:
        made.add_scatter(
            x=np.concatenate([band.x, band.x[::-1]]).astype(np.float32),
            y=np.concatenate([band.high, band.low[::-1]]).astype(np.float32),
            yaxis=axis,
            fill="toself",
            fillcolor=rgba(band.style.color, 0.2),
            line={"width": 0},
            mode="lines",
            name=band.label,
            legendgroup=band.key,
            showlegend=band.label not in named,
            hoverinfo="skip",
        )
        named.add(band.label)
    for line in panel.lines:
        _draw_line(made, panel, line, axis, named)
    for points in panel.points:
        _draw_points(made, panel, points, axis, named)
    for level in panel.levels:
        made.add_shape(
            type="line",
            xref="x domain",
            yref=axis,
            x0=0,
            x1=1,
            y0=level.y,
            y1=level.y,
            line={"color": level.style.color, "width": 1, "dash": level.style.dash},
        )
        made.add_annotation(
            text=level.label.replace("\n", "<br>"),
            xref="x domain",
            yref=axis,
            x=1,
            y=level.y,
            xanchor="left",
            yanchor="middle",
            align="left",
            xshift=4,
            showarrow=False,
            font={"size": 11, "color": level.style.color},
        )
    for row, strip in enumerate(reversed(panel.strips)):
        _draw_strip(made, strip, row, axis, figure)


def _draw_line(
    made: go.Figure, panel: Panel, line: Line, axis: str, named: set[str], x_axis: str = "x"
) -> None:
    name = line.label or line.key
    shown = line.key not in named and not line.faint and not line.unnamed
    if shown:
        named.add(line.key)
    made.add_scatter(
        x=line.x.astype(np.float32),
        y=line.y.astype(np.float32),
        xaxis=x_axis,
        yaxis=axis,
        mode="lines+markers" if panel.x_title else "lines",
        marker={"size": 5},
        name=name,
        legendgroup=line.key,
        showlegend=shown,
        opacity=0.7 if line.faint else 1.0,
        line=_stroke(line.style, line.width if not line.faint else 1.0, "vh" if line.steps else "linear"),
        hovertemplate=f"%{{y:.4~g}} {panel.unit}",
    )


_SYMBOLS = {"dot": "circle", "cross": "x-thin", "tick": "line-ns"}


def _draw_points(made: go.Figure, panel: Panel, points: Points, axis: str, named: set[str]) -> None:
    made.add_scattergl(
        x=points.x,
        y=points.y,
        yaxis=axis,
        mode="markers",
        name=points.key,
        legendgroup=points.key,
        showlegend=points.key not in named,
        marker={
            "symbol": _SYMBOLS[points.symbol],
            "size": points.size if points.symbol == "dot" else points.size + 4,
            "color": points.color,
            "line": {"width": 0 if points.symbol == "dot" else 1.5, "color": points.color},
        },
        hovertemplate=f"%{{y:.6~g}} {panel.unit}",
    )
    named.add(points.key)


def _draw_strip(made: go.Figure, strip: Strip, row: int, axis: str, figure: Figure) -> None:
    common = {"yaxis": axis, "name": strip.key, "legendgroup": strip.key, "showlegend": False}
    # One filled line for all segments of a shade: hundreds of shapes would make the page slow.
    for shade in dict.fromkeys(segment.shade for segment in strip.segments):
        alike = [segment for segment in strip.segments if segment.shade == shade]
        made.add_scatter(
            x=np.array([(s.start, s.end, s.end, s.start, s.start, np.nan) for s in alike]).ravel(),
            y=np.tile(row + np.array([-0.4, -0.4, 0.4, 0.4, -0.4, np.nan]), len(alike)),
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=rgba(strip.style.color, shade),
            hoverinfo="skip",
            **common,
        )
    if strip.segments:
        # A filled line has no hover inside; an invisible one along the row has, and carries the names.
        edges = [edge for s in strip.segments for edge in (s.start, (s.start + s.end) / 2, s.end)]
        names = [name for s in strip.segments for name in ("", _fitting(s, figure), "")]
        made.add_scatter(
            x=np.asarray(edges, dtype=np.float32),
            y=np.full(len(edges), row),
            mode="lines+text",
            line={"width": 0},
            text=names,
            textfont={"size": 10},
            hovertext=[s.label.replace("_", " ") for s in strip.segments for _ in range(3)],
            hovertemplate="%{hovertext}",
            **common,
        )
    for marks in strip.marks:
        tick = marks.symbol == "tick"
        made.add_scatter(
            x=marks.x.astype(np.float32),
            y=np.full(len(marks.x), row),
            mode="markers",
            marker={
                "symbol": "line-ns" if tick else "x-thin",
                "size": 9 if tick else 8,
                "color": strip.style.color,
                "line": {"width": 1 if tick else 2, "color": strip.style.color},
            },
            hovertemplate=marks.label,
            **(common | {"name": f"{strip.key} {marks.label}"}),
        )


def _fitting(segment: Segment, figure: Figure) -> str:
    """A segment's name where the unzoomed figure has room for it."""
    whole = (figure.x_range[1] - figure.x_range[0]) if figure.x_range else 1.0
    fits = (segment.end - segment.start) / whole > 0.012 * len(segment.label)
    return segment.label.replace("_", " ") if fits else ""


def _stroke(style: Style, width: float, shape: str) -> dict[str, Any]:
    return {"color": style.color, "dash": style.dash, "width": width, "shape": shape}
