"""Judging expectations: does a statement hold, with what the repetitions leave uncertain."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.analysis.statistics.intervals import deterministic, t_quantile
from tcplab.study.expect import Figure, Statement, evaluate, figures
from tcplab.study.grid import Cell, Labels, baseline_of

Array = NDArray[np.float64]
# More repetitions than this are not worth proposing: the two sides do not differ.
_MAX = 1000


class Verdict(StrEnum):
    """The verdict of the results on a statement."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Case:
    """A statement for one combination of the axes it leaves free."""

    free: Labels
    """Those axes and their values."""
    verdict: Verdict
    left: float
    right: float
    """The two sides, in base units."""
    low: float
    high: float
    """Confidence interval of left minus right; NaN for a single repetition, and for deterministic values."""
    repetitions: int | None = None
    """Of an undecided one: about how many repetitions would decide it; None: nobody can say."""
    reason: str = ""
    """Why nothing could be said."""


@dataclass(frozen=True)
class Judgement:
    """A statement, judged for each case."""

    statement: Statement
    cases: tuple[Case, ...]

    @property
    def verdict(self) -> Verdict:
        """Fails if any case does; undecided if any is, or if there is none; else it holds."""
        found = {case.verdict for case in self.cases}
        if Verdict.FAILS in found:
            return Verdict.FAILS
        return Verdict.HOLDS if found == {Verdict.HOLDS} else Verdict.UNDECIDED


def judge(
    statement: Statement,
    cells: Sequence[Cell],
    results: pl.DataFrame,
    *,
    baseline: Mapping[str, str],
    level: float = 0.95,
    left_out: Mapping[str, Collection[str]] | None = None,
) -> Judgement:
    """Judge a statement by a study's data set (`tcplab.study.store.dataset`).

    A side of several figures has the standard error that their means give it to first order (the delta
    method). The interval is Student's with the Welch-Satterthwaite degrees of freedom, one-sided at `level`.
    `equivalent` is decided by two one-sided tests (Schuirmann 1987). Where every value is deterministic, the
    difference itself decides, without an interval; a single repetition decides nothing. `left_out` has the
    values that `--quick` leaves out of each axis.
    """
    every = list(dict.fromkeys([*figures(statement.left), *figures(statement.right)]))
    matching = {figure: _matching(figure, cells, baseline) for figure in every}
    missing = [figure for figure, found in matching.items() if not found]
    if missing:
        skipped = [
            f"{axis}={label}" for axis, label in missing[0].where if label in (left_out or {}).get(axis, ())
        ]
        absent = f"--quick leaves out {' and '.join(skipped)}"
        reason = absent if skipped else f"no cell matches {missing[0]}"
        return Judgement(statement, (_unknown({}, reason),))
    # A figure of one cell only stands beside every case of the others.
    several = [figure for figure in every if len(matching[figure]) > 1]
    free = dict.fromkeys(key for figure in several for key in matching[figure]) or {(): None}
    found = []
    for key in free:
        chosen: dict[Figure, Cell] = {}
        for figure in every:
            options = matching[figure]
            # A cell's baseline has the cell's values of the axes that the baseline does not fix.
            own = tuple(item for item in key if item[0] not in baseline) if figure.baseline else key
            cell = options.get(own) if figure in several else next(iter(options.values()))
            if cell is not None:
                chosen[figure] = cell
        if len(chosen) == len(every):
            found.append(_case(statement, dict(key), chosen, results, level))
    return Judgement(
        statement, tuple(found or [_unknown({}, "no combination of values has all its figures")])
    )


_Free = tuple[tuple[str, str], ...]
"""Axes that a figure leaves free, with their values."""


def _matching(figure: Figure, cells: Sequence[Cell], baseline: Mapping[str, str]) -> dict[_Free, Cell]:
    found: dict[_Free, Cell] = {}
    for cell in cells:
        labels = {**cell.labels, "engine": cell.engine, "group": cell.group}
        if any(labels.get(axis) != label for axis, label in figure.where):
            continue
        rest = {axis: label for axis, label in cell.labels.items() if axis not in dict(figure.where)}
        if figure.baseline:
            base = baseline_of(cell, cells, baseline)
            if base is None or base != cell:
                continue
            rest = {axis: label for axis, label in rest.items() if axis not in baseline}
        found.setdefault(tuple(sorted(rest.items())), cell)
    return found


def _case(
    statement: Statement, free: Labels, chosen: Mapping[Figure, Cell], results: pl.DataFrame, level: float
) -> Case:
    values = {figure: _values(figure, cell, results) for figure, cell in chosen.items()}
    empty = next((figure for figure, found in values.items() if not len(found)), None)
    if empty is not None:
        return _unknown(free, f"{empty} of {chosen[empty].title} was not measured")
    means = {figure: float(found.mean()) for figure, found in values.items()}
    left, right = evaluate(statement.left, means), evaluate(statement.right, means)
    if not (math.isfinite(left) and math.isfinite(right)):
        return _unknown(free, "a side is not finite")
    single = min(len(found) for found in values.values()) < 2
    error, df = _error(statement, values, means)
    half = t_quantile(2 * level - 1, df) * error if error > 0 else 0.0
    if single:
        half = math.nan
    difference = left - right
    low, high = difference - half, difference + half
    verdict, gap = _decide(statement, right, difference, low, high, half)
    needed = None
    if verdict is Verdict.UNDECIDED and not single and gap > 0:
        n = min(len(found) for found in values.values())
        needed = math.ceil(n * (half / gap) ** 2) + 1
        needed = needed if needed <= _MAX else None
    reason = "one repetition does not show the spread: at least 3 are needed" if single else ""
    if all(deterministic(found) for found in values.values()):
        low = high = math.nan
    return Case(free, verdict, left, right, low, high, 3 if single else needed, reason)


def _decide(
    statement: Statement, right: float, difference: float, low: float, high: float, half: float
) -> tuple[Verdict, float]:
    """The verdict, and how far the difference is from the nearest bound that would change it."""
    if statement.comparison == "equivalent":
        assert statement.margin is not None
        margin = statement.margin.value
        if statement.margin.unit == "%":
            margin *= abs(right)
        gap = abs(margin - abs(difference))
        if math.isnan(half):
            return Verdict.UNDECIDED, gap
        if low >= -margin and high <= margin:
            return Verdict.HOLDS, gap
        return (Verdict.FAILS if low > margin or high < -margin else Verdict.UNDECIDED), gap
    sign = 1 if statement.comparison.startswith(">") else -1
    strict = "=" not in statement.comparison
    gap = abs(difference)
    if math.isnan(half):
        return Verdict.UNDECIDED, gap
    minimum, maximum = (low, high) if sign > 0 else (-high, -low)
    if minimum > 0 or (not strict and minimum >= 0):
        return Verdict.HOLDS, gap
    if maximum < 0 or (strict and maximum <= 0):
        return Verdict.FAILS, gap
    return Verdict.UNDECIDED, gap


def _error(
    statement: Statement, values: Mapping[Figure, Array], means: Mapping[Figure, float]
) -> tuple[float, float]:
    """Standard error of left minus right, and its degrees of freedom."""

    def difference(at: Mapping[Figure, float]) -> float:
        return evaluate(statement.left, at) - evaluate(statement.right, at)

    parts = []
    for figure, found in values.items():
        if len(found) < 2 or deterministic(found):
            continue
        step = 1e-6 * max(abs(means[figure]), float(found.std()))
        slope = difference({**means, figure: means[figure] + step})
        slope = (slope - difference({**means, figure: means[figure] - step})) / (2 * step)
        parts.append((slope**2 * float(found.var(ddof=1)) / len(found), len(found) - 1))
    variance = sum(part for part, _ in parts)
    if variance <= 0:
        return 0.0, 1.0
    return math.sqrt(variance), variance**2 / sum(part**2 / df for part, df in parts)


def _values(figure: Figure, cell: Cell, results: pl.DataFrame) -> Array:
    rows = results.filter((pl.col("cell") == cell.id) & (pl.col("status") == "done"))
    rows = rows.filter(pl.col("flow").is_null() if figure.flow is None else pl.col("flow") == figure.flow)
    return rows[figure.metric].drop_nulls().to_numpy().astype(np.float64)


def _unknown(free: Labels, reason: str) -> Case:
    return Case(free, Verdict.UNDECIDED, math.nan, math.nan, math.nan, math.nan, None, reason)
