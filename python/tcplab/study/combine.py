"""The cell that takes the best value of each axis together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcplab.study.grid import Cell, label_of
from tcplab.study.load import Study, engines_of
from tcplab.study.store import Done

# Means of this relative distance are as good as each other.
_AS_GOOD = 0.001


def best_cell(study: Study, done: Sequence[Done]) -> Cell | None:
    """The combination of each axis' best single value, by the mean of the goal over its runs.

    Only cells that vary one axis alone say which of its values is best. Means within 0.1 % are as good as
    each other. Of several such values the first in the study's file is taken, and an axis without a better
    one keeps the baseline's (or the plain scenario's). None when nothing was measured, and when no axis
    has a better value.
    """
    combine = study.file.combine
    if combine is None:
        return None
    by_id = {cell.id: cell for cell in study.cells}
    engine = engines_of(study.file)[0]
    means: dict[str, float] = {}
    for name, cell in by_id.items():
        values = [
            float(row[combine.goal])
            for one in done
            if one.cell == name
            for row in one.rows
            if row["flow"] is None and row[combine.goal] is not None
        ]
        if values and cell.engine == engine:
            means[name] = float(np.mean(values))
    if not means:
        return None
    sign = -1 if combine.minimum else 1
    plain = {axis: label_of(value) for axis, value in study.file.baseline.items() if axis != "engine"}
    base_id = study.cell(engine, plain).id
    base = means.get(base_id)
    chosen: dict[str, str] = dict(plain)
    for axis in combine.axes:
        alone = [
            (sign * means[name], cell.labels[axis])
            for name, cell in by_id.items()
            if name in means and axis in cell.labels and _only(cell, axis, plain)
        ]
        if not alone:
            continue
        best = max(mean for mean, _ in alone)
        as_good = abs(best) * _AS_GOOD
        if base is None or best - sign * base > as_good:
            chosen[axis] = next(label for mean, label in alone if best - mean <= as_good)
    if chosen == plain:
        return None
    cell = study.cell(engine, chosen)
    return (
        None if cell.id in by_id else Cell(cell.engine, cell.labels, cell.settings, "combined best", cell.id)
    )


def _only(cell: Cell, axis: str, plain: dict[str, str]) -> bool:
    """Whether the cell differs from the baseline in this axis alone."""
    ours, theirs = (
        {name: label for name, label in labels.items() if name not in (axis, "engine")}
        for labels in (cell.labels, plain)
    )
    return ours == theirs
