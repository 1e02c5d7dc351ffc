import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from scipy.special import stdtrit

from tcplab.analysis.statistics import Interval, deterministic, mean_interval, median_interval
from tcplab.analysis.statistics.intervals import t_quantile
from tcplab.analysis.statistics.t_table import QUANTILES

REAL = st.floats(-1e6, 1e6)


def test_the_mean_interval_is_student_s() -> None:
    values = [9.1, 9.4, 9.2, 9.9, 9.5]
    expected = scipy_stats.t.interval(0.95, 4, loc=np.mean(values), scale=scipy_stats.sem(values))
    found = mean_interval(values)
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.n == 5


@pytest.mark.parametrize("level", QUANTILES)
def test_every_tabulated_quantile_is_scipy_s_to_the_last_bit(level: float) -> None:
    many = range(1, len(QUANTILES[level]) + 20)
    assert [t_quantile(level, df) for df in many] == [float(stdtrit(df, (1 + level) / 2)) for df in many]


def test_a_single_value_has_no_interval() -> None:
    found = mean_interval([3.0])
    assert found.value == 3.0
    assert not found.known


def test_values_that_are_not_numbers_do_not_count() -> None:
    assert mean_interval([1.0, math.nan, 3.0]).n == 2


def test_nothing_has_no_mean() -> None:
    assert math.isnan(mean_interval([]).value)


def test_a_level_outside_0_to_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.5"):
        mean_interval([1.0, 2.0], level=1.5)


@given(st.lists(REAL, min_size=2, max_size=30))
def test_the_mean_lies_inside_its_interval(values: list[float]) -> None:
    assume(not deterministic(values))
    found = mean_interval(values)
    assert found.low <= found.value <= found.high


@given(st.lists(REAL, min_size=3, max_size=30))
def test_a_higher_level_is_never_narrower(values: list[float]) -> None:
    assume(not deterministic(values))
    assert mean_interval(values, 0.99).half_width >= mean_interval(values, 0.9).half_width


def test_the_median_interval_is_the_bca_bootstrap() -> None:
    values = np.random.default_rng(7).exponential(size=40)
    expected = scipy_stats.bootstrap((values,), np.median, method="BCa", rng=np.random.default_rng(0))
    found = median_interval(values)
    interval = expected.confidence_interval
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.value == np.median(values)


def test_the_median_interval_is_the_same_every_time() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    assert median_interval(values) == median_interval(values)


@pytest.mark.parametrize("interval", [mean_interval, median_interval])
@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0], [0.0, 0.0], [0.1 + 0.2, 0.3, 0.3]])
def test_equal_values_have_no_interval_but_the_word_deterministic(
    interval: Callable[..., Interval], values: list[float]
) -> None:
    found = interval(values)
    assert found.value == pytest.approx(values[0])
    assert not found.known
    assert (found.n, found.method) == (len(values), "deterministic")


def test_the_median_interval_covers_the_true_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        found = median_interval(rng.normal(5.0, 1.0, 25), resamples=999)
        hits += found.low <= 5.0 <= found.high
    # 95 % asked; 200 trials of a binomial stay above 88 % with a probability of 0.9999.
    assert hits >= 176
