"""Racing: every candidate starts, those significantly worse are dropped, the rest get more repetitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from tcplab.analysis.statistics import DETERMINISTIC, deterministic, holm, welch

Array = NDArray[np.float64]
Label = str
Measure = Callable[[Sequence[Label], int], Mapping[Label, "Measured"]]
"""Measures candidates up to a number of repetitions in all."""

Cost = Callable[[Label], tuple[Any, ...]]
"""The cost of a candidate; of two that are equally good the one with the lower cost is preferred."""

ROUNDS = (2, 4, 8)
UNMEASURED = "nothing was measured"
"""Why a candidate leaves whose runs have no value of the goal."""
# A mean within this share of the best is as good: no setting is worth a thousandth.
_AS_GOOD = 0.001
# Candidates within this share of the best mean are equally good when half of many are dropped.
_EQUAL = 0.01


@dataclass(frozen=True)
class Measured:
    """Measurements of a candidate."""

    goal: Array
    """The goal in each repetition; more is better."""
    feasible: bool | None
    """Whether the constraints hold; None: not decided yet."""
    reason: str = ""
    """Why it cannot run, which constraint it fails, or which is not decided."""


@dataclass(frozen=True)
class Placed:
    """A candidate's place in the race."""

    label: Label
    measured: Measured
    left_in: int | None
    """The round in which it was dropped, from 1; None: it stayed to the end."""
    why: str
    """Why it was dropped; empty if it stayed."""


def race(
    candidates: Sequence[Label],
    measure: Measure,
    rounds: Sequence[int] = ROUNDS,
    cost: Cost = lambda label: (),
    *,
    name: Callable[[Label], str] = str,
    level: float = 0.95,
) -> list[Placed]:
    """Race candidates; the best first, then those that stayed, then by how long they stayed.

    A round brings every remaining candidate to its number of repetitions. Then it drops those that fail a
    constraint or cannot run, and those that are worse than the best by more than 0.1 %. That is decided at
    this confidence level, by Welch's test with Holm's correction. If more than four remain, it drops the
    worse half, as in successive halving (Jamieson and Talwalkar 2016). Of candidates within 1 % of the best
    the cheaper count as the better.
    `name` gives a candidate's name for people.
    """
    left = list(candidates)
    out: list[Placed] = []
    known: dict[Label, Measured] = {}
    for number, repetitions in enumerate(rounds, start=1):
        known.update(measure(left, repetitions))
        gone = _leaving(left, known, cost, name, 1 - level)
        out += [Placed(label, known[label], number, why) for label, why in gone.items()]
        left = [label for label in left if label not in gone]
        # The last one is measured until it is known whether it meets the constraints.
        if not left or (len(left) == 1 and known[left[0]].feasible is not None):
            break
    stayed = sorted(left, key=lambda label: _mean(known[label]), reverse=True)
    ranked = [Placed(label, known[label], None, "") for label in stayed]
    rest = sorted(out, key=lambda one: (one.left_in or 0, _mean(one.measured)), reverse=True)
    return [*ranked, *rest]


def _leaving(
    left: Sequence[Label],
    known: Mapping[Label, Measured],
    cost: Cost,
    name: Callable[[Label], str],
    sure: float,
) -> dict[Label, str]:
    gone: dict[Label, str] = {}
    for label in left:
        one = known[label]
        if not len(one.goal) or one.feasible is False:
            gone[label] = one.reason or UNMEASURED
    able = [label for label in left if label not in gone]
    if not able:
        return gone
    best = max(able, key=lambda label: _mean(known[label]))
    others = [label for label in able if label != best]
    # Many comparisons with one best: uncorrected, chance alone would throw out good ones.
    corrected = holm([_p(known[label].goal, known[best].goal) for label in others])
    for label, p in zip(others, corrected, strict=True):
        if p < sure:
            how = f"p {p:.2g}" if p > 0 else DETERMINISTIC
            gone[label] = f"significantly worse than {name(best)} ({how})"
    able = [label for label in able if label not in gone]
    if len(able) > 4:
        top = _mean(known[best])

        def place(label: Label) -> tuple[Any, ...]:
            mean = _mean(known[label])
            return (0, cost(label)) if mean >= top - _EQUAL * abs(top) else (1, -mean)

        ranked = sorted(able, key=place)
        for label in ranked[math.ceil(len(ranked) / 2) :]:
            gone[label] = f"in the worse half, behind {name(best)}"
    return gone


def _p(own: Array, best: Array) -> float:
    """The one-sided p value of `own` being at least as good as `best`; NaN for single values."""
    ahead = float(best.mean() - own.mean())
    return p_value(own, best) / 2 if ahead > _AS_GOOD * abs(float(best.mean())) else 1.0


def p_value(a: Array, b: Array) -> float:
    """The two-sided p value of equal means; NaN for single values.

    By Welch's test where both vary. A deterministic one is taken as exact: p is that of the other's t-test
    against it, or 0 where both are deterministic.
    """
    if len(a) < 2 or len(b) < 2:
        return math.nan
    fixed = [deterministic(a), deterministic(b)]
    if all(fixed):
        return 0.0
    if not any(fixed):
        return welch(a, b).p
    varied, exact = (a, b) if fixed[1] else (b, a)
    t = abs(float(varied.mean() - exact.mean())) * math.sqrt(len(varied)) / float(varied.std(ddof=1))
    return 2 * float(stdtr(len(varied) - 1, -t))


def _mean(one: Measured) -> float:
    return float(one.goal.mean()) if len(one.goal) else -math.inf


def feasible(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all constraints hold: no if one fails, yes if all hold, else not decided."""
    found = list(verdicts)
    if any(verdict is False for verdict in found):
        return False
    return True if all(found) else None
