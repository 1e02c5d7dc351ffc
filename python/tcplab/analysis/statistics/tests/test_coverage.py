"""A 95 % interval holds the truth in 95 % of draws: what the intervals are for."""

import math

import numpy as np
import pytest

from tcplab.analysis.statistics import batch_means, mean_interval, outliers

DRAWS = 2000


def test_student_s_interval_covers_95_percent() -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal(10, 3, (DRAWS, 5))
    held = sum(found.low <= 10 <= found.high for found in map(mean_interval, draws))
    assert 0.93 <= held / DRAWS <= 0.97


@pytest.mark.parametrize("rho", [0.3, 0.6, 0.8])
def test_batch_means_cover_95_percent_of_an_autocorrelated_series(rho: float) -> None:
    rng = np.random.default_rng(2)
    n = 2000
    noise = rng.normal(size=(DRAWS, n))
    series = np.empty((DRAWS, n))
    series[:, 0] = noise[:, 0] / math.sqrt(1 - rho**2)
    for i in range(1, n):
        series[:, i] = rho * series[:, i - 1] + noise[:, i]
    held = sum(found.low <= 0 <= found.high for found in (batch_means(one).interval for one in series))
    assert 0.93 <= held / DRAWS <= 0.97


def test_a_plain_interval_of_an_autocorrelated_series_would_not() -> None:
    rng = np.random.default_rng(3)
    series = np.zeros((200, 500))
    for i in range(1, 500):
        series[:, i] = 0.8 * series[:, i - 1] + rng.normal(size=200)
    held = sum(found.low <= 0 <= found.high for found in map(mean_interval, series))
    assert held / 200 < 0.7


def test_outliers_are_those_of_the_modified_z_score() -> None:
    assert outliers([10.0, 10.1, 9.9, 10.2, 15.0]) == [4]
    assert outliers([10.0, 10.1, 9.9, 10.2, 10.3]) == []
    assert outliers([1.0, 1.0, 100.0]) == []
    assert outliers([1.0, 1.0, 1.0, 1.0, 5.0]) == []
