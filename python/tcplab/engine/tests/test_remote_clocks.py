"""Clocks of other hosts, from exchanges over paths of any asymmetry."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tcplab.engine.remote.clocks import Clock, Exchange

_SECOND = 1_000_000_000
_delays = st.integers(0, _SECOND // 2)


def _exchange(asked: int, there: int, back: int, lead: int, drift: float) -> Exchange:
    read = asked + there
    return Exchange(asked, read + lead + round(drift * read), read + back)


@given(
    st.integers(-(10**15), 10**15),
    st.floats(-1e-3, 1e-3),
    st.lists(st.tuples(_delays, _delays), min_size=6, max_size=60),
)
def test_the_bounds_hold_however_asymmetric_the_path_is(
    lead: int, drift: float, delays: list[tuple[int, int]]
) -> None:
    _check_bounds(lead, drift, delays)


@given(
    st.floats(-0.1, 0.1),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=6, max_size=60),
)
def test_a_clock_whose_tick_is_changed_is_followed_where_exchanges_prove_it(
    drift: float, delays: list[tuple[int, int]]
) -> None:
    # Beyond what is taken to be usual, and by more than the exchanges leave open.
    _check_bounds(0, drift + math.copysign(1.1e-3, drift), delays)


def _check_bounds(lead: int, drift: float, delays: list[tuple[int, int]]) -> None:
    clock = Clock()
    for number, (there, back) in enumerate(delays):
        clock.add(_exchange(number * _SECOND, there, back, lead, drift))
    found = clock.drift()
    assert found is not None
    # A read is at a whole ns.
    assert abs(found.rate - drift) <= found.bound + 1e-8
    for instant in (0, len(delays) * _SECOND):
        offset, bound = clock.offset_at(instant)
        # Reads rounded to whole ns, and a rate's error of 1e-8, over the time between them.
        assert abs(offset - (lead + drift * instant)) <= bound + 2 + 1e-8 * _SECOND * len(delays)


def test_the_shortest_exchange_decides() -> None:
    clock = Clock()
    for asked, there, back in ((0, 50_000_000, 1_000_000), (_SECOND, 400_000, 600_000)):
        clock.add(_exchange(asked, there, back, 3 * _SECOND, 0.0))
    assert clock.best().asked == _SECOND
    # In its middle; away from it, the clocks may have parted.
    offset, bound = clock.offset_at(_SECOND + 500_000)
    assert offset == 3 * _SECOND - 100_000
    # Half its length, by a clock that may be a thousandth faster than ours.
    assert 500_000 <= bound <= 500_600
