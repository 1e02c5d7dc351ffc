import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from tcplab.analysis.statistics import Comparison, cliff_delta, hedges_g, holm, mann_whitney, welch

# Two samples of unequal size and variance, whose test is published as t = -2.22, 24.5 degrees of freedom,
# p = 0.036 (Welch's t-test in Wikipedia, third example).
FIRST = [19.8, 20.4, 19.6, 17.8, 18.5, 18.9, 18.3, 18.9, 19.5, 22.0]
SECOND = [
    *(28.2, 26.6, 20.1, 23.3, 25.2, 22.1, 17.7, 27.6, 20.6, 13.7),
    *(23.2, 17.5, 20.6, 18.0, 23.9, 21.6, 24.3, 20.4, 24.0, 13.2),
]  # fmt: skip
SAMPLES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)


def test_welch_gives_the_published_p() -> None:
    assert welch(FIRST, SECOND).p == pytest.approx(0.036, abs=0.0005)


def test_the_difference_is_b_minus_a_with_scipy_s_interval() -> None:
    found = welch(FIRST, SECOND)
    expected = scipy_stats.ttest_ind(SECOND, FIRST, equal_var=False).confidence_interval(0.95)
    assert found.difference.value == pytest.approx(np.mean(SECOND) - np.mean(FIRST))
    assert (found.difference.low, found.difference.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("test", [welch, mann_whitney])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]),
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        ([1.0, 1.0, 1.0], [2.0, 2.5, 2.1]),
        ([1.0, 1.2, 1.1], [2.0, 2.0, 2.0]),
    ],
)
def test_a_group_of_copies_has_no_test_but_the_word_deterministic(
    test: Callable[..., Comparison], a: list[float], b: list[float]
) -> None:
    found = test(a, b)
    assert math.isfinite(found.difference.value)
    assert not found.difference.known
    assert math.isnan(found.p)
    assert math.isnan(found.effect)
    assert found.test == found.difference.method == "deterministic"


def test_copies_have_no_effect_size() -> None:
    assert math.isnan(hedges_g([1.0, 1.0], [2.0, 2.0]))
    assert math.isnan(hedges_g([1.0, 1.0], [2.0, 2.5]))


def test_one_value_a_side_cannot_be_tested() -> None:
    found = welch([1.0], [2.0])
    assert found.difference.value == 1.0
    assert not found.difference.known
    assert math.isnan(found.p)


def test_mann_whitney_is_scipy_s() -> None:
    found = mann_whitney(FIRST, SECOND)
    assert found.p == pytest.approx(scipy_stats.mannwhitneyu(SECOND, FIRST).pvalue)
    assert found.difference.low <= found.difference.value <= found.difference.high


def test_the_shift_of_a_moved_sample_is_the_move() -> None:
    found = mann_whitney(FIRST, [value + 3 for value in FIRST])
    assert found.difference.value == pytest.approx(3.0)


def test_holm_gives_the_published_example() -> None:
    # The worked example of the Holm-Bonferroni method in Wikipedia.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_passes_over_nan() -> None:
    adjusted = holm([0.01, math.nan, 0.02])
    assert adjusted[0] == pytest.approx(0.02)
    assert math.isnan(adjusted[1])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert all(adjusted[a] <= adjusted[b] for a, b in pairwise(order))


def test_hedges_g_is_cohen_s_d_with_its_correction() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 6.0]
    d = 2.0 / math.sqrt(5 / 3)
    # The usual approximation of the correction, 1 - 3/(4 df - 1), is within 1 % here.
    assert hedges_g(a, b) == pytest.approx(d * (1 - 3 / (4 * 6 - 1)), rel=0.01)


def test_cliff_delta_is_one_when_every_value_is_larger() -> None:
    assert cliff_delta([1.0, 2.0], [3.0, 4.0]) == 1.0


@given(SAMPLES, SAMPLES)
def test_effects_change_sign_with_the_order(a: list[float], b: list[float]) -> None:
    assert cliff_delta(a, b) == -cliff_delta(b, a)
    assert hedges_g(a, b) == pytest.approx(-hedges_g(b, a), nan_ok=True)
