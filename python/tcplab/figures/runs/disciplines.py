"""What queue disciplines show of themselves: a panel for each unit, and how long their classes wait."""

from __future__ import annotations

from collections.abc import Iterator

from tcplab.analysis.samples import Samples, Series
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Figure, Line, Panel
from tcplab.figures.palette import style
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import end_of, moments
from tcplab.plan.describe import queue_words
from tcplab.plan.paths import Hop, settings
from tcplab.results.run import Run

_FEW = 8
_TITLES = {"": "State", "ms": "Delay", "packets": "Drops so far"}


def disciplines(run: Run, repetition: int | None = None) -> Figure:
    """State of queue disciplines and wait in their classes, over time; without panels where there is none.

    One repetition is shown, the first unless another is given, of the link directions in which something
    waited. Of disciplines with more than 8 classes these are left out.
    """
    samples = Samples(run, run.repetitions[0] if repetition is None else repetition)
    source = Source(samples, flow_styles(samples.flow_names))
    hops = [hop for hop in samples.hops() if samples.queue(hop).value.any()]
    panels = [panel for hop in hops for panel in _panels(samples, hop, several=len(hops) > 1)]
    kinds = [f"{_name(hop)}: {queue_words(settings(samples.plan, hop))}" for hop in hops]
    return Figure(
        name="disciplines",
        title=run.name,
        x_label="Time (s)",
        panels=tuple(panels),
        x_range=(0.0, end_of([source])),
        moments=tuple(moments([source])),
        notes=(f"What each queue discipline shows of itself: {'; '.join(kinds)}.",),
    )


def _panels(samples: Samples, hop: Hop, *, several: bool) -> Iterator[Panel]:
    where = f"{_name(hop)}\n" if several else ""
    for unit, figures in samples.queue_gauges(hop).items():
        lines = _lines(figures)
        yield Panel(f"{where}{_TITLES.get(unit, 'State')}", unit, lines, height=0.8)
    classes = samples.class_delays(hop)
    if 0 < len(classes) <= _FEW:
        yield Panel(f"{where}Delay by class", "ms", _lines(classes, divisor=1e6), height=0.8)


def _name(hop: Hop) -> str:
    return f"{hop.link} {hop.direction}"


def _lines(figures: dict[str, Series], divisor: float = 1.0) -> tuple[Line, ...]:
    lines = []
    for number, (name, series) in enumerate(figures.items()):
        x, y = decimate(series.time / 1e9, series.value / divisor)
        lines.append(Line(name, x, y, style(number)))
    return tuple(lines)
