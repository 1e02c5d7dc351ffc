"""A map over two axes: which change from the baseline gains most in each field, and how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tcplab.analysis.statistics import holm
from tcplab.figures.model import Heatmap
from tcplab.study.definition import Plot
from tcplab.study.metrics import METRICS
from tcplab.study.queue_figure import of_all
from tcplab.study.summary import CellSummary

# A smaller gain is not worth a change.
_PAYS = 1.1
_SIGNIFICANT = 0.05


def best_by_field(
    plot: Plot,
    rows: Sequence[CellSummary],
    baseline: Mapping[str, object],
    name: str,
    titles: Sequence[str],
) -> Heatmap | None:
    """The cell with the greatest gain over its baseline in each field; None without axes or changes.

    `titles` are the labels of the two axes.

    A cell is called by its values of the axes that the baseline fixes. A gain below 10 %, or one that chance
    explains (Welch's p of 0.05 or more, by Holm's method over the field's cells), leaves the baseline's name
    in the field.
    """
    known = [row for row in rows if row.figures[plot.metric].known]
    if plot.over is None or plot.by is None or not any(row.changes for row in known):
        return None
    columns = list(dict.fromkeys(row.cell.labels.get(plot.over, "unchanged") for row in known))
    lines = list(dict.fromkeys(row.cell.labels.get(plot.by, "unchanged") for row in known))
    over, by = titles
    plain = ", ".join(str(label) for label in baseline.values()) or "baseline"
    gains = np.full((len(lines), len(columns)), math.nan)
    names = [[plain] * len(columns) for _ in lines]
    fields: dict[tuple[int, int], list[CellSummary]] = {}
    for row in known:
        line = lines.index(row.cell.labels.get(plot.by, "unchanged"))
        column = columns.index(row.cell.labels.get(plot.over, "unchanged"))
        fields.setdefault((line, column), []).append(row)
    for (line, column), found in fields.items():
        of_found = _gains(found, plot.metric)
        best = int(np.argmax(of_found))
        gains[line, column] = of_found[best]
        if of_found[best] > 1:
            names[line][column] = ", ".join(found[best].cell.labels[axis] for axis in baseline)
    metric = METRICS[plot.metric]
    return Heatmap(
        name=name,
        title=f"Greatest gain in {plot.metric.replace('_', ' ')} over {plain}{of_all(plot.where)}",
        x_label=over,
        y_label=by,
        z_label="Gain (factor)",
        columns=tuple(columns),
        rows=tuple(lines),
        values=gains,
        texts=tuple(
            tuple(
                "" if math.isnan(gain) else f"{label} {gain:.1f}x" if gain > 1 else label
                for gain, label in zip(gain_line, name_line, strict=True)
            )
            for gain_line, name_line in zip(gains, names, strict=True)
        ),
        notes=(
            f"{metric.doc.capitalize()}. {plain}: nothing gains 10 % or more beyond chance"
            " (p < 0.05 by Welch's t-test, Holm-corrected in each field).",
        ),
    )


def _gains(rows: Sequence[CellSummary], metric: str) -> list[float]:
    """Over the baseline; 1 for a baseline itself, and for what is not surely better by a tenth."""
    changes = [row.changes.get(metric) for row in rows]
    sure = holm([math.nan if change is None else change.p_alone for change in changes])
    return [
        1.0
        if change is None or p >= _SIGNIFICANT or not change.percent >= 100 * (_PAYS - 1)
        else 1 + change.percent / 100
        for change, p in zip(changes, sure, strict=True)
    ]
