"""Findings of a study, in sentences made from its statistics alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcplab.analysis.statistics import DETERMINISTIC
from tcplab.quantities import rate_text
from tcplab.study.grid import Cell
from tcplab.study.judge import Judgement, Verdict
from tcplab.study.remedies import recommendation
from tcplab.study.summary import CellSummary, StudySummary

_MEANS_SOMETHING = 0.05
_MAX = 4


def findings(summary: StudySummary, judged: Sequence[Judgement]) -> list[str]:
    """Sentences: the best and the worst, what differs from the baseline, what held, how sure that is.

    Of a study of remedies, which of them to take, and then why.
    """
    *reasons, advice = recommendation(summary) or [""]
    return [advice, *reasons] if advice else list(_sentences(summary, judged))


def _sentences(summary: StudySummary, judged: Sequence[Judgement]) -> Iterator[str]:
    known = [row for row in summary.cells if row.figures["goodput"].known]
    if not known:
        yield "No run was completed, so nothing was found."
        return
    ranked = sorted(known, key=lambda row: row.figures["goodput"].value, reverse=True)
    best, worst = ranked[0], ranked[-1]
    yield f"Highest goodput: {_value(best)}, {_name(best.cell)} ({_sureness(best)})."
    if len(ranked) > 1:
        tied = [row for row in ranked[1:] if _overlap(best, row)]
        if tied:
            yield f"No significant difference from it (the intervals overlap): {_names(tied)}."
        same = [row for row in ranked[1:] if row not in tied and _value_of(row) == _value_of(best)]
        if same:
            yield f"Same value: {_names(same)}."
        yield f"Lowest goodput: {_value(worst)}, {_name(worst.cell)}."
    yield from _against_baseline(known)
    verdicts = [judgement.verdict for judgement in judged]
    if verdicts:
        counts = {verdict: verdicts.count(verdict) for verdict in Verdict}
        rest = [f"{counts[Verdict.FAILS]} failed"] if counts[Verdict.FAILS] else []
        rest += [f"{counts[Verdict.UNDECIDED]} undecided"] if counts[Verdict.UNDECIDED] else []
        holding = f"Expectations: {counts[Verdict.HOLDS]} of {len(verdicts)} hold"
        yield ", ".join([holding, *rest]) + "."
    low = [row for row in known if row.figures["goodput"].grade == "low"]
    if low:
        yield (
            f"{len(low)} of {len(known)} cells are of low reliability: their repetitions are too few or "
            "differ by more than 30 %."
        )


def _against_baseline(known: Sequence[CellSummary]) -> Iterator[str]:
    changed = [row for row in known if "goodput" in row.changes]
    if not changed:
        return
    sure = [row for row in changed if row.changes["goodput"].p < _MEANS_SOMETHING]
    more = sorted(
        (row for row in sure if row.changes["goodput"].percent > 0),
        key=lambda row: -row.changes["goodput"].percent,
    )
    less = sorted(
        (row for row in sure if row.changes["goodput"].percent < 0),
        key=lambda row: row.changes["goodput"].percent,
    )
    for words, rows in (("more", more), ("less", less)):
        if rows:
            listed = "; ".join(
                f"{_name(row.cell)} by {abs(row.changes['goodput'].percent):.1f} %" for row in rows[:_MAX]
            )
            rest = f" and {len(rows) - _MAX} more cells" if len(rows) > _MAX else ""
            yield f"Significantly {words} than the baseline (p < 0.05, corrected): {listed}{rest}."
    unsure = [row for row in changed if row.changes["goodput"].p >= _MEANS_SOMETHING]
    if unsure:
        of = f"{len(unsure)} of {len(changed)} cells"
        yield f"{of} do not differ from the baseline by more than chance allows."
    untested = len(changed) - len(sure) - len(unsure)
    if untested:
        yield (
            f"{untested} of {len(changed)} cells cannot be tested against the baseline: one of the two is "
            "deterministic or has a single run."
        )


def _value(row: CellSummary) -> str:
    figure = row.figures["goodput"]
    text = rate_text(float(f"{figure.value:.4g}"))
    return (
        f"{text} ± {rate_text(float(f'{figure.interval.half_width:.2g}'))}" if figure.interval.known else text
    )


def _sureness(row: CellSummary) -> str:
    figure = row.figures["goodput"]
    if figure.grade == DETERMINISTIC:
        return f"n = {figure.n}, deterministic"
    return f"n = {figure.n}, reliability {figure.grade}"


def _value_of(row: CellSummary) -> float:
    return row.figures["goodput"].value


def _overlap(one: CellSummary, other: CellSummary) -> bool:
    a, b = one.figures["goodput"].interval, other.figures["goodput"].interval
    return a.known and b.known and b.high >= a.low


def _name(cell: Cell) -> str:
    group = f"{cell.group}: " if cell.group else ""
    return group + cell.title


def _names(rows: Sequence[CellSummary]) -> str:
    names = [_name(row.cell) for row in rows[:_MAX]]
    return "; ".join(names) + (f" and {len(rows) - _MAX} more" if len(rows) > _MAX else "")
