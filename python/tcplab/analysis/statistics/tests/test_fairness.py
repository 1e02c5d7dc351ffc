import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.analysis.statistics import (
    Episode,
    convergence_time,
    harm,
    jain,
    jain_over_time,
    max_min,
    share_of_fair_rate,
    starvation_episodes,
)

RATES = st.lists(st.floats(0.001, 1e9), min_size=1, max_size=50)


def test_equal_rates_are_fair() -> None:
    assert jain([5.0] * 7) == pytest.approx(1.0)


def test_the_index_is_the_share_of_flows_that_get_anything() -> None:
    # Jain, Chiu and Hawe 1984: 20 of 100 users served alike give 0.2.
    assert jain([1.0] * 20 + [0.0] * 80) == pytest.approx(0.2)


@given(RATES)
def test_the_index_lies_between_one_over_n_and_one(rates: list[float]) -> None:
    assert 1 / len(rates) - 1e-9 <= jain(rates) <= 1 + 1e-9


@given(RATES, st.floats(0.01, 100))
def test_the_index_does_not_depend_on_the_unit(rates: list[float], scale: float) -> None:
    assert jain([rate * scale for rate in rates]) == pytest.approx(jain(rates))


def test_nobody_getting_anything_has_no_index() -> None:
    assert math.isnan(jain([0.0, 0.0]))


def test_over_time_only_active_flows_count() -> None:
    index = jain_over_time([[8.0, math.nan], [6.0, 2.0], [4.0, 4.0]])
    assert math.isnan(index[0])
    assert index[1:] == pytest.approx([0.8, 1.0])


def test_shares_of_the_fair_rate_add_up_to_the_number_of_flows() -> None:
    assert share_of_fair_rate([6.0, 2.0]) == pytest.approx([1.5, 0.5])
    assert share_of_fair_rate([6.0, 2.0], capacity=16.0) == pytest.approx([0.75, 0.25])


def test_convergence_is_when_all_stay_near_the_fair_rate() -> None:
    times = np.arange(1, 21) * 0.5
    second = np.minimum(5.0, times)
    rates = np.column_stack([10 - second, second])
    # Within 20 % of 5 from second = 4.0 on.
    assert convergence_time(times, rates, 0.0) == pytest.approx(4.0)


def test_a_short_meeting_is_not_convergence() -> None:
    times = np.arange(1.0, 11.0)
    rates = np.array([[9.0, 1.0]] * 4 + [[5.0, 5.0]] + [[9.0, 1.0]] * 5)
    assert convergence_time(times, rates, 0.0, hold=2.0) is None


def test_flows_do_not_converge_by_the_end_of_another() -> None:
    times = np.arange(1.0, 11.0)
    rates = np.array([[8.0, 1.0, 1.0]] * 5 + [[math.nan, 5.0, 5.0]] * 5)
    assert convergence_time(times, rates, 0.0, hold=2.0) is None
    assert convergence_time(times, rates[:, 1:], 0.0, hold=2.0) == pytest.approx(1.0)
    # One that ended before the last start does not count.
    assert convergence_time(times, rates, 5.0, hold=2.0) == pytest.approx(1.0)


def test_starvation_is_less_than_a_twentieth_for_a_second() -> None:
    times = np.arange(1, 51) * 0.1
    rate = np.full(50, 5.0)
    rate[10:25] = 0.1
    rate[30:34] = 0.0
    (episode,) = starvation_episodes(times, rate, 5.0)
    assert (episode.start, episode.end) == pytest.approx((1.0, 2.5))


def test_starvation_to_the_very_end_counts() -> None:
    assert starvation_episodes([1.0, 2.0, 3.0], [5.0, 0.0, 0.0], 5.0) == [Episode(1.0, 3.0)]


def test_a_flow_that_is_not_active_does_not_starve() -> None:
    assert starvation_episodes([1.0, 2.0, 3.0], [math.nan] * 3, 5.0) == []


def test_who_asks_for_little_leaves_the_rest_to_the_others() -> None:
    assert max_min(10, [math.inf, math.inf]).tolist() == [5, 5]
    assert max_min(10, [1, math.inf, math.inf]).tolist() == [1, 4.5, 4.5]
    assert max_min(10, [math.inf, 4, 1]).tolist() == [5, 4, 1]
    assert max_min(10, [2, 3]).tolist() == [2, 3]


@given(st.floats(0, 1e9), st.lists(st.floats(0, 1e9), min_size=1, max_size=20))
def test_max_min_shares_give_away_what_there_is_and_no_more_than_is_asked_for(
    capacity: float, demands: list[float]
) -> None:
    shares = max_min(capacity, demands)
    assert (shares <= np.array(demands)).all()
    assert shares.sum() == pytest.approx(min(capacity, sum(demands)), rel=1e-6, abs=1e-6)
    # Who gets less than it asks for has no less than anyone else.
    short = shares[shares < np.array(demands) * (1 - 1e-9)]
    assert all(share >= shares.max() * (1 - 1e-6) - 1e-6 for share in short)


def test_harm_is_what_company_costs() -> None:
    assert harm(10, 5) == 0.5
    assert harm(10, 12) == 0
    assert harm(20, 80, more_is_better=False) == 0.75
    assert math.isnan(harm(0, 1))
    assert math.isnan(harm(math.nan, 1))
