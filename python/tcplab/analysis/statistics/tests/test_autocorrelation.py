import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.analysis.statistics import autocorrelation, batch_means, mean_interval, mser5


def autoregressive(rng: np.random.Generator, n: int, phi: float, mean: float) -> list[float]:
    noise = rng.normal(size=n)
    values = [noise[0] / math.sqrt(1 - phi * phi)]
    for shock in noise[1:]:
        values.append(phi * values[-1] + shock)
    return [mean + value for value in values]


def test_batch_means_cover_the_mean_of_a_correlated_series_where_naive_intervals_do_not() -> None:
    rng = np.random.default_rng(3)
    batched = naive = 0
    for _ in range(200):
        series = autoregressive(rng, 2000, 0.9, 10.0)
        inside = batch_means(series).interval
        batched += inside.low <= 10.0 <= inside.high
        plain = mean_interval(series)
        naive += plain.low <= 10.0 <= plain.high
    assert batched >= 180
    assert naive <= 100


def test_batches_grow_until_their_means_are_uncorrelated() -> None:
    series = autoregressive(np.random.default_rng(5), 3000, 0.995, 0.0)
    found = batch_means(series)
    assert found.batch > 3000 // 30
    assert abs(found.correlation) <= 1.96 / math.sqrt(found.batches)


def test_the_batch_size_is_stated() -> None:
    found = batch_means(np.random.default_rng(1).normal(size=600))
    assert found.interval.method == f"batch means, {found.batches} batches of {found.batch} samples"
    assert found.batches * found.batch <= 600


def test_the_mean_is_that_of_all_samples() -> None:
    series = np.arange(101.0)
    assert batch_means(series).interval.value == 50.0


def test_a_series_too_short_for_batches_has_no_interval() -> None:
    assert not batch_means([1.0, 2.0, 3.0]).interval.known


def test_a_constant_series_has_no_interval() -> None:
    found = batch_means([4.2] * 100).interval
    assert found.value == pytest.approx(4.2)
    assert not found.known
    assert "do not vary" in found.method


def test_the_autocorrelation_of_an_alternating_series_is_near_minus_one() -> None:
    assert autocorrelation([1.0, -1.0] * 500) == pytest.approx(-1, abs=0.01)


def test_a_series_without_variation_has_no_autocorrelation() -> None:
    assert math.isnan(autocorrelation([0.1] * 50))


def test_mser5_cuts_a_transient_off() -> None:
    rng = np.random.default_rng(2)
    series = np.concatenate([np.linspace(0, 10, 50), np.full(450, 10.0)]) + rng.normal(0, 0.3, 500)
    assert 40 <= mser5(series) <= 60


def test_mser5_leaves_a_steady_series_nearly_whole() -> None:
    assert mser5(np.random.default_rng(4).normal(10, 1, 500)) <= 50


def test_mser5_never_cuts_more_than_half() -> None:
    assert mser5(np.arange(200.0)) == 100


def test_mser5_is_the_least_standard_error_of_the_rest() -> None:
    series = np.random.default_rng(9).normal(0, 1, 200).cumsum()
    groups = series.reshape(-1, 5).mean(axis=1)
    errors = [groups[cut:].var() / (len(groups) - cut) for cut in range(len(groups) // 2 + 1)]
    assert mser5(series) == 5 * int(np.argmin(errors))


@given(st.lists(st.floats(-1e9, 1e9), max_size=200))
def test_mser5_cuts_whole_groups_of_at_most_half(values: list[float]) -> None:
    cut = mser5(values)
    assert cut % 5 == 0
    assert 0 <= cut <= len(values) / 2
