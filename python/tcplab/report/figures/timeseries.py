"""The time series figure: goodput, congestion window, RTT and queue length on one time axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from tcplab.report.figures.decimate import POINTS, decimate
from tcplab.report.figures.model import Figure, Level, Line, Moment, Panel
from tcplab.report.figures.palette import Style, style
from tcplab.report.figures.strips import strip_panel
from tcplab.report.numbers import rate_scale, rate_text, time_text
from tcplab.report.series import Array, Samples, Series
from tcplab.report.topology import Hop, base_rtt, nominal_rate, queue_limit_packets, settings
from tcplab.report.words import limit_words
from tcplab.results.run import Run
from tcplab.stats import jain_over_time

T = TypeVar("T")

MOST_LINES = 8
"""More flows than this are aggregated: their lines would hide each other."""

# A queue that several flows share has no flow's colour.
_SHARED = "#666666"
_SECOND = 1e9


@dataclass(frozen=True)
class Source:
    """One repetition of a run, and how its flows appear in a figure."""

    samples: Samples
    styles: Mapping[str, Style]
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the legend calls a flow, when not by its name."""
    shared_dash: str = "solid"
    suffix: str = ""
    """Told apart from other runs by this."""
    chosen: tuple[str, ...] | None = None
    """Only these flows; None: all."""

    def label(self, flow: str) -> str:
        """The flow's name in the legend."""
        return self.labels.get(flow, flow)

    @property
    def flows(self) -> list[str]:
        """Flows that were active."""
        names = self.samples.flow_names if self.chosen is None else self.chosen
        return [flow for flow in names if self.samples.span(flow)]

    def only(self, flows: Sequence[str]) -> Source:
        """The same with fewer flows."""
        return replace(self, chosen=tuple(flows))

    def bottlenecks(self) -> dict[Hop, list[str]]:
        """The bottlenecks of the flows, each with the flows that it limits."""
        found: dict[Hop, list[str]] = {}
        for flow in self.flows:
            for hop in self.samples.bottlenecks(flow):
                found.setdefault(hop, []).append(flow)
        return found

    def shared(self) -> dict[Hop, Style]:
        """The bottlenecks of several flows, and their style: grey, or, if they are several, colours of their own."""
        hops = [hop for hop, flows in self.bottlenecks().items() if len(flows) > 1]
        if len(hops) == 1:
            return {hops[0]: Style(_SHARED, self.shared_dash)}
        first = len(self.styles)
        return {hop: Style(style(first + i).color, self.shared_dash) for i, hop in enumerate(hops)}


def flow_styles(names: Iterable[str]) -> dict[str, Style]:
    """A style per flow, the same in every panel of every figure."""
    return {name: style(index) for index, name in enumerate(names)}


def timeseries(run: Run, repetition: int | None = None, *, ssthresh: bool = True) -> Figure:
    """Goodput, congestion window, RTT and queue length over time.

    One repetition is shown, the first unless another is given. More than 8 flows are aggregated by control.
    """
    chosen = run.repetitions[0] if repetition is None else repetition
    samples = Samples(run, chosen)
    source = Source(samples, flow_styles(samples.flow_names))
    if len(source.flows) > MOST_LINES:
        from tcplab.report.figures.aggregate import aggregated

        figure = aggregated(source)
    else:
        figure = figure_of([source], run.name, ssthresh=ssthresh, strips=True)
    if len(run.repetitions) == 1:
        return figure
    return with_notes(figure, [f"Repetition {chosen} of {len(run.repetitions)}."])


def with_notes(figure: Figure, notes: Sequence[str]) -> Figure:
    """The figure with more notes in front."""
    return replace(figure, notes=(*notes, *figure.notes))


def figure_of(sources: Sequence[Source], title: str, *, ssthresh: bool, strips: bool) -> Figure:
    """The time series of one or more runs in the same panels."""
    panels = [goodput_panel(sources), window_panel(sources, ssthresh=ssthresh)]
    if strips:
        panels.append(strip_panel(sources[0]))
    panels += [rtt_panel(sources), queue_panel(sources), jain_panel(sources)]
    drawn = tuple(panel for panel in panels if panel.lines or panel.strips)
    return Figure(
        name="timeseries",
        title=title,
        x_label="Time (s)",
        panels=drawn,
        x_range=(0.0, end_of(sources)),
        moments=tuple(moments(sources)),
        notes=tuple(_notes(sources, drawn)),
    )


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
    bases = [base_rtt(s.samples.plan, s.samples.plan_flow(f)) for s in sources for f in s.flows]
    levels = tuple(Level(base / 1e6, f"base RTT\n{time_text(base)}") for base in _same(bases) if base)
    return Panel("RTT", "ms", lines, levels=levels, zero=False)


def queue_panel(sources: Sequence[Source]) -> Panel:
    """Packets waiting at every bottleneck, in the colour of its flow; shared ones in grey."""
    lines: list[Line] = []
    limits: list[tuple[float, str] | None] = []
    for s in sources:
        for hop, flows in s.bottlenecks().items():
            series = s.samples.queue(hop)
            if not len(series):
                continue
            limits.append(_limit(settings(s.samples.plan, hop)))
            if len(flows) == 1:
                lines.append(line_of(s, flows[0], series, 1.0))
            else:
                x, y = decimate(series.time / 1e9, series.value)
                lines.append(shared_line(s, hop, x, y))
    top = max((float(np.nanmax(line.y)) for line in lines), default=0.0)
    levels = tuple(Level(packets, text) for packets, text in _same(limits) if packets <= 1.6 * top)
    return Panel("Queue", "packets", tuple(lines), levels=levels)


def jain_panel(sources: Sequence[Source]) -> Panel:
    """Jain's index over time of the flows that share a bottleneck, over the second before each sample."""
    lines: list[Line] = []
    for s in sources:
        for hop, flows in s.bottlenecks().items():
            moving = [flow for flow in flows if s.samples.plan_flow(flow).get("kind") != "ping"]
            if len(moving) < 2:
                continue
            times, rates = active_goodput(s.samples, moving)
            x, y = decimate(times / 1e9, jain_over_time(rates))
            if np.isfinite(y).any():
                lines.append(shared_line(s, hop, x, y))
    return Panel("Jain's index", "", tuple(lines), top=1.03, height=0.75)


def active_goodput(samples: Samples, flows: Sequence[str]) -> tuple[Array, Array]:
    """Sample times, and each flow's mean goodput over the second before; NaN while a flow was not active."""
    series = [samples.goodput(flow) for flow in flows]
    times = np.unique(np.concatenate([one.time for one in series]))
    rates = np.full((len(times), len(flows)), np.nan)
    for column, (flow, one) in enumerate(zip(flows, series, strict=True)):
        start, end = samples.span(flow) or (0.0, 0.0)
        total = np.concatenate([[0.0], np.cumsum(one.value)])
        last = np.searchsorted(one.time, times, side="right")
        first = np.searchsorted(one.time, times - _SECOND, side="right")
        count = last - first
        active = (times > start) & (times <= end) & (count > 0)
        rates[active, column] = (total[last] - total[first])[active] / count[active]
    return times, rates


def shared_line(source: Source, hop: Hop, x: Array, y: Array) -> Line:
    """The line of a bottleneck that several flows share; when it is the only one, its panel says what it is."""
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


def moments(sources: Sequence[Source]) -> list[Moment]:
    """Link changes: what changed, when."""
    found: dict[float, list[str]] = {}
    for s in sources[:1]:
        events = s.samples.run.tables["events"].filter(
            (pl.col("repetition") == s.samples.repetition) & (pl.col("event") == "link_change")
        )
        for time, link, detail in events.select("time", "link", "detail").iter_rows():
            found.setdefault(time / 1e9, []).append(f"{link}: {detail}")
    # Links that change all the time (a trace, a sweep) would only draw a fence.
    return [Moment(x, "; ".join(texts)) for x, texts in found.items()] if len(found) <= 40 else []


def end_of(sources: Sequence[Source]) -> float:
    """When the last flow ended, s."""
    spans = [span for s in sources for flow in s.flows if (span := s.samples.span(flow))]
    return max((end for _, end in spans), default=0.0) / 1e9


def _notes(sources: Sequence[Source], panels: Sequence[Panel]) -> list[str]:
    notes = []
    longest = max((len(s.samples.window(f)) for s in sources for f in s.flows), default=0)
    queues = max((len(s.samples.queue(hop)) for s in sources for hop in s.bottlenecks()), default=0)
    if max(longest, queues) > POINTS:
        notes.append(
            f"Long series are thinned for drawing to {POINTS} points: of each stretch of time the least and "
            "the greatest value, so no peak is hidden. The tables hold every sample."
        )
    if any(len(s.samples.streams(flow)) > 1 for s in sources for flow in s.flows):
        notes.append("Goodput and window of a flow of several streams are their sum, its RTT is their mean.")
    if any(_exceeds(panel) for panel in panels):
        notes.append(
            "Goodput above the link's rate is no error: when a retransmission fills a hole, what had arrived "
            "behind it is delivered at once."
        )
    if any(line.faint for panel in panels for line in panel.lines):
        notes.append("Dotted in the window panel: the slow-start threshold.")
    if any(strip.marks for panel in panels for strip in panel.strips):
        notes.append(
            "In the strips: shades are phases of the control, ticks loss episodes, crosses timeouts."
        )
    return notes


def _exceeds(panel: Panel) -> bool:
    return panel.title == "Goodput" and any(
        float(np.nanmax(line.y)) > level.y for level in panel.levels for line in panel.lines
    )


def _limit(direction: Mapping[str, Any]) -> tuple[float, str] | None:
    """A queue's limit in packets, and how it is labelled."""
    packets = queue_limit_packets(direction)
    if packets is None:
        return None
    words = limit_words(direction["queue"]["limit"])
    exact = "packets" in direction["queue"]["limit"]
    return packets, f"limit\n{words}" if exact else f"limit {words}\n(≈ {packets:.0f} packets)"


def _steady_rate(source: Source, hop: Hop) -> float | None:
    direction = settings(source.samples.plan, hop)
    changed = any(change.get("rate") is not None for change in direction.get("changes") or ())
    return None if changed or direction.get("trace") else nominal_rate(direction)


def _same(values: Sequence[T | None]) -> list[T]:
    """The one value that all have; empty when they differ or one has none."""
    found = set(values)
    return [value for value in found if value is not None] if len(found) == 1 else []


def _top(series: Series) -> float:
    return float(np.nanmax(series.value)) if np.isfinite(series.value).any() else 0.0
