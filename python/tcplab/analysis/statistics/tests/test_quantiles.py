import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.analysis.statistics import weighted_quantiles

VALUES = st.lists(st.integers(-1000, 1000), min_size=1, max_size=50)


@given(VALUES, st.floats(0, 1))
def test_without_weights_they_are_numpy_s_inverse_of_the_distribution(values: list[int], p: float) -> None:
    expected = np.quantile(values, p, method="inverted_cdf")
    found = weighted_quantiles(values, p)[0]
    # At a jump of the distribution function the two may round to either side.
    near = np.quantile(values, [max(0, p - 1e-9), min(1, p + 1e-9)], method="inverted_cdf")
    assert found == expected or found in near


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 5)), min_size=1, max_size=20))
def test_a_weight_counts_as_repetition(pairs: list[tuple[int, int]]) -> None:
    probabilities = [0.1, 0.5, 0.9]
    weighted = weighted_quantiles([v for v, _ in pairs], probabilities, [w for _, w in pairs])
    repeated = weighted_quantiles([v for v, w in pairs for _ in range(w)], probabilities)
    assert list(weighted) == list(repeated)


def test_the_extremes_are_the_least_and_the_greatest() -> None:
    assert list(weighted_quantiles([3.0, 1.0, 2.0], [0, 1])) == [1.0, 3.0]


def test_nothing_has_no_quantiles() -> None:
    assert math.isnan(weighted_quantiles([], 0.5)[0])


def test_a_probability_beyond_one_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        weighted_quantiles([1.0], 95)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        weighted_quantiles([1.0, 2.0], 0.5, [1.0, -1.0])
