"""Two or more runs side by side: one set of figures, one table of differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcplab.analysis.estimate import Estimate
from tcplab.analysis.samples import Samples
from tcplab.analysis.statistics import DETERMINISTIC, holm, welch
from tcplab.analysis.statistics import Comparison as Test
from tcplab.analysis.summaries import FlowSummary
from tcplab.figures.model import Figure
from tcplab.figures.palette import COLORS, DASHES, Style, style
from tcplab.figures.runs.distributions import cdf_of
from tcplab.figures.runs.source import Source
from tcplab.figures.runs.timeseries import MAX_LINES, figure_of
from tcplab.present.echo import EchoPart, compared_part
from tcplab.present.summary_table import SummaryTable, summary
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import NONE, Scale, percent_scale, rate_scale, time_scale
from tcplab.results.run import Run

if TYPE_CHECKING:
    from rich.console import Group

_METRICS = (
    ("goodput", "Goodput", rate_scale),
    ("retransmission_rate", "Retransmitted", percent_scale),
    ("loss_rate", "Lost", percent_scale),
    ("rtt_mean", "RTT mean", time_scale),
    ("rtt_p95", "RTT p95", time_scale),
    ("queueing_delay", "Queueing", time_scale),
)


# Flows that a note names.
_MAX_NAMED = 6


@dataclass(frozen=True)
class Difference:
    """How one figure of one flow differs between the first run and another."""

    flow: str
    metric: str
    other: str
    """The other run's label."""
    a: Estimate
    b: Estimate
    test: Test
    p_adjusted: float
    """Holm's correction over all rows; NaN when it cannot be judged."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """The comparison of several runs, for the command line and the report alike."""

    title: str
    labels: tuple[str, ...]
    summaries: tuple[SummaryTable, ...]
    differences: tuple[Difference, ...]
    level: float
    timeseries: Figure
    cdf: Figure
    notes: tuple[str, ...]
    echo: EchoPart | None = None
    """The echoes of all runs that have any."""

    def grids(self) -> list[Grid]:
        """The table of differences, one per other run."""
        return [grid for label in self.labels[1:] if (grid := _grid(self, label)).rows]

    def __repr__(self) -> str:
        return f"<Comparison {self.title!r}>"

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """The tables and notes as plain text."""
        return "\n\n".join([*(grid.to_text() for grid in self.grids()), "\n".join(self.notes)]) + "\n"

    def _repr_html_(self) -> str:
        from tcplab.present.notebook import comparison_html

        return comparison_html(self.grids(), self.notes)

    def to_rich(self) -> Group:
        """The tables and notes for a rich console."""
        from rich.console import Group
        from rich.text import Text

        notes = [Text(note, style="dim") for note in self.notes]
        return Group(*(grid.to_rich() for grid in self.grids()), *notes)

    def to_json(self) -> dict[str, Any]:
        """Plain data in base units."""
        return {
            "runs": [
                {"label": label, **one.to_json()}
                for label, one in zip(self.labels, self.summaries, strict=True)
            ],
            "baseline": self.labels[0],
            "level": self.level,
            "differences": [
                {
                    "flow": row.flow,
                    "metric": row.metric,
                    "run": row.other,
                    "difference": _plain(row.test.difference.value),
                    "low": _plain(row.test.difference.low),
                    "high": _plain(row.test.difference.high),
                    "p": _plain(row.test.p),
                    "p_holm": _plain(row.p_adjusted),
                    "effect": _plain(row.test.effect),
                    "effect_name": row.test.effect_name,
                    "test": row.test.test,
                }
                for row in self.differences
            ],
            "notes": list(self.notes),
        }


def compare(runs: Sequence[Run], *, level: float = 0.95, omit: int | str | None = None) -> Comparison:
    """Compare runs with the first one, flow by flow. Raises ValueError for fewer than two."""
    if len(runs) < 2:
        raise ValueError(f"a comparison needs two runs or more, not {len(runs)}")
    labels = run_labels(runs)
    summaries = tuple(summary(run, omit=omit, level=level) for run in runs)
    differences = _differences(labels, summaries, level)
    sources = [
        _sources(run, label, index, runs) for index, (run, label) in enumerate(zip(runs, labels, strict=True))
    ]
    first = [repetitions[0] for repetitions in sources]
    figure = _figure(first)
    return Comparison(
        title=" against ".join(reversed(labels)) if len(labels) == 2 else ", ".join(labels),
        labels=tuple(labels),
        summaries=summaries,
        differences=differences,
        level=level,
        timeseries=figure,
        cdf=cdf_of(sources, "comparison", omit=omit),
        notes=tuple(_notes(labels, runs, summaries, differences, level)),
        echo=compared_part(runs, labels),
    )


def run_labels(runs: Sequence[Run]) -> list[str]:
    """A short name for each run, all different: by scenario, by engine, by both, or by directory."""
    for candidates in (
        [run.name for run in runs],
        [run.engine for run in runs],
        [f"{run.name} ({run.engine})" for run in runs],
        [run.directory for run in runs],
        [str(run.path) for run in runs],
    ):
        if len(set(candidates)) == len(runs):
            return candidates
    return [f"{run.path} #{number}" for number, run in enumerate(runs, start=1)]


def _sources(run: Run, label: str, index: int, runs: Sequence[Run]) -> list[Source]:
    """The run's repetitions: a colour per flow, a line style per run; for single flows a colour per run.

    The dashes of long runs hide in their many samples: runs have colours of their own while there are enough.
    """
    names = list(dict.fromkeys(flow["name"] for one in runs for flow in one.plan.get("flows", ())))
    first = index * len(names) if len(runs) * len(names) <= len(COLORS) else 0
    alone = all(len(one.plan.get("flows", ())) == 1 for one in runs)
    dash = "solid" if alone else DASHES[index % len(DASHES)]
    samples = [Samples.of(run, repetition) for repetition in run.repetitions]
    own = samples[0].flow_names
    styles = {
        name: style(index) if alone else Style(style(first + names.index(name)).color, dash)
        for name in own
        if name in names
    }
    labels = {name: label if alone else f"{name}, {label}" for name in own}
    shared = Style(COLORS[(-index - 1) % len(COLORS)], dash)
    return [Source(one, styles, labels, shared, f", {label}") for one in samples]


def _figure(sources: Sequence[Source]) -> Figure:
    """The runs' time series; with too many lines only the first flows are drawn, and the figure says so."""
    maximum = max(1, 2 * MAX_LINES // len(sources))
    if max(len(source.flows) for source in sources) <= maximum:
        return figure_of(sources, "comparison", ssthresh=False, strips=False)
    cut = [source.only(source.flows[:maximum]) for source in sources]
    figure = figure_of(cut, "comparison", ssthresh=False, strips=False)
    note = f"Only the first {maximum} flows of each run are drawn; the table has all."
    return replace(figure, notes=(note, *figure.notes))


def _differences(
    labels: Sequence[str], summaries: Sequence[SummaryTable], level: float
) -> tuple[Difference, ...]:
    base = summaries[0]
    rows: list[Difference] = []
    for label, other in zip(labels[1:], summaries[1:], strict=True):
        for a, b in _pairs(base, other):
            for key, _, _ in _METRICS:
                if a.figures[key].known and b.figures[key].known:
                    test = welch(a.figures[key].values, b.figures[key].values, level)
                    name = a.flow if a.flow == b.flow else f"{a.flow} / {b.flow}"
                    rows.append(Difference(name, key, label, a.figures[key], b.figures[key], test, math.nan))
    adjusted = holm([row.test.p for row in rows])
    return tuple(replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def _pairs(a: SummaryTable, b: SummaryTable) -> list[tuple[FlowSummary, FlowSummary]]:
    """Flows of the same name; the only flow of each when the names differ."""
    if len(a.flows) == len(b.flows) == 1:
        return [(a.flows[0], b.flows[0])]
    there = {row.flow: row for row in b.flows}
    return [(row, there[row.flow]) for row in a.flows if row.flow in there]


def _grid(comparison: Comparison, other: str) -> Grid:
    rows = [row for row in comparison.differences if row.other == other]
    labels = {key: (label, scaler) for key, label, scaler in _METRICS}
    cells = []
    for row in rows:
        label, scaler = labels[row.metric]
        scale = scaler([row.a.value, row.b.value])
        cells.append(
            (
                row.flow,
                f"{label} ({scale.unit})",
                scale.measured(row.a.value, row.a.interval.half_width),
                scale.measured(row.b.value, row.b.interval.half_width),
                _signed(scale, row.test),
                _relative(row),
                _limited(row.test.effect, 100, 2),
                DETERMINISTIC if row.test.test == DETERMINISTIC else _p(row.p_adjusted),
            )
        )
    return Grid(
        title=f"{other} against {comparison.labels[0]}",
        headings=(
            Heading("Flow", numeric=False),
            Heading("Figure", numeric=False),
            Heading(comparison.labels[0], part=1),
            Heading(other, part=1),
            Heading("Difference", about="With its confidence interval (Welch)", part=2),
            Heading("Relative", "%", part=2),
            Heading("Effect", "Hedges' g", minor=2, part=2),
            Heading("p", "Holm", minor=1, part=2),
        ),
        rows=tuple(cells),
    )


def _signed(scale: Scale, test: Test) -> str:
    value = test.difference.value / scale.divisor
    text = f"{value:+.{scale.decimals}f}"
    return f"{text} ± {scale.number(test.difference.half_width)}" if test.difference.known else text


def _relative(row: Difference) -> str:
    return _limited(100 * row.test.difference.value / row.a.value, 1000, 1) if row.a.value else NONE


def _limited(value: float, maximum: float, decimals: int) -> str:
    """A signed number; beyond `maximum` its digits mean nothing any more."""
    if math.isnan(value):
        return NONE
    if abs(value) > maximum:
        return f"> +{maximum:g}" if value > 0 else f"< -{maximum:g}"
    return f"{value:+.{decimals}f}"


def _p(p: float) -> str:
    if math.isnan(p):
        return NONE
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _notes(
    labels: Sequence[str],
    runs: Sequence[Run],
    summaries: Sequence[SummaryTable],
    differences: Sequence[Difference],
    level: float,
) -> list[str]:
    notes = [
        f"{label}: run {number} {what}"
        for label, run in zip(labels, runs, strict=True)
        for number, manifest in run.manifests.items()
        for what in manifest.faults
    ]
    if differences:
        notes.append(
            f"Differences are the other run's minus {labels[0]}'s; ± is their {level * 100:g} % interval by "
            "Welch's t-test over repetitions, p is corrected by Holm over the whole comparison."
        )
    short = [label for label, run in zip(labels, runs, strict=True) if len(run.repetitions) < 2]
    if short and differences:
        notes.append(
            f"{', '.join(short)}: one repetition only, so the difference has no interval and no test; ± is "
            "the interval of the mean within that run. Repeat each run at least three times for a test."
        )
    if any(row.test.test == DETERMINISTIC for row in differences):
        notes.append(
            "deterministic: every repetition of a run gave this value. Copies do not show how another run "
            "would differ, so there is no test."
        )
    for label, one in zip(labels[1:], summaries[1:], strict=True):
        if not summaries[0].flows or not one.flows:
            # The notes of that summary say so.
            continue
        pairs = _pairs(summaries[0], one)
        if not pairs:
            notes.append(f"{label} has no flow of the same name as {labels[0]}: there is nothing to compare.")
            continue
        compared = {id(row) for pair in pairs for row in pair}
        for has, lacks, rows in ((labels[0], label, summaries[0].flows), (label, labels[0], one.flows)):
            if alone := [row.flow for row in rows if id(row) not in compared]:
                more = f" and {len(alone) - _MAX_NAMED} more" if len(alone) > _MAX_NAMED else ""
                names = ", ".join(alone[:_MAX_NAMED]) + more
                notes.append(f"Not compared, because {lacks} has no flow of that name: {names} of {has}.")
    digests = {run.manifest.plan_digest for run in runs}
    if len(digests) == 1:
        notes.append("All runs executed the same plan.")
    for label, one in zip(labels, summaries, strict=True):
        notes.append(f"{label}: {one.notes[0]}")
    return notes


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
