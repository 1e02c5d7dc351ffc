"""A study's figures: every cell with intervals and reliability, and how it differs from the baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.analysis.estimate import Estimate, estimate
from tcplab.analysis.starvation import verdict
from tcplab.analysis.statistics import DETERMINISTIC, holm, outliers, welch
from tcplab.plan.kinds import traffic_kinds
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import (
    NONE,
    Scale,
    index_scale,
    percent_scale,
    plural,
    rate_scale,
    rate_text,
    seconds_scale,
    size_scale,
    time_scale,
)
from tcplab.study.grid import Cell, baseline_of
from tcplab.study.load import Study
from tcplab.study.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Group

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """How a cell differs from the baseline in one metric."""

    percent: float
    """Of the baseline's mean; NaN where that is zero."""
    low: float
    high: float
    """Interval of it; NaN where repetitions are too few."""
    p: float
    """Welch's, corrected by Holm's method over the cells; NaN: cannot be judged."""
    effect: float
    """Hedges' g; NaN: cannot be judged."""
    p_alone: float
    """Welch's, not corrected: for a figure that corrects it over fewer cells."""
    test: str
    """`deterministic`: one of the two gave the same value in every repetition, so there is no test."""


@dataclass(frozen=True)
class CellSummary:
    """One cell's figures over its repetitions."""

    cell: Cell
    figures: Mapping[str, Estimate]
    """By metric, of all flows together, or of the flow asked for."""
    changes: Mapping[str, Change]
    """By metric; empty for a baseline itself, or without one."""
    baseline: bool
    """Whether others are compared with it."""
    limited_by: str | None
    """Its limit in most of its runs; None: not known, or several flows."""
    failed: tuple[str, ...]
    """Reasons of the runs that failed."""
    overloaded: int
    """Runs in which the machine, not TCP, may have limited the result."""


@dataclass(frozen=True)
class StudySummary:
    """Every cell of a study."""

    name: str
    flow: str | None
    """The flow it is of; None: all flows together."""
    axes: tuple[str, ...]
    level: float
    cells: tuple[CellSummary, ...]
    notes: tuple[str, ...]

    def grid(self) -> Grid:
        """The table as text cells."""
        return _grid(self)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Table and notes as plain text."""
        return "\n\n".join([self.grid().to_text(), "\n".join(self.notes)]).rstrip() + "\n"

    def to_rich(self) -> Group:
        """Table and notes for a rich console."""
        from rich.console import Group
        from rich.text import Text

        return Group(self.grid().to_rich(), *[Text(note, style="dim") for note in self.notes])

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data in base units."""
        return [
            {
                "cell": row.cell.id,
                "labels": row.cell.labels,
                "group": row.cell.group,
                "engine": row.cell.engine,
                "failed": list(row.failed),
                "overloaded": row.overloaded,
                **{name: figure.to_json() for name, figure in row.figures.items() if figure.known},
                "changes": {name: vars(change) for name, change in row.changes.items()},
            }
            for row in self.cells
        ]


def summary(
    study: Study,
    cells: Sequence[Cell],
    results: pl.DataFrame,
    *,
    flow: str | None = None,
    level: float = 0.95,
) -> StudySummary:
    """Summarise a study's data set: of all flows together, or of one flow."""
    of_flow = pl.col("flow").is_null() if flow is None else pl.col("flow") == flow
    done = results.filter((pl.col("status") == "done") & of_flow)
    failed = results.filter(pl.col("status") == "failed")
    rows_of = done.sort("repetition").partition_by("cell", as_dict=True)
    values = {cell.id: _values(rows_of.get((cell.id,), done.clear())) for cell in cells}
    bases = {cell.id: baseline_of(cell, cells, study.file.baseline) for cell in cells}
    compared = {name: _changes(values, bases, name, level) for name in METRICS}
    done_by_flow = results.filter(pl.col("limited_by").is_not_null())
    if flow is not None:
        done_by_flow = done_by_flow.filter(pl.col("flow") == flow)
    rows = []
    for cell in cells:
        one = rows_of.get((cell.id,), done.clear())
        reasons = failed.filter(pl.col("cell") == cell.id)["message"].drop_nulls().unique(maintain_order=True)
        rows.append(
            CellSummary(
                cell,
                {name: estimate(list(found), level) for name, found in values[cell.id].items()},
                {name: found[cell.id] for name, found in compared.items() if cell.id in found},
                any(base is cell for name, base in bases.items() if name != cell.id),
                _limit(done_by_flow, cell),
                tuple(reasons),
                len(one["overload"].drop_nulls()),
            )
        )
    return StudySummary(
        study.name,
        flow,
        tuple(axis.name for axis in study.axes),
        level,
        tuple(rows),
        tuple(_notes(study, rows, level)),
    )


def _limit(rows: pl.DataFrame, cell: Cell) -> str | None:
    """The commonest limit, where the cell has one flow that has a limit."""
    own = rows.filter(pl.col("cell") == cell.id)
    if own["flow"].n_unique() != 1:
        return None
    return str(own["limited_by"].mode().sort()[0])


def flows_of(results: pl.DataFrame, *, pings: bool = False) -> list[str]:
    """The flows that carry payload, or the pings, in the order of their first rows.

    Empty when no run has more than one flow that does: its figures are those of all.
    """
    rows = results.filter(pl.col("flow").is_not_null())
    timing = [kind.name for kind in traffic_kinds() if not kind.moves_payload]
    rows = rows.filter(pl.col("kind").is_in(timing) == pings)
    names: list[str] = rows["flow"].unique(maintain_order=True).to_list()
    return names if pings or len(names) > 1 or results["kind"].is_in(timing).any() else []


def _values(rows: pl.DataFrame) -> dict[str, Array]:
    """The known values of each metric, in the order of the rows."""
    columns = rows.select(*METRICS).cast(pl.Float64).to_numpy().T
    return {name: column[~np.isnan(column)] for name, column in zip(METRICS, columns, strict=True)}


def _changes(
    values: Mapping[str, Mapping[str, Array]], bases: Mapping[str, Cell | None], metric: str, level: float
) -> dict[str, Change]:
    pairs = [
        (name, values[base.id][metric], values[name][metric])
        for name, base in bases.items()
        if base is not None and base.id != name
    ]
    pairs = [(name, reference, own) for name, reference, own in pairs if len(reference) and len(own)]
    found = [welch(reference, own, level) for _, reference, own in pairs]
    corrected = holm([comparison.p for comparison in found])

    def percent(amount: float, reference: Array) -> float:
        # Of its magnitude: more than a negative mean is a gain.
        mean = abs(float(reference.mean()))
        return amount / mean * 100 if mean else math.nan

    return {
        name: Change(
            percent(comparison.difference.value, reference),
            percent(comparison.difference.low, reference),
            percent(comparison.difference.high, reference),
            p,
            comparison.effect,
            comparison.p,
            comparison.test,
        )
        for (name, reference, _), comparison, p in zip(pairs, found, corrected, strict=True)
    }


_Scaler = Callable[[Iterable[float]], Scale]
# Metric, label, scale, whether its interval is shown, what a narrow terminal can do without (highest first).
_COLUMNS: tuple[tuple[str, str, _Scaler, bool, int], ...] = (
    ("goodput", "Goodput", rate_scale, True, 0),
    ("retransmission_rate", "Retransmitted", percent_scale, False, 3),
    ("loss_rate", "Lost", percent_scale, False, 4),
    ("rtt_mean", "RTT mean", time_scale, True, 1),
    ("rtt_p95", "RTT p95", time_scale, False, 6),
    ("effective_window", "Window", size_scale, False, 8),
    ("share", "Fair share", percent_scale, False, 4),
    ("starvation", "Starved", seconds_scale, False, 4),
    ("starvation_began", "from", seconds_scale, False, 8),
    ("starvation_ended", "to", seconds_scale, False, 8),
    ("jain", "Jain", index_scale, False, 5),
    ("cpu_sender", "CPU sender", index_scale, False, 9),
    ("cpu_receiver", "CPU receiver", index_scale, False, 9),
)


def _grid(table: StudySummary) -> Grid:
    rows = table.cells
    axes = [axis for axis in table.axes if any(axis in row.cell.labels for row in rows)]
    groups = any(row.cell.group for row in rows)
    engines = any("engine" in row.cell.labels for row in rows)
    columns = [column for column in _COLUMNS if _tells(table, column[0])]
    scales = {
        name: scaler([row.figures[name].value for row in rows if row.figures[name].known])
        for name, _, scaler, _, _ in columns
    }
    compared = any("goodput" in row.changes for row in rows)
    headings = [*([Heading("Group", numeric=False, minor=7)] if groups else [])]
    headings += [Heading(axis, numeric=False) for axis in axes]
    headings += [Heading("Engine", numeric=False)] if engines else []
    for name, label, _, _, minor in columns:
        headings.append(Heading(label, scales[name].unit, minor=minor))
        if name == "goodput" and compared:
            headings.append(Heading("Change", "%", minor=2, about="Of the baseline's mean; * p < 0.05"))
    if any(row.limited_by for row in rows):
        headings.append(Heading("Limited by", numeric=False, minor=3))
    if _fares(table):
        headings.append(Heading("Verdict", numeric=False, about="fair: 80 to 125 % of the fair share"))
    headings += [Heading("n", minor=10), Heading("Grade", numeric=False, minor=2)]
    if table.flow is not None:
        rows = tuple(row for row in rows if any(figure.known for figure in row.figures.values()))
    return Grid(
        f"{table.name}: flow {table.flow}, steady state"
        if table.flow
        else f"{table.name}: every cell, steady state",
        tuple(headings),
        tuple(_cells(table, row, groups, axes, engines, columns, scales, compared) for row in rows),
    )


def _cells(
    table: StudySummary,
    row: CellSummary,
    groups: bool,
    axes: list[str],
    engines: bool,
    columns: Sequence[tuple[str, str, _Scaler, bool, int]],
    scales: Mapping[str, Scale],
    compared: bool,
) -> tuple[str, ...]:
    texts = [row.cell.group] if groups else []
    texts += [row.cell.labels.get(axis, NONE) for axis in axes]
    texts += [row.cell.engine] if engines else []
    for name, _, _, interval, _ in columns:
        figure = row.figures[name]
        texts.append(
            scales[name].measured(figure.value, figure.interval.half_width)
            if interval
            else scales[name].number(figure.value)
        )
        if name == "goodput" and compared:
            texts.append(_change_text(table, row))
    if any(other.limited_by for other in table.cells):
        texts.append(row.limited_by or NONE)
    if _fares(table):
        texts.append(_verdict(row))
    goodput = row.figures["goodput"] if row.figures["goodput"].known else row.figures["rtt_mean"]
    grade = "failed" if row.failed and not goodput.known else goodput.grade
    return (*texts, str(goodput.n), grade)


def _tells(table: StudySummary, metric: str) -> bool:
    """Whether a column holds anything: starvation of nobody at no time is left out."""
    figures = [row.figures[metric] for row in table.cells if row.figures[metric].known]
    return bool(figures) and (metric != "starvation" or any(figure.value > 0 for figure in figures))


def _fares(table: StudySummary) -> bool:
    return any(row.figures["share"].known for row in table.cells)


def _verdict(row: CellSummary) -> str:
    share, starved = row.figures["share"], row.figures["starvation"]
    if not share.known:
        return NONE
    return verdict(share.value, starved.value, row.figures["completion_time"].value)


def _change_text(table: StudySummary, row: CellSummary) -> str:
    change = row.changes.get("goodput")
    if change is None or math.isnan(change.percent):
        return "baseline" if row.baseline else NONE
    return f"{change.percent:+.1f}{'*' if change.p < 0.05 else ''}"


def _notes(study: Study, rows: Sequence[CellSummary], level: float) -> Iterable[str]:
    percent = f"{level * 100:g} %"
    if study.quick:
        yield "Quick: shorter and fewer runs. The figures are a first look, not results."
    if study.left_out:
        names = "; ".join(cell.title for cell in study.left_out[:5])
        more = f" and {len(study.left_out) - 5} more" if len(study.left_out) > 5 else ""
        yield f"Left out: {names}{more}. They set the path, and real hosts have their own."
    if study.repeat > 1:
        yield f"± is the {percent} interval of the mean over {study.repeat} repetitions (Student's t)."
    if any(row.figures["goodput"].interval.method == DETERMINISTIC for row in rows):
        yield "deterministic: every repetition gave the same goodput; no interval, no grade, no test."
    if any(row.baseline for row in rows) and not any(row.changes for row in rows):
        yield "No run of the baseline was completed: nothing is compared with it."
    elif any(row.changes for row in rows):
        yield "Change: of the baseline's mean goodput; * where p < 0.05 by Welch's t-test, Holm-corrected."
    failed = [row for row in rows if row.failed]
    for row in failed[:5]:
        yield f"Failed: {row.cell.title}: {row.failed[0]}"
    if len(failed) > 5:
        yield f"Failed: {len(failed) - 5} more cells."
    for row in rows:
        figure = row.figures["goodput"]
        for position in outliers(figure.values):
            value = rate_text(float(f"{figure.values[position]:.4g}"))
            yield f"Outlier, kept: {row.cell.title}, {value} where the median is " + rate_text(
                float(f"{np.median(figure.values):.4g}")
            )
    overloaded = sum(row.overloaded for row in rows)
    if overloaded:
        yield f"Overloaded: {plural(overloaded, 'run')}. The machine, not TCP, may have limited the results."
