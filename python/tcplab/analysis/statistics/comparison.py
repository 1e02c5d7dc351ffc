"""Is one set of repetitions different from another, and by how much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tcplab.analysis.statistics.intervals import DETERMINISTIC, Interval, deterministic, finite, t_quantile


@dataclass(frozen=True)
class Comparison:
    """How b differs from a."""

    difference: Interval
    """Mean (or median shift) of b minus that of a."""
    p: float
    """Two-sided p value, not corrected; NaN when it cannot be judged."""
    effect: float
    """Effect size; NaN when it cannot be judged."""
    effect_name: str
    test: str
    """The test's name; `deterministic`: none, since the values of a group are all the same."""


def welch(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Comparison:
    """Welch's t-test: means of two groups of unequal variance; effect size is Hedges' g.

    A group whose values are all the same says nothing of its spread: then there is no interval, p or effect
    size, and the test is `deterministic`.
    """
    from scipy.special import stdtr

    x, y = finite(a), finite(b)
    difference = float(y.mean() - x.mean()) if len(x) and len(y) else math.nan
    test, effect_name = "Welch's t", "Hedges' g"
    if len(x) < 2 or len(y) < 2:
        none = Interval(difference, math.nan, math.nan, min(len(x), len(y)), "too few values for an interval")
        return Comparison(none, math.nan, math.nan, effect_name, test)
    if deterministic(x) or deterministic(y):
        return _untested(difference, min(len(x), len(y)), effect_name)
    vx, vy = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    n = min(len(x), len(y))
    # Welch-Satterthwaite degrees of freedom.
    df = (vx + vy) ** 2 / (vx**2 / (len(x) - 1) + vy**2 / (len(y) - 1))
    half = t_quantile(level, df) * math.sqrt(vx + vy)
    p = 2 * float(stdtr(df, -abs(difference) / math.sqrt(vx + vy)))
    interval = Interval(difference, difference - half, difference + half, n, "Welch's t")
    return Comparison(interval, p, hedges_g(x, y), effect_name, test)


def mann_whitney(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Comparison:
    """Mann-Whitney U: does b tend to be larger than a; effect size is Cliff's delta.

    The difference is the Hodges-Lehmann shift, the median of all pairwise differences, with the interval
    that inverts the test (normal approximation of U). Groups without spread are as in `welch`.
    """
    from scipy import stats

    x, y = finite(a), finite(b)
    test, effect_name = "Mann-Whitney U", "Cliff's delta"
    if not len(x) or not len(y):
        none = Interval(math.nan, math.nan, math.nan, 0, "no data")
        return Comparison(none, math.nan, math.nan, effect_name, test)
    pairs = np.sort((y[:, None] - x[None, :]).ravel())
    shift = float(np.median(pairs))
    if deterministic(x) or deterministic(y):
        return _untested(shift, min(len(x), len(y)), effect_name)
    z = float(stats.norm.ppf((1 + level) / 2))
    spread = math.sqrt(len(x) * len(y) * (len(x) + len(y) + 1) / 12)
    rank = math.floor(len(pairs) / 2 - z * spread)
    n = min(len(x), len(y))
    if rank < 1:
        interval = Interval(shift, math.nan, math.nan, n, "too few values for an interval")
    else:
        low, high = float(pairs[rank - 1]), float(pairs[-rank])
        interval = Interval(shift, low, high, n, "Hodges-Lehmann shift")
    p = float(stats.mannwhitneyu(y, x, alternative="two-sided").pvalue)
    return Comparison(interval, p, cliff_delta(x, y), effect_name, test)


def _untested(difference: float, n: int, effect_name: str) -> Comparison:
    none = Interval(difference, math.nan, math.nan, n, DETERMINISTIC)
    return Comparison(none, math.nan, math.nan, effect_name, DETERMINISTIC)


def hedges_g(a: ArrayLike, b: ArrayLike) -> float:
    """Standardised mean difference of b and a, corrected for small samples (Hedges 1981).

    NaN for groups of fewer than two values, and where the values of a group are all the same.
    """
    x, y = finite(a), finite(b)
    df = len(x) + len(y) - 2
    if len(x) < 2 or len(y) < 2 or deterministic(x) or deterministic(y):
        return math.nan
    pooled = math.sqrt(((len(x) - 1) * x.var(ddof=1) + (len(y) - 1) * y.var(ddof=1)) / df)
    difference = float(y.mean() - x.mean())
    # The exact correction factor, gamma(df/2) / (sqrt(df/2) gamma((df-1)/2)).
    log_factor = math.lgamma(df / 2) - math.lgamma((df - 1) / 2) - 0.5 * math.log(df / 2)
    return difference / pooled * math.exp(log_factor)


def cliff_delta(a: ArrayLike, b: ArrayLike) -> float:
    """P(b > a) - P(b < a) over all pairs (Cliff 1993): -1 to 1."""
    x, y = finite(a), finite(b)
    if not len(x) or not len(y):
        return math.nan
    return float(np.sign(y[:, None] - x[None, :]).mean())


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p values, in the order given.

    NaN stays NaN and counts for nothing.
    """
    known = [i for i, p in enumerate(p_values) if not math.isnan(p)]
    adjusted = list(p_values)
    minimum = 0.0
    for rank, i in enumerate(sorted(known, key=lambda i: p_values[i])):
        minimum = max(minimum, min(1.0, (len(known) - rank) * p_values[i]))
        adjusted[i] = minimum
    return adjusted
