"""The time series figure: goodput, congestion window, RTT and queue length on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from tcplab.analysis.samples import Samples
from tcplab.figures.decimate import POINTS
from tcplab.figures.model import Figure, Moment, Panel
from tcplab.figures.runs.panels import (
    goodput_panel,
    jain_panel,
    queue_panel,
    rtt_panel,
    stream_panel,
    window_panel,
)
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.strips import strip_panel
from tcplab.results.run import Run

MAX_LINES = 8
"""More flows than this are aggregated: their lines would hide each other."""


def timeseries(run: Run, repetition: int | None = None, *, ssthresh: bool = True) -> Figure:
    """Goodput, congestion window, RTT and queue length over time.

    One repetition is shown, the first unless another is given. More than 8 flows are aggregated by control.
    """
    chosen = run.repetitions[0] if repetition is None else repetition
    samples = Samples.of(run, chosen)
    source = Source(samples, flow_styles(samples.flow_names))
    if len(source.flows) > MAX_LINES:
        from tcplab.figures.runs.aggregate import aggregated

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
    panels = [goodput_panel(sources)]
    if strips:
        panels.append(stream_panel(sources[0]))
    panels.append(window_panel(sources, ssthresh=ssthresh))
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


def moments(sources: Sequence[Source]) -> list[Moment]:
    """Link changes: what changed, when."""
    found: dict[float, dict[str, list[str]]] = {}
    for s in sources[:1]:
        events = s.samples.table("events").filter(pl.col("event") == "link_change")
        for time, link, detail in events.select("time", "link", "detail").iter_rows():
            found.setdefault(time / 1e9, {}).setdefault(detail, []).append(link)
    # Links that change all the time (a trace, a sweep) would only draw a fence.
    if len(found) > 40:
        return []
    return [
        Moment(x, "; ".join(f"{detail} ({', '.join(links)})" for detail, links in details.items()))
        for x, details in found.items()
    ]


def end_of(sources: Sequence[Source]) -> float:
    """When the last flow ended, s."""
    # One that had not begun when its run was cut off has the time at which it would have, as both.
    spans = [span for s in sources for flow in s.flows if (span := s.samples.span(flow))]
    active = [(start, end) for start, end in spans if end > start]
    return max((end for _, end in active or spans), default=0.0) / 1e9


def _notes(sources: Sequence[Source], panels: Sequence[Panel]) -> list[str]:
    notes = []
    longest = max((len(s.samples.window(f)) for s in sources for f in s.flows), default=0)
    queues = max((len(s.samples.queue(hop)) for s in sources for hop in s.bottlenecks()), default=0)
    if max(longest, queues) > POINTS:
        notes.append(
            f"Long series are thinned for drawing to {POINTS} points: each interval keeps its "
            "minimum and maximum, so no peak is hidden. The tables hold every sample."
        )
    if any(len(s.samples.streams(flow)) > 1 for s in sources for flow in s.flows):
        notes.append(
            "Goodput and window of a flow of several streams are their sum, its RTT is their mean. Goodput "
            "per stream is taken over the second before. The band holds the middle 80 % of the streams."
        )
    if any(_exceeds(panel) for panel in panels):
        notes.append(
            "Goodput above the link's rate is not an error: a retransmission that fills a hole delivers all "
            "data behind it at once."
        )
    changed = moments(sources)
    if changed:
        listed = ". ".join(f"At {moment.x:g} s: {moment.label}" for moment in changed[:6])
        notes.append(f"Dotted upright lines: links change. {listed}.")
    if any(line.faint for panel in panels for line in panel.lines):
        notes.append("Dotted in the window panel: the slow-start threshold.")
    if any(strip.marks for panel in panels for strip in panel.strips):
        notes.append(
            "In the strips: shades are phases of the control, ticks loss episodes, crosses timeouts; of a "
            "flow of several streams the first one's."
        )
    return notes


def _exceeds(panel: Panel) -> bool:
    return panel.title == "Goodput" and any(
        float(np.nanmax(line.y)) > level.y for level in panel.levels for line in panel.lines
    )
