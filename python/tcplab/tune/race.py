"""Racing: every candidate starts, those that are surely worse leave, the rest are measured more closely."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcplab.stats import holm, welch

Array = NDArray[np.float64]
Label = str
Measure = Callable[[Sequence[Label], int], Mapping[Label, "Measured"]]
"""Measures candidates up to a number of repetitions in all."""

ROUNDS = (2, 4, 8)
_SURE = 0.05


@dataclass(frozen=True)
class Measured:
    """What is known of a candidate."""

    goal: Array
    """The goal in each repetition; the more the better."""
    feasible: bool | None
    """Whether the constraints hold; None: not decided yet."""
    reason: str = ""
    """Why it cannot run, or which constraint it fails."""


@dataclass(frozen=True)
class Placed:
    """How a candidate fared."""

    label: Label
    measured: Measured
    left_in: int | None
    """The round it left in, from 1; None: it stayed to the end."""
    why: str
    """Why it left; empty for those that stayed."""


def race(candidates: Sequence[Label], measure: Measure, rounds: Sequence[int] = ROUNDS) -> list[Placed]:
    """Race candidates; the best first, then those that stayed, then by how long they stayed.

    A round brings every candidate that is left to its number of repetitions. Then leave those that fail a
    constraint or cannot run, those that are worse than the best with p < 0.05 by Welch's test with Holm's
    correction, and, as in successive halving (Jamieson and Talwalkar 2016), the worse half of what still is
    more than four.
    """
    left = list(candidates)
    out: list[Placed] = []
    known: dict[Label, Measured] = {}
    for number, repetitions in enumerate(rounds, start=1):
        known.update(measure(left, repetitions))
        gone = _leaving(left, known)
        out += [Placed(label, known[label], number, why) for label, why in gone.items()]
        left = [label for label in left if label not in gone]
        if len(left) <= 1:
            break
    stayed = sorted(left, key=lambda label: _mean(known[label]), reverse=True)
    ranked = [Placed(label, known[label], None, "") for label in stayed]
    rest = sorted(out, key=lambda one: (one.left_in or 0, _mean(one.measured)), reverse=True)
    return [*ranked, *rest]


def _leaving(left: Sequence[Label], known: Mapping[Label, Measured]) -> dict[Label, str]:
    gone: dict[Label, str] = {}
    for label in left:
        one = known[label]
        if not len(one.goal) or one.feasible is False:
            gone[label] = one.reason or "nothing was measured"
    able = [label for label in left if label not in gone]
    if not able:
        return gone
    best = max(able, key=lambda label: _mean(known[label]))
    others = [label for label in able if label != best]
    # Many comparisons with one best: uncorrected, chance alone would throw out good ones.
    corrected = holm([_p(known[label].goal, known[best].goal) for label in others])
    for label, p in zip(others, corrected, strict=True):
        if p < _SURE:
            gone[label] = f"surely worse than {best} (p {p:.2g})"
    able = [label for label in able if label not in gone]
    if len(able) > 4:
        ranked = sorted(able, key=lambda label: _mean(known[label]), reverse=True)
        for label in ranked[math.ceil(len(ranked) / 2) :]:
            gone[label] = f"in the worse half, behind {best}"
    return gone


def _p(own: Array, best: Array) -> float:
    """The one-sided p value of `own` being no worse than `best`; NaN where that cannot be judged."""
    found = welch(own, best)
    return found.p / 2 if found.difference.value > 0 else 1.0


def _mean(one: Measured) -> float:
    return float(one.goal.mean()) if len(one.goal) else -math.inf


def feasible(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all constraints hold: no if one fails, yes if all hold, else not decided."""
    found = list(verdicts)
    if any(verdict is False for verdict in found):
        return False
    return True if all(found) else None
