"""The findings of a search, as sentences."""

from __future__ import annotations

import math

from tcplab.analysis.statistics import DETERMINISTIC, grade, mean_interval
from tcplab.quantities import plural
from tcplab.study.expect import Expression, Figure, unit_of
from tcplab.study.scale import metric_scale
from tcplab.tune.knobs import UNCHANGED
from tcplab.tune.race import Placed, p_value
from tcplab.tune.tune import Goal, Tuned, named


def goal_text(goal: Goal, one: Placed, level: float = 0.95) -> str:
    """The goal's mean with its interval, in a unit people read; empty if nothing was measured."""
    if not len(one.measured.goal):
        return ""
    found = mean_interval(one.measured.goal * goal.sign, level)
    unit, share = _unit(goal.expression)
    scale = metric_scale(unit, share, [found.value])
    value = f"{scale.number(found.value)} {scale.unit}".strip()
    half = scale.number(found.half_width)
    return f"{value} ± {half}" if found.known else value


def justification(tuned: Tuned) -> list[str]:
    """Why the best is the best, and how sure that is."""
    best = tuned.best
    if best is None:
        if not any(len(one.measured.goal) for one in tuned.placed):
            return [f"No run has a value of the goal, {tuned.goal.text}."]
        return [f"None of {plural(len(tuned.placed), 'candidate')} meets the constraints."]
    of = plural(len(tuned.placed), "candidate")
    if tuned.sampled:
        of = f"{tuned.space} candidates, of which {tuned.sampled} were sampled and {len(tuned.placed)} raced"
    said = [f"Best of {of}: {_named(tuned, best)}, {goal_text(tuned.goal, best, tuned.level)}."]
    ties = [one for one in tuned.placed if one.left_in is None and one is not best]
    if ties:
        names = "; ".join(_named(tuned, one) for one in ties[:3])
        more = f" and {len(ties) - 3} more" if len(ties) > 3 else ""
        said.append(
            f"No significant difference after {plural(len(best.measured.goal), 'repetition')}, but larger or "
            f"with more changes: {names}{more}."
        )
    plain = next((one for one in tuned.placed if set(tuned.labels[one.label].values()) <= {UNCHANGED}), None)
    if plain is not None and plain.label != best.label and len(plain.measured.goal):
        said.append(f"Compared with the unchanged scenario: {_change(tuned, plain, best)}.")
    said.append(_reliability(tuned, best))
    return said


def _change(tuned: Tuned, plain: Placed, best: Placed) -> str:
    """The change of the metric: `-43.3 % (p 0.01)` where it is minimized."""
    before, after = (tuned.goal.sign * float(one.measured.goal.mean()) for one in (plain, best))
    p = p_value(plain.measured.goal, best.measured.goal)
    sure = "" if math.isnan(p) else f" (p {p:.2g})" if p > 0 else f" ({DETERMINISTIC})"
    if before == 0:
        had = goal_text(tuned.goal, plain, tuned.level)
        return f"{goal_text(tuned.goal, best, tuned.level)}, where it has {had}{sure}"
    return f"{(after - before) / abs(before) * 100:+.1f} %{sure}"


def _reliability(tuned: Tuned, best: Placed) -> str:
    """The reliability of the goal and of the constraints, whichever is lower."""
    n = len(best.measured.goal)
    if best.measured.feasible is None:
        why = best.measured.reason
        return f"Reliability low: {plural(n, 'repetition')} do not decide the constraints ({why})."
    holds = ", the constraints hold" if tuned.goal.constraints else ""
    graded = grade(best.measured.goal)
    if graded == DETERMINISTIC:
        return f"Deterministic: {n} repetitions gave the same value{holds}."
    return f"Reliability {graded}: {plural(n, 'repetition')}{holds}."


def confirmation(tuned: Tuned) -> list[str]:
    """Results of the other engine for the best and for the unchanged scenario."""
    found = tuned.confirmed
    if found is None:
        return []
    if found.message:
        return [f"Not confirmed: {found.message}"]
    if not len(found.best) or not len(found.unchanged):
        return []
    expression = tuned.goal.expression
    figure = (
        expression.metric if isinstance(expression, Figure) else tuned.goal.text.removeprefix("minimize ")
    )
    unit, share = _unit(expression)
    scale = metric_scale(unit, share, [*found.unchanged, *found.best])
    best, plain = (
        f"{scale.number(float(each.mean()))} {scale.unit}".strip() for each in (found.best, found.unchanged)
    )
    said = [f"On the other engine: {figure} {best}, against {plain} of the unchanged scenario."]
    if found.overloaded:
        runs = len(found.best) + len(found.unchanged)
        said.append(
            f"The machine was overloaded in {found.overloaded} of these {runs} runs: they decide nothing."
        )
    return said


def _unit(expression: Expression) -> tuple[str, bool]:
    unit = unit_of(expression)
    return ("", True) if unit == "share" else (unit, False)


def _named(tuned: Tuned, one: Placed) -> str:
    return named(tuned.labels[one.label])
