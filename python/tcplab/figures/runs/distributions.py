"""Distributions: of the RTT each flow saw, and of the delay in each bottleneck's queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcplab.analysis.samples import Samples
from tcplab.analysis.statistics import empirical_cdf
from tcplab.analysis.steady_state import asked_omit, steady_window, windows_of_load
from tcplab.figures.model import Array, Figure, Line, Panel
from tcplab.figures.palette import Style, style
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import MAX_LINES
from tcplab.results.run import Run


def cdf(run: Run, *, omit: int | str | None = None) -> Figure:
    """RTT by flow and queueing delay by bottleneck over the steady state, all repetitions pooled."""
    samples = [Samples.of(run, repetition) for repetition in run.repetitions]
    names = list(dict.fromkeys(name for one in samples for name in one.flow_names))
    return cdf_of([[Source(one, flow_styles(names)) for one in samples]], run.name, omit=omit)


def cdf_of(runs: Sequence[Sequence[Source]], title: str, *, omit: int | str | None = None) -> Figure:
    """The distributions of one or more runs, each given by the sources of its repetitions."""
    rtt: list[Line] = []
    queue: list[Line] = []
    for sources in runs:
        rtt += _rtt_lines(sources, omit)
        queue += _queue_lines(sources, omit)
    panels = [
        Panel("RTT", "ms", tuple(rtt), top=1.0),
        Panel("Queueing delay", "ms", tuple(queue), top=1.0),
    ]
    return Figure(
        name="distributions",
        title=title,
        x_label="",
        panels=tuple(panel for panel in panels if panel.lines),
        columns=2,
        notes=(
            "Share of the samples at or below each value, after the warm-up, all repetitions together. "
            "RTT is the sender's smoothed RTT; queueing delay is how long the packets of a sample period "
            "waited on average in the bottleneck's queue, each packet counting once.",
        ),
    )


def _rtt_lines(sources: Sequence[Source], omit: int | str | None) -> list[Line]:
    flows = list(dict.fromkeys(flow for s in sources for flow in s.flows))
    pooled: dict[str, list[tuple[Array, Array]]] = {}
    styles: dict[str, Style] = {}
    many = len(flows) > MAX_LINES
    for s in sources:
        asked = asked_omit(s.samples.plan, omit)
        for flow in s.flows:
            window = steady_window(s.samples, flow, asked)
            if window is None:
                continue
            key = _control(s.samples, flow) if many else s.label(flow)
            styles.setdefault(key, style(len(styles)) if many else s.styles[flow])
            pooled.setdefault(key, []).append(s.samples.round_trips(flow, window.start, window.end))
    return [line for key, values in pooled.items() for line in _line(key, values, styles[key])]


def _queue_lines(sources: Sequence[Source], omit: int | str | None) -> list[Line]:
    pooled: dict[str, list[tuple[Array, Array]]] = {}
    styles: dict[str, Style] = {}
    for s in sources:
        asked = asked_omit(s.samples.plan, omit)
        for hop, flows in s.bottlenecks().items():
            found = {flow: steady_window(s.samples, flow, asked) for flow in flows}
            windows = windows_of_load(s.samples, found)
            if not windows:
                continue
            alone = len(flows) == 1
            key = s.label(flows[0]) if alone else f"link {hop.link}{s.suffix}"
            styles.setdefault(key, s.styles[flows[0]] if alone else s.shared()[hop])
            waits = s.samples.waits(hop, min(w.start for w in windows), max(w.end for w in windows))
            pooled.setdefault(key, []).append((waits.mean, waits.packets))
    return [line for key, values in pooled.items() for line in _line(key, values, styles[key])]


def _line(key: str, parts: list[tuple[Array, Array]], style: Style) -> list[Line]:
    values, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    x, share = empirical_cdf(values / 1e6, weights=weights)
    return [Line(key, x, share, style)] if len(x) else []


def _control(samples: Samples, flow: str) -> str:
    rows = samples.streams(flow)
    return str((rows["cc"][0] or rows["kind"][0]) if len(rows) else flow)
