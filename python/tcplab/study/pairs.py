"""Pairs of cells that differ in one axis alone, compared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tcplab.analysis.statistics import DETERMINISTIC, Comparison, holm, welch
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import NONE
from tcplab.study.grid import Cell
from tcplab.study.metrics import METRICS
from tcplab.study.scale import metric_scale
from tcplab.study.summary import StudySummary


@dataclass(frozen=True)
class Pair:
    """Two cells and how the second differs from the first."""

    axis: str
    """The axis in which they differ."""
    a: Cell
    b: Cell
    means: tuple[float, float]
    test: Comparison
    p: float
    """Holm's correction over all pairs; NaN: cannot be judged."""


def pairs(summary: StudySummary, metric: str = "goodput") -> list[Pair]:
    """Every pair of cells that differ in one axis alone, compared in a metric by Welch's t-test."""
    found = list(_pairs(summary, metric))
    corrected = holm([pair.test.p for pair in found])
    return [replace(pair, p=p) for pair, p in zip(found, corrected, strict=True)]


def _pairs(summary: StudySummary, metric: str) -> Iterator[Pair]:
    known = [row for row in summary.cells if row.figures[metric].known]
    for one, other in itertools.combinations(known, 2):
        a, b = one.cell.labels, other.cell.labels
        differing = [axis for axis in {**a, **b} if a.get(axis) != b.get(axis)]
        if len(differing) == 1:
            test = welch(one.figures[metric].values, other.figures[metric].values, summary.level)
            means = one.figures[metric].value, other.figures[metric].value
            yield Pair(differing[0], one.cell, other.cell, means, test, math.nan)


def pair_grid(found: list[Pair], metric: str = "goodput") -> Grid:
    """The pairs as a table."""
    known = METRICS[metric]
    scale = metric_scale(known.unit, known.share, [value for pair in found for value in pair.means])
    rows = []
    for pair in found:
        a, b = (cell.labels.get(pair.axis, "unchanged") for cell in (pair.a, pair.b))
        rest = ", ".join(label for axis, label in pair.a.labels.items() if axis != pair.axis) or NONE
        before, after = pair.means
        change = (after - before) / abs(before) * 100 if before else math.nan
        rows.append(
            (
                pair.axis,
                a,
                b,
                rest,
                scale.number(pair.means[0]),
                scale.number(pair.means[1]),
                NONE if math.isnan(change) else f"{change:+.1f}",
                _effect(pair.test.effect),
                _p(pair),
            )
        )
    return Grid(
        f"{metric} of every two cells that differ in one axis",
        (
            Heading("Axis", numeric=False),
            Heading("a", numeric=False),
            Heading("b", numeric=False),
            Heading("The rest", numeric=False),
            Heading("Of a", scale.unit),
            Heading("Of b", scale.unit),
            Heading("Change", "%"),
            Heading("Effect", "Hedges' g"),
            Heading("p", "Holm"),
        ),
        tuple(rows),
    )


def _p(pair: Pair) -> str:
    if pair.test.test == DETERMINISTIC:
        return DETERMINISTIC
    return NONE if math.isnan(pair.p) else "< 0.001" if pair.p < 0.001 else f"{pair.p:.3f}"


def _effect(value: float) -> str:
    if math.isnan(value):
        return NONE
    return f"{value:+.2f}" if abs(value) <= 100 else ("> +100" if value > 0 else "< -100")
