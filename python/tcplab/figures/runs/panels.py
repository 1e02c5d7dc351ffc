"""The panels of the time series figure, one function each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tcplab.analysis.samples import Array, Series
from tcplab.analysis.statistics import jain_over_time
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Band, Level, Line, Panel
from tcplab.figures.palette import Style
from tcplab.figures.runs.source import Source
from tcplab.plan.describe import limit_words
from tcplab.plan.paths import Hop, base_rtt, data_path, nominal_rate, queue_limit_packets, settings
from tcplab.plan.types import Direction
from tcplab.quantities import rate_scale, rate_text, time_text

T = TypeVar("T")


def goodput_panel(sources: Sequence[Source]) -> Panel:
    """Goodput of every flow."""
    found = [(s, flow, s.samples.goodput(flow)) for s in sources for flow in s.flows]
    found = [(s, flow, series) for s, flow, series in found if np.nansum(series.value) > 0]
    scale = rate_scale([_top(series) for _, _, series in found])
    lines = tuple(line_of(s, flow, series, scale.divisor, steps=True) for s, flow, series in found)
    top = max((_top(series) for _, _, series in found), default=0.0)
    levels = [
        Level(rate / scale.divisor, f"link rate\n{rate_text(rate)}")
        for rate in _same([_steady_rate(s, hop) for s in sources for hop in s.bottlenecks()])
        if rate <= 1.3 * top
    ]
    return Panel("Goodput", scale.unit, lines, levels=tuple(levels))


def window_panel(sources: Sequence[Source], *, ssthresh: bool = True) -> Panel:
    """Congestion window of every flow; the slow-start threshold faint and dashed, for up to 4 flows."""
    lines: list[Line] = []
    top = 0.0
    for s in sources:
        for flow in s.flows:
            series = s.samples.window(flow)
            if len(series):
                lines.append(line_of(s, flow, series, 1.0))
                top = max(top, _top(series))
    if ssthresh and len(lines) <= 4 and len(sources) == 1:
        for flow in sources[0].flows:
            series = sources[0].samples.threshold(flow)
            # "Infinite" before the first loss; a threshold far above every window would only flatten them.
            value = np.where(series.value > 1.25 * top, np.nan, series.value)
            if np.isfinite(value).any():
                faded = Style(sources[0].styles[flow].color, "dot")
                lines.append(
                    line_of(
                        sources[0],
                        flow,
                        Series(series.time, value),
                        1.0,
                        faint=True,
                        style=faded,
                        what="ssthresh",
                    )
                )
    return Panel("Congestion window", "segments", tuple(lines), height=1.2)


def rtt_panel(sources: Sequence[Source]) -> Panel:
    """Smoothed RTT of every flow over the base RTT."""
    lines = tuple(
        line_of(s, flow, series, 1e6)
        for s in sources
        for flow in s.flows
        if len(series := s.samples.mean_rtt(flow))
    )
    bases = [_steady_base_rtt(s, flow) for s in sources for flow in s.flows]
    levels = tuple(Level(base / 1e6, f"base RTT\n{time_text(base)}") for base in _same(bases) if base)
    return Panel("RTT", "ms", lines, levels=levels, zero=False)


def queue_panel(sources: Sequence[Source]) -> Panel:
    """Packets waiting at every bottleneck, in the colour of its flow; shared ones in grey."""
    lines: list[Line] = []
    limits: list[tuple[float, str] | None] = []
    markings: list[tuple[float, str] | None] = []
    for s in sources:
        for hop, flows in s.bottlenecks().items():
            series = s.samples.queue(hop)
            if not len(series):
                continue
            direction = settings(s.samples.plan, hop)
            limits.append(_limit(direction))
            markings.append(_marking(direction))
            if len(flows) == 1:
                lines.append(line_of(s, flows[0], series, 1.0))
            else:
                x, y = decimate(series.time / 1e9, series.value)
                lines.append(shared_line(s, hop, x, y))
    top = max((float(np.nanmax(line.y)) for line in lines), default=0.0)
    known = _same(limits) + _same(markings)
    levels = tuple(Level(packets, text) for packets, text in known if packets <= 1.6 * top)
    return Panel("Queue", "packets", tuple(lines), levels=levels)


def jain_panel(sources: Sequence[Source]) -> Panel:
    """Jain's index over time of the flows that share a bottleneck, over the second before each sample."""
    lines: list[Line] = []
    for s in sources:
        for hop, flows in s.bottlenecks().items():
            units = s.samples.sharing(flows)
            if len(units) < 2:
                continue
            times, rates = s.samples.recent_goodput(units)
            x, y = decimate(times / 1e9, jain_over_time(rates))
            if np.isfinite(y).any():
                alone = line_of(s, flows[0], Series(x * 1e9, y), 1.0)
                lines.append(alone if len(flows) == 1 else shared_line(s, hop, x, y))
    return Panel("Jain's index", "", tuple(lines), top=1.03, height=0.75)


def stream_panel(source: Source) -> Panel:
    """Goodput of the single streams of flows that have several: median, and band of the middle 80 %."""
    lines, bands = [], []
    streams = {flow: source.samples.stream_numbers(flow) for flow in source.flows}
    several = {flow: numbers for flow, numbers in streams.items() if len(numbers) > 2}
    spreads = {}
    for flow, numbers in several.items():
        times, rates = source.samples.recent_goodput([(flow, number) for number in numbers])
        active = np.isfinite(rates).any(axis=1)
        if active.any():
            spreads[flow] = (times[active] / 1e9, np.nanpercentile(rates[active], (10, 50, 90), axis=1))
    scale = rate_scale([float(np.nanmax(values)) for _, values in spreads.values()])
    for flow, (x, values) in spreads.items():
        key, look = source.label(flow), source.styles[flow]
        low, middle, high = values / scale.divisor
        bands.append(Band(key, x, low, high, look, f"{key}, 10 to 90 % of its streams"))
        lines.append(Line(key, x, middle, look))
    return Panel("Goodput per stream", scale.unit, tuple(lines), bands=tuple(bands))


def shared_line(source: Source, hop: Hop, x: Array, y: Array) -> Line:
    """The line of a bottleneck that several flows share; the only one needs no name beside its panel's."""
    styles = source.shared()
    return Line(f"link {hop.link}{source.suffix}", x, y, styles[hop], unnamed=len(styles) == 1)


def line_of(
    source: Source,
    flow: str,
    series: Series,
    divisor: float,
    *,
    steps: bool = False,
    faint: bool = False,
    style: Style | None = None,
    what: str = "",
) -> Line:
    """A flow's line, thinned for drawing; seconds on the x axis."""
    x, y = decimate(series.time / 1e9, series.value / divisor)
    key = source.label(flow)
    label = f"{key} {what}".rstrip()
    return Line(key, x, y, style or source.styles[flow], label, steps=steps, faint=faint)


def _limit(direction: Direction) -> tuple[float, str] | None:
    """A queue's limit in packets, and how it is labelled."""
    limit, packets = direction["queue"].get("limit"), queue_limit_packets(direction)
    if limit is None or packets is None or _changes(direction, "limit") or _changes(direction, "rate"):
        return None
    words = limit_words(limit)
    return packets, f"limit\n{words}" if "packets" in limit else f"limit {words}\n≈ {packets:.0f} packets"


def _marking(direction: Direction) -> tuple[float, str] | None:
    """A queue's marking threshold in packets, and how it is labelled."""
    packets = queue_limit_packets(direction, "mark_above")
    if packets is None or _changes(direction, "mark_above") or _changes(direction, "rate"):
        return None
    return packets, f"marks above\n{limit_words(direction['queue']['mark_above'])}"


def _steady_rate(source: Source, hop: Hop) -> float | None:
    direction = settings(source.samples.plan, hop)
    return None if _changes(direction, "rate") or direction.get("trace") else nominal_rate(direction)


def _steady_base_rtt(source: Source, flow: str) -> int | None:
    plan, planned = source.samples.plan, source.samples.plan_flow(flow)
    if not planned or any(_changes(settings(plan, hop), "delay") for hop in data_path(plan, planned)):
        return None
    return base_rtt(plan, planned)


def _changes(direction: Direction, key: str) -> bool:
    return any(change.get(key) is not None for change in direction.get("changes") or ())


def _same(values: Sequence[T | None]) -> list[T]:
    """The one value that all have; empty when they differ or one has none."""
    found = set(values)
    return [value for value in found if value is not None] if len(found) == 1 else []


def _top(series: Series) -> float:
    return float(np.nanmax(series.value)) if np.isfinite(series.value).any() else 0.0
