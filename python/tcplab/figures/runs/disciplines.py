"""Gauges of queue disciplines: a panel for each unit, and the sojourn time of their classes."""

from __future__ import annotations

from tcplab.analysis.samples import Samples, Series
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Figure, Line, Panel
from tcplab.figures.palette import Style, style
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import end_of, moments
from tcplab.plan.describe import describe_direction
from tcplab.plan.paths import Hop, settings
from tcplab.results.run import Run

_FEW = 8
_DROPS = ("early_drop", "overlimit")


def disciplines(run: Run, repetition: int | None = None) -> Figure:
    """State of queue disciplines and wait in their classes, over time; without panels where there is none.

    One repetition is shown, the first unless another is given, of the link directions in which something
    waited. Of disciplines with more than 8 classes these are left out.
    """
    samples = Samples.of(run, run.repetitions[0] if repetition is None else repetition)
    source = Source(samples, flow_styles(samples.flow_names))
    found = {hop: _series(samples, hop) for hop in samples.hops() if samples.queue(hop).value.any()}
    found = {hop: series for hop, series in found.items() if series}
    panels: list[Panel] = []
    styles: dict[str, Style] = {}
    for hop, series in found.items():
        where = f"{hop.label}\n" if len(found) > 1 else ""
        for title, unit, figures in series:
            for name in figures:
                styles.setdefault(name, style(len(styles)))
            panels.append(Panel(f"{where}{title}", unit, _lines(figures, styles), height=0.8))
    kinds = [f"{hop.label}: {describe_direction(settings(samples.plan, hop)).queue}" for hop in found]
    return Figure(
        name="disciplines",
        title=run.name,
        x_label="Time (s)",
        panels=tuple(panels),
        x_range=(0.0, end_of([source])),
        moments=tuple(moments([source])),
        notes=(f"Gauges of each queue discipline: {'; '.join(kinds)}.",) if kinds else (),
    )


def _series(samples: Samples, hop: Hop) -> list[tuple[str, str, dict[str, Series]]]:
    """Title, unit and figures of each panel. Classes' delays are one where no gauge is a time."""
    gauges = samples.queue_gauges(hop)
    panels = []
    for unit, figures in gauges.items():
        drops = {name: series for name, series in figures.items() if name in _DROPS}
        # RED's average and retransmissions on a medium are in packets, too.
        others = {name: series for name, series in figures.items() if name not in _DROPS}
        for title, found in (("Time" if unit == "ms" else "State", others), ("Drops so far", drops)):
            if found:
                panels.append((title, unit, found))
    classes = {} if "ms" in gauges else samples.class_delays(hop)
    if 0 < len(classes) <= _FEW:
        delays = {name: Series(delay.time, delay.value / 1e6) for name, delay in classes.items()}
        panels.append(("Delay by class", "ms", delays))
    return panels


def _lines(figures: dict[str, Series], styles: dict[str, Style]) -> tuple[Line, ...]:
    lines = []
    for name, series in figures.items():
        x, y = decimate(series.time / 1e9, series.value)
        lines.append(Line(name, x, y, styles[name]))
    return tuple(lines)
