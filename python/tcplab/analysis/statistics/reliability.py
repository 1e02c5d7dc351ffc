"""How far a figure can be relied upon."""

from __future__ import annotations

import math
from typing import Literal

from numpy.typing import ArrayLike

from tcplab.analysis.statistics.intervals import deterministic, finite

Grade = Literal["high", "medium", "low", "deterministic"]


def coefficient_of_variation(values: ArrayLike) -> float:
    """Standard deviation over the mean's magnitude; NaN for fewer than two values or a zero mean."""
    x = finite(values)
    if len(x) < 2:
        return math.nan
    spread = float(x.std(ddof=1))
    if spread == 0:
        return 0.0
    mean = abs(float(x.mean()))
    return spread / mean if mean else math.nan


def grade(values: ArrayLike) -> Grade:
    """Grade a figure by its repetitions.

    High: at least 3, varying by at most 10 % (coefficient of variation). Medium: at least 3 varying by at
    most 30 %, or 2 varying by at most 10 %. Low: all else, a single run included. Repetitions that all gave
    the same value prove nothing, so they are not graded but called deterministic.
    """
    if deterministic(values):
        return "deterministic"
    n = len(finite(values))
    cv = coefficient_of_variation(values)
    if n >= 3 and cv <= 0.10:
        return "high"
    if (n >= 3 and cv <= 0.30) or (n == 2 and cv <= 0.10):
        return "medium"
    return "low"
