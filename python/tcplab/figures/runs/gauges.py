"""Gauges of congestion controls: a panel for each control and unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from tcplab.analysis.samples import Samples
from tcplab.figures.model import Figure, Line, Panel
from tcplab.figures.palette import DASHES, Style
from tcplab.figures.runs.panels import line_of
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import MAX_LINES, end_of, moments
from tcplab.results.run import Run

_WORDS = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "dash-dotted"}


@dataclass(frozen=True)
class _Axes:
    """The key of a panel: gauges of one control in one unit."""

    control: str
    unit: str


def gauges(run: Run, repetition: int | None = None) -> Figure:
    """The figures that controls publish, over time; without panels when none does.

    One repetition is shown, the first unless another is given. Of more than 8 flows it is the first of each
    control, of several streams the first.
    """
    samples = Samples.of(run, run.repetitions[0] if repetition is None else repetition)
    source = Source(samples, flow_styles(samples.flow_names))
    shown = _shown(source)
    panels: dict[_Axes, list[tuple[str, str, pl.DataFrame]]] = {}
    for flow in shown:
        for name, unit, rows in _published(samples, flow):
            panels.setdefault(_Axes(_control(samples, flow), unit), []).append((flow, name, rows))
    named: set[str] = set()
    return Figure(
        name="gauges",
        title=run.name,
        x_label="Time (s)",
        panels=tuple(_panel(source, axes, found, named) for axes, found in panels.items()),
        x_range=(0.0, end_of([source])),
        moments=tuple(moments([source])),
        notes=tuple(_notes(source, shown, several=any(_names(found)[1:] for found in panels.values()))),
    )


def _shown(source: Source) -> list[str]:
    flows = [flow for flow in source.flows if len(source.samples.gauges(flow))]
    if len(flows) <= MAX_LINES:
        return flows
    return list({_control(source.samples, flow): flow for flow in reversed(flows)}.values())[::-1]


def _control(samples: Samples, flow: str) -> str:
    names = samples.streams(flow)["cc"].drop_nulls()
    return str(names[0]) if len(names) else ""


def _published(samples: Samples, flow: str) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Name, unit and rows of each figure, in the order of their first values."""
    parts = samples.gauges(flow).partition_by("name", "unit", as_dict=True, maintain_order=True)
    for (name, unit), rows in parts.items():
        yield str(name), str(unit), rows


def _names(found: list[tuple[str, str, pl.DataFrame]]) -> list[str]:
    return list(dict.fromkeys(name for _, name, _ in found))


def _panel(source: Source, axes: _Axes, found: list[tuple[str, str, pl.DataFrame]], named: set[str]) -> Panel:
    names = _names(found)
    dashes = {name: DASHES[at % len(DASHES)] for at, name in enumerate(names)}
    drawn = [f"{name}, {_WORDS[dashes[name]]}" for name in names] if len(names) > 1 else names
    lines: list[Line] = []
    for flow, name, rows in found:
        style = Style(source.styles[flow].color, dashes[name])
        # A flow's first line stands for it in the legend, which names flows only.
        what = name if flow in named else ""
        named.add(flow)
        lines.append(line_of(source, flow, source.samples.gauge(rows), 1.0, style=style, what=what))
    return Panel("\n".join([axes.control, *drawn]), axes.unit, tuple(lines), height=0.8)


def _notes(source: Source, shown: list[str], *, several: bool) -> Iterator[str]:
    yield (
        "Gauges that each control publishes, at each sample of its socket; `tcplab cc list -v` explains "
        "them. Where a line has a gap, the control had no value."
    )
    if several:
        yield "In a panel of several gauges, color stands for the flow and line style for the gauge."
    if any(len(source.samples.streams(flow)) > 1 for flow in shown):
        yield "Of a flow of several streams it is the first one's."
    left = sum(1 for flow in source.flows if len(source.samples.gauges(flow))) - len(shown)
    if left:
        yield f"Of each control one flow is shown; those of {left} more are in the table `gauges`."
