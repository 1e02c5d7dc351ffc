"""Strips: the phases of each flow's control, with its loss episodes and timeouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from tcplab.analysis.samples import Samples
from tcplab.figures.model import Array, Marks, Panel, Segment, Strip
from tcplab.figures.runs.source import Source

_LOSS_STATES = ("recovery", "loss")
# Shorter than this share of the time axis, a phase cannot be seen and is merged into its neighbour.
_MIN_SHARE = 1 / 1500


def strip_panel(source: Source) -> Panel:
    """A strip per flow; empty when no flow has a phase or lost anything."""
    strips = [
        Strip(source.label(flow), source.styles[flow], segments, marks)
        for flow in source.flows
        for segments, marks in [_strip(source.samples, flow)]
        if segments or marks
    ]
    return Panel("Phases", "", strips=tuple(strips), height=0.12 + 0.11 * len(strips))


def _strip(samples: Samples, flow: str) -> tuple[tuple[Segment, ...], tuple[Marks, ...]]:
    rows = samples.phases(flow).filter(pl.col("phase").is_not_null())
    segments: tuple[Segment, ...] = ()
    span = samples.span(flow)
    if len(rows) and span:
        segments = _segments(rows["time"].to_numpy() / 1e9, rows["phase"].to_list(), span[1] / 1e9)
    events = samples.rows("events", flow)
    events = events.filter(pl.col("stream") == pl.col("stream").min())
    losses = events.filter((pl.col("event") == "state") & pl.col("detail").is_in(_LOSS_STATES))
    timeouts = events.filter(pl.col("event") == "rto")
    marks = [
        Marks(label, rows["time"].to_numpy() / 1e9, symbol)
        for label, rows, symbol in (("loss episode", losses, "tick"), ("timeout", timeouts, "cross"))
        if len(rows)
    ]
    return segments, tuple(marks)


def _segments(times: Array, phases: Sequence[str], end: float) -> tuple[Segment, ...]:
    names = list(dict.fromkeys(phases))
    shades = dict(zip(names, np.linspace(0.55, 0.12, max(len(names), 2)), strict=False))
    minimum = (end - float(times[0])) * _MIN_SHARE
    changes = [0, *(i for i in range(1, len(phases)) if phases[i] != phases[i - 1])]
    segments: list[Segment] = []
    for number, i in enumerate(changes):
        start = float(times[i])
        stop = float(times[changes[number + 1]]) if number + 1 < len(changes) else end
        if segments and (stop - start < minimum or segments[-1].label == phases[i]):
            segments[-1] = _until(segments[-1], stop)
        else:
            segments.append(Segment(start, stop, phases[i], float(shades[phases[i]])))
    return tuple(segments)


def _until(segment: Segment, end: float) -> Segment:
    return Segment(segment.start, end, segment.label, segment.shade)
