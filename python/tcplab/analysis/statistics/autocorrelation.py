"""Means of autocorrelated series: the warm-up is cut off, and batches stand in for independent values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcplab.analysis.statistics.intervals import Interval, finite, mean_interval

_MAX_BATCHES = 30
_MIN_BATCHES = 5


@dataclass(frozen=True)
class BatchMeans:
    """The mean of a series, with an interval from the means of its batches."""

    interval: Interval
    batch: int
    """Samples per batch."""
    batches: int
    correlation: float
    """Lag-1 autocorrelation of the batch means; NaN when it cannot be judged."""


def batch_means(values: ArrayLike, level: float = 0.95) -> BatchMeans:
    """Mean of a stationary, autocorrelated series by non-overlapping batch means.

    From 30 batches on, the batches are made longer until the lag-1 autocorrelation of their means is within
    the 95 % bound of independent values, 1.96/sqrt(batches), or 5 batches are left. Samples that do not
    fill a batch are left out at the front, where a remnant of the warm-up would be. The mean is that of all
    samples.
    """
    x = finite(values)
    if len(x) < 2 * _MIN_BATCHES:
        plain = mean_interval(x, level)
        none = Interval(plain.value, math.nan, math.nan, len(x), "series too short for batch means")
        return BatchMeans(none, 1, len(x), math.nan)
    batches = min(_MAX_BATCHES, len(x) // 2)
    while True:
        batch = len(x) // batches
        means = _means(x, batch, batches)
        correlation = autocorrelation(means)
        if batches == _MIN_BATCHES or not abs(correlation) > 1.96 / math.sqrt(batches):
            break
        batches = max(_MIN_BATCHES, batches * 3 // 4)
    over = mean_interval(means, level)
    mean = float(x.mean())
    half = over.half_width
    varies = "batch means" if over.known else "no interval: the batch means do not vary"
    method = f"{varies}, {batches} batches of {batch} samples"
    return BatchMeans(Interval(mean, mean - half, mean + half, batches, method), batch, batches, correlation)


def _means(x: NDArray[np.float64], batch: int, batches: int) -> NDArray[np.float64]:
    return np.asarray(x[len(x) - batch * batches :].reshape(batches, batch).mean(axis=1))


def autocorrelation(values: ArrayLike, lag: int = 1) -> float:
    """Sample autocorrelation at a lag; NaN for a series without variation."""
    x = finite(values)
    centred = x - x.mean() if len(x) else x
    # Rounding leaves a variance in a constant series, which counts as none.
    if len(x) <= lag or np.ptp(x) <= 1e-12 * float(np.abs(x).max()):
        return math.nan
    return float((centred[lag:] * centred[:-lag]).sum() / (centred * centred).sum())


def mser5(values: ArrayLike) -> int:
    """How many samples of a series are warm-up, by MSER-5 (White, Cobb and Spratt 2000).

    The series is averaged over groups of five; the cut is where the standard error of what remains is
    least. Only the first half may be cut: a least value beyond it means that the series never settles, and
    then half of it is returned.
    """
    x = finite(values)
    groups = len(x) // 5
    if groups < 2:
        return 0
    means = x[: groups * 5].reshape(groups, 5).mean(axis=1)
    # Suffix sums give the mean and the squared deviations of every remainder in one pass; centring first
    # keeps the difference of squares exact enough.
    centred = means - means.mean()
    left = np.arange(groups, 0, -1, dtype=np.float64)
    total = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred * centred)[::-1])[::-1]
    error = np.maximum(squares - total * total / left, 0) / (left * left)
    half = groups // 2
    return 5 * int(np.argmin(error[: half + 1]))
