"""The time series of many flows: totals, medians and bands by control; single lines would hide each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from tcplab.analysis.samples import Series
from tcplab.figures.model import Array, Band, Figure, Line, Panel
from tcplab.figures.palette import Style, style
from tcplab.figures.runs.panels import jain_panel, queue_panel
from tcplab.figures.runs.source import Source
from tcplab.figures.runs.timeseries import end_of, moments
from tcplab.quantities import rate_scale

_LOW, _HIGH = 10, 90
# Samples finer than this many per figure are averaged: medians of single samples are noise at this scale.
_BINS = 400


def aggregated(source: Source) -> Figure:
    """Goodput in total and per flow, window, RTT and queues of a run of many flows, grouped by control."""
    samples = source.samples
    groups = _groups(source)
    styles = {name: style(index) for index, name in enumerate(groups)}
    goodput = {name: _grid(samples.goodput, flows) for name, flows in groups.items()}
    scale = rate_scale([np.nansum(v, axis=1).max() for _, v in goodput.values() if v.size])
    each = rate_scale([np.nanmax(v) for _, v in goodput.values() if v.size])
    panels = [
        _total_panel(goodput, styles, scale.unit, scale.divisor),
        _spread_panel("Goodput per flow", each.unit, goodput, styles, each.divisor, steps=True),
        _spread_panel(
            "Window per flow",
            "segments",
            {n: _grid(samples.window, f) for n, f in groups.items()},
            styles,
            1.0,
        ),
        _spread_panel("RTT", "ms", {n: _grid(samples.mean_rtt, f) for n, f in groups.items()}, styles, 1e6),
        queue_panel([source]),
        jain_panel([source]),
    ]
    count = sum(len(flows) for flows in groups.values())
    return Figure(
        name="timeseries",
        title=samples.run.name,
        x_label="Time (s)",
        panels=tuple(panel for panel in panels if panel.lines),
        x_range=(0.0, end_of([source])),
        moments=tuple(moments([source])),
        notes=(
            f"{count} flows, grouped by control: lines are medians over the active flows, bands hold the "
            f"{_LOW}th to {_HIGH}th percentile; the first panel adds the flows up. Samples are averaged over "
            f"{_BINS} stretches of time.",
        ),
    )


def _groups(source: Source) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for flow in source.flows:
        rows = source.samples.streams(flow)
        name = (rows["cc"][0] or rows["kind"][0]) if len(rows) else "?"
        groups[str(name)].append(flow)
    return dict(groups)


def _grid(series_of: Callable[[str], Series], flows: list[str]) -> tuple[Array, Array]:
    """Common times, and a row per time with a column per flow; NaN where a flow has no sample."""
    found = [series for flow in flows if len(series := series_of(flow))]
    if not found:
        return np.empty(0), np.empty((0, 0))
    times = np.unique(np.concatenate([series.time for series in found]))
    if len(times) > _BINS:
        times = np.linspace(times[0], times[-1], _BINS)
    values = np.full((len(times), len(found)), np.nan)
    for column, series in enumerate(found):
        known = np.isfinite(series.value)
        index = np.searchsorted(times, series.time[known]).clip(0, len(times) - 1)
        count = np.bincount(index, minlength=len(times))
        total = np.bincount(index, series.value[known], minlength=len(times))
        values[count > 0, column] = total[count > 0] / count[count > 0]
    return times, values


def _total_panel(
    grids: dict[str, tuple[Array, Array]], styles: dict[str, Style], unit: str, divisor: float
) -> Panel:
    lines = [
        Line(name, times / 1e9, np.nansum(values, axis=1) / divisor, styles[name], steps=True)
        for name, (times, values) in grids.items()
        if values.size and np.nanmax(values) > 0
    ]
    return Panel("Goodput in total", unit, tuple(lines))


def _spread_panel(
    title: str,
    unit: str,
    grids: dict[str, tuple[Array, Array]],
    styles: dict[str, Style],
    divisor: float,
    *,
    steps: bool = False,
) -> Panel:
    lines, bands = [], []
    for name, (times, values) in grids.items():
        active = np.isfinite(values).any(axis=1) if values.size else np.empty(0, dtype=bool)
        if not active.any():
            continue
        x = times[active] / 1e9
        low, middle, high = np.nanpercentile(values[active] / divisor, (_LOW, 50, _HIGH), axis=1)
        bands.append(Band(name, x, low, high, styles[name], f"{name}, {_LOW} to {_HIGH} %"))
        lines.append(Line(name, x, middle, styles[name], steps=steps))
    return Panel(title, unit, tuple(lines), bands=tuple(bands), zero=title != "RTT")
