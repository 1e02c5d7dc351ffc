"""Confidence intervals of a mean and of a median."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcplab.analysis.statistics.t_table import QUANTILES

DETERMINISTIC = "deterministic"
"""The method of a figure whose values are all the same: it has no interval, test or effect size."""
# The rounding error of differences of equal values.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; the bounds are NaN where there is none."""

    value: float
    low: float
    high: float
    n: int
    """How many independent values it rests on."""
    method: str
    """How the interval was found, in words."""

    @property
    def half_width(self) -> float:
        """Half the interval's width; NaN where there is none."""
        return (self.high - self.low) / 2

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))


def finite(values: ArrayLike) -> NDArray[np.float64]:
    """The values that are numbers, as float64."""
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]


def deterministic(values: ArrayLike) -> bool:
    """Whether two or more values are all the same, up to rounding: copies say nothing about the spread."""
    x = finite(values)
    # The variance of values below 1e-154 underflows to zero.
    return len(x) > 1 and bool(np.ptp(x) <= _ROUNDING * np.abs(x).max() or x.var() == 0)


def mean_interval(values: ArrayLike, level: float = 0.95) -> Interval:
    """Mean of independent values with Student's t interval.

    Fewer than two values have a mean (or NaN) and no interval; neither have values that are all the same.
    """
    x = finite(values)
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, "no data")
    mean = float(x.mean())
    if n == 1:
        return Interval(mean, math.nan, math.nan, 1, "one value, no interval")
    if deterministic(x):
        return Interval(float(x[0]), math.nan, math.nan, n, DETERMINISTIC)
    half = t_quantile(level, n - 1) * float(x.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n, f"Student's t over {n} values")


def median_interval(
    values: ArrayLike, level: float = 0.95, *, resamples: int = 9999, seed: int = 0
) -> Interval:
    """Median of independent values with a BCa bootstrap interval (Efron 1987).

    The resampling is seeded: the same values give the same interval. Fewer than two values have no
    interval, nor have values that are all the same.
    """
    return bootstrap_interval(values, np.median, level, resamples=resamples, seed=seed)


def bootstrap_interval(
    values: ArrayLike,
    statistic: Callable[..., NDArray[np.float64]],
    level: float = 0.95,
    *,
    resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """A statistic (a numpy reduction with `axis`) of independent values with its BCa bootstrap interval."""
    from scipy import stats

    x = finite(values)
    n = len(x)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0, "no data")
    value = float(statistic(x))
    if n == 1:
        return Interval(value, math.nan, math.nan, 1, "one value, no interval")
    if deterministic(x):
        return Interval(value, math.nan, math.nan, n, DETERMINISTIC)

    def between(method: Literal["BCa", "percentile"]) -> tuple[float, float]:
        found = stats.bootstrap(
            (x,),
            statistic,
            confidence_level=level,
            n_resamples=resamples,
            method=method,
            rng=np.random.default_rng(seed),
            vectorized=True,
        ).confidence_interval
        return float(found.low), float(found.high)

    (low, high), name = between("BCa"), "BCa"
    if math.isnan(low) or math.isnan(high):
        # The acceleration is undefined when leaving out any one value changes nothing (small n, median).
        (low, high), name = between("percentile"), "percentile"
    return Interval(value, low, high, n, f"{name} bootstrap over {n} values")


def t_quantile(level: float, df: float) -> float:
    """Two-sided Student t quantile for a confidence level such as 0.95."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1: {level}")
    known = QUANTILES.get(level, ())
    if df == int(df) and 0 < df <= len(known):
        return known[int(df) - 1]
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))
