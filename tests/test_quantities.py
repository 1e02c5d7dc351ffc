"""Numbers in a unit and with digits that mean something."""

import math

import pytest

from tcplab.quantities import (
    NONE,
    bytes_text,
    count_scale,
    percent_scale,
    rate_scale,
    rate_text,
    seconds,
    size_scale,
    time_scale,
    time_text,
)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1_234_567.0], "1.235 Mbit/s"),
        ([12_345_678.0, 99.0], "12.35 Mbit/s"),
        ([123_456_789.0], "123.5 Mbit/s"),
        ([9_999.0, 2_000_000_000.0], "0.000 Gbit/s"),
        ([5.0], "5.000 bit/s"),
        ([0.0], "0 Mbit/s"),
    ],
)
def test_the_greatest_value_of_a_column_decides_its_unit_and_has_four_digits(
    values: list[float], shown: str
) -> None:
    scale = rate_scale(values)
    assert f"{scale.number(values[0])} {scale.unit}" == shown


def test_a_column_of_zeros_or_of_nothing_has_the_unit_that_readers_expect() -> None:
    scales = (rate_scale, time_scale, size_scale)
    for values in ([], [math.nan], [0.0, 0.0]):
        assert [scale(values).unit for scale in scales] == ["Mbit/s", "ms", "kB"]


@pytest.mark.parametrize(
    ("time", "shown"),
    [(99_000, "99.00 µs"), (100_000, "0.100 ms"), (9.9e9, "9900 ms"), (10e9, "10.00 s"), (0.25, "0.250 ns")],
)
def test_times_are_in_milliseconds_unless_far_from_them(time: float, shown: str) -> None:
    scale = time_scale([time])
    assert f"{scale.number(time)} {scale.unit}" == shown


def test_what_is_not_known_is_a_dash_and_does_not_choose_the_unit() -> None:
    scale = rate_scale([math.nan, 5e3])
    assert (scale.number(math.nan), scale.unit) == (NONE, "kbit/s")


def test_shares_are_percent_and_counts_whole_unless_they_are_means() -> None:
    assert percent_scale([0.0123]).number(0.0123) == "1.230"
    assert count_scale([1.0, 20.0, math.nan]).number(20) == "20"
    assert count_scale([1.0, 20.5]).number(20.5) == "20.5"


def test_single_values_are_as_people_say_them() -> None:
    assert [rate_text(rate) for rate in (None, 10e6, 999.0, 1e9)] == [
        "unlimited",
        "10 Mbit/s",
        "999 bit/s",
        "1 Gbit/s",
    ]
    assert [time_text(time) for time in (0, 1e9, 1e6, -5e3, 1)] == ["0 s", "1 s", "1 ms", "-5 µs", "1 ns"]
    assert [seconds(time) for time in (0.0, 2e-6, -0.02, -200.0)] == ["0 s", "2 µs", "-20 ms", "-3 min 20 s"]
    assert [bytes_text(size) for size in (999, 1000, 200e3, 1e6, 1e9)] == [
        "999 B",
        "1 kB",
        "200 kB",
        "1 MB",
        "1 GB",
    ]
