"""Quantities: what is read, exactly, and what is refused with which suggestion."""

import contextlib
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.scenario import quantity
from tcplab.scenario.quantity import LARGEST, UNITS, Dimension, QuantityError, format_quantity, parse

READERS: dict[Dimension, Callable[[object], int]] = {
    Dimension.TIME: quantity.time,
    Dimension.RATE: quantity.rate,
    Dimension.SIZE: quantity.size,
    Dimension.PROBABILITY: quantity.probability,
}


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (Dimension.TIME, "25 ms", 25_000_000),
        (Dimension.TIME, "0.1 s", 100_000_000),
        (Dimension.TIME, "1.5us", 1_500),
        (Dimension.TIME, "2 µs", 2_000),
        (Dimension.TIME, "1 min", 60_000_000_000),
        (Dimension.TIME, "0.5 h", 1_800_000_000_000),
        (Dimension.TIME, "0 s", 0),
        (Dimension.RATE, "100 Mbit/s", 100_000_000),
        (Dimension.RATE, "2.5 Gbit/s", 2_500_000_000),
        (Dimension.RATE, "1e3 kbit/s", 1_000_000),
        (Dimension.SIZE, "200 kB", 200_000),
        (Dimension.SIZE, "64 KiB", 65_536),
        (Dimension.SIZE, "4 MiB", 4 << 20),
        (Dimension.PROBABILITY, "0.5 %", 5_000_000),
        (Dimension.PROBABILITY, "0.0000001%", 1),
        (Dimension.PROBABILITY, "100 %", 1_000_000_000),
    ],
)
def test_a_quantity_is_read_in_base_units(dimension: Dimension, text: str, value: int) -> None:
    assert READERS[dimension](text) == value


@pytest.mark.parametrize(
    ("dimension", "read", "suggestion"),
    [
        (Dimension.RATE, 100, "100 Mbit/s"),
        (Dimension.RATE, "100 mbps", "100 Mbit/s"),
        (Dimension.RATE, "100mbit/s", "100 Mbit/s"),
        (Dimension.RATE, "1 gb/s", "1 Gbit/s"),
        (Dimension.RATE, "12.5 MB/s", "100 Mbit/s"),
        (Dimension.RATE, "Mbit/s 5", "5 Mbit/s"),
        (Dimension.TIME, "5 msec", "5 ms"),
        (Dimension.TIME, "5 MS", "5 ms"),
        (Dimension.TIME, "5 sec", "5 s"),
        (Dimension.TIME, "0,5 s", "0.5 s"),
        (Dimension.TIME, "-5 s", "5 s"),
        (Dimension.TIME, 2.5, "2.5 ms"),
        (Dimension.SIZE, "10 KB", "10 kB"),
        (Dimension.SIZE, "10 mb", "10 MB"),
        (Dimension.SIZE, "10 bytes", "10 B"),
        (Dimension.PROBABILITY, 0.5, "0.5 %"),
        (Dimension.PROBABILITY, "1 percent", "1 %"),
        (Dimension.TIME, "soon", "25 ms"),
    ],
)
def test_the_nearest_valid_spelling_is_suggested(dimension: Dimension, read: object, suggestion: str) -> None:
    with pytest.raises(QuantityError) as refused:
        READERS[dimension](read)
    assert refused.value.suggestion == suggestion
    READERS[dimension](suggestion)


@pytest.mark.parametrize(
    ("read", "suggestion"), [(10, "10 s"), ("10", "10 s"), ("soon", "10 s"), ("10 msec", "10 ms")]
)
def test_when_something_happens_is_most_likely_given_in_seconds(read: object, suggestion: str) -> None:
    with pytest.raises(QuantityError) as refused:
        quantity.moment(read)
    assert refused.value.suggestion == suggestion


@pytest.mark.parametrize(
    ("read", "rate"), [("100 Mbps", 10**8), ("1 Gbps", 10**9), ("64 kbps", 64_000), ("9600bps", 9600)]
)
def test_rates_are_read_as_everyone_writes_them(read: str, rate: int) -> None:
    assert quantity.rate(read) == rate
    assert "bit/s" in format_quantity(rate, Dimension.RATE)


@pytest.mark.parametrize(
    "read", [True, None, [], {}, "", "ms", "1 ms 2", "nan s", "inf s", "1e99 s", "9" * 40 + " s"]
)
def test_what_is_no_time_is_refused(read: object) -> None:
    with pytest.raises(QuantityError):
        quantity.time(read)


def test_what_rounds_to_nothing_is_refused() -> None:
    with pytest.raises(QuantityError, match="smaller than can be told apart"):
        quantity.time("0.1 ns")


def test_what_does_not_fit_a_table_is_refused() -> None:
    with pytest.raises(QuantityError, match="larger than can be computed"):
        quantity.time(f"{LARGEST + 1} ns")
    assert quantity.time(f"{LARGEST} ns") == LARGEST


def test_a_queue_limit_keeps_the_unit_it_was_given_in() -> None:
    assert quantity.queue_limit("1.5 BDP") == parse("1.5 BDP", Dimension.BDP)
    assert quantity.queue_limit("625 packets").value == 625
    with pytest.raises(QuantityError, match="whole number of packets"):
        quantity.queue_limit("2.5 packets")


scalar_units = st.sampled_from(
    [
        (dimension, unit)
        for dimension in READERS
        for unit in UNITS[dimension]
        if dimension is not Dimension.PROBABILITY
    ]
)


@given(scalar_units, st.integers(1, 10**6), st.integers(0, 3))
def test_decimals_are_exact(unit: tuple[Dimension, str], mantissa: int, decimals: int) -> None:
    dimension, name = unit
    whole, part = divmod(mantissa, 10**decimals)
    text = f"{whole}.{part:0{decimals}d} {name}" if decimals else f"{whole} {name}"
    exact = Fraction(mantissa, 10**decimals) * UNITS[dimension][name]
    if round(exact) == 0:
        with pytest.raises(QuantityError):
            READERS[dimension](text)
    else:
        assert READERS[dimension](text) == round(exact)


@given(st.sampled_from([Dimension.TIME, Dimension.RATE, Dimension.SIZE]), st.integers(1, 10**15))
def test_what_is_printed_with_few_digits_reads_back(dimension: Dimension, value: int) -> None:
    printed = format_quantity(value, dimension)
    assert abs(READERS[dimension](printed) - value) <= value // 10**9 + 1


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in READERS.values():
        with contextlib.suppress(QuantityError):
            assert 0 <= reader(text) <= LARGEST
