"""The bottleneck's queue over time, by cell: its delay, or a figure that its discipline shows of itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tcplab.analysis.samples import Samples, Series
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Chart, Trace
from tcplab.figures.palette import style
from tcplab.plan.paths import Hop
from tcplab.results import ResultsError, load
from tcplab.study.store import Store
from tcplab.study.summary import CellSummary

DELAY = "queueing_delay"


def queue_over_time(
    rows: list[CellSummary],
    store: Store,
    metric: str,
    name: str,
    *,
    fixed: Mapping[str, object] = MappingProxyType({}),
) -> Chart | None:
    """The first repetition's queue in each cell; None: no cell's discipline shows the figure.

    `metric` is `queueing_delay` (ms) or the name of a gauge. A line's colour is its cell's, whichever figure.
    The axes that are `fixed` for all of them stand in the title, not beside each line.
    """
    traces: list[Trace] = []
    units: dict[str, None] = {}
    for number, row in enumerate(rows):
        found = _series(row, store, metric)
        if found is None:
            continue
        unit, series = found
        units[unit] = None
        x, y = decimate(series.time / 1e9, series.value)
        key = row.cell.titled_without(fixed) if fixed else row.cell.title
        traces.append(Trace(key, x, y, style(number), markers=False))
    if not traces:
        return None
    words = metric.replace("_", " ")
    # A gauge keeps its name.
    label = "Queueing delay" if metric == DELAY else words
    unit = ", ".join(unit for unit in units if unit)
    return Chart(
        kind="curve",
        name=name,
        title=f"The bottleneck's queue: {words} over time{of_all(fixed)}",
        x_label="Time (s)",
        y_label=f"{label} ({unit})" if unit else label,
        traces=tuple(traces),
        notes=("First repetition.",),
    )


def of_all(fixed: Mapping[str, object]) -> str:
    """The axes whose values are the same for all that a figure shows, for its title."""
    return "".join(f", {axis} {label}" for axis, label in fixed.items() if label != "")


def _series(row: CellSummary, store: Store, metric: str) -> tuple[str, Series] | None:
    try:
        run = load(store.cell_dir(row.cell))
    except ResultsError:
        return None
    samples = Samples.of(run, run.repetitions[0])
    hop = next((hop for flow in samples.flow_names if (hop := samples.bottleneck(flow))), None)
    return None if hop is None else _of_hop(samples, hop, metric)


def _of_hop(samples: Samples, hop: Hop, metric: str) -> tuple[str, Series] | None:
    if metric == DELAY:
        delay = samples.head_delay(hop)
        return ("ms", Series(delay.time, delay.value / 1e6)) if len(delay) else None
    return next(
        ((unit, found[metric]) for unit, found in samples.queue_gauges(hop).items() if metric in found), None
    )
