"""Jain's index over time, of each cell whose flows share a bottleneck."""

from __future__ import annotations

import numpy as np

from tcplab.analysis.samples import Samples, Unit
from tcplab.analysis.statistics import jain_over_time
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Chart, Trace
from tcplab.figures.palette import style
from tcplab.plan.kinds import kind_of
from tcplab.results import ResultsError, load
from tcplab.study.store import Store
from tcplab.study.summary import CellSummary

_MAX_LINES = 10


def over_time(rows: list[CellSummary], store: Store, name: str) -> Chart | None:
    """Jain's index of all sources over the second before, first repetition; None: nobody shares."""
    traces: list[Trace] = []
    left_out = 0
    for row in rows:
        found = _series(row, store)
        if found is None:
            continue
        if len(traces) == _MAX_LINES:
            left_out += 1
            continue
        x, y = decimate(*found)
        traces.append(Trace(row.cell.title, x, y, style(len(traces)), markers=False))
    if not traces:
        return None
    more = (f"{left_out} more cells are not drawn.",) if left_out else ()
    return Chart(
        kind="curve",
        name=name,
        title="Fairness over time",
        x_label="Time (s)",
        y_label="Jain's index",
        traces=tuple(traces),
        notes=("Of all sources that were active, each stream one; first repetition; 1 is equal.", *more),
    )


def _series(row: CellSummary, store: Store) -> tuple[np.ndarray, np.ndarray] | None:
    try:
        run = load(store.cell_dir(row.cell))
    except ResultsError:
        return None
    samples = Samples.of(run, run.repetitions[0])
    units: list[Unit] = [
        (flow, number)
        for flow in samples.flow_names
        if kind_of(samples.plan_flow(flow)).bulk
        for number in samples.stream_numbers(flow)
    ]
    if len(units) < 2:
        return None
    times, rates = samples.recent_goodput(units)
    index = jain_over_time(rates)
    return (times / 1e9, index) if np.isfinite(index).any() else None
