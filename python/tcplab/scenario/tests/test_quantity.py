"""Quantities: what is read, exactly, and what is refused with which suggestion."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.scenario import QuantityError
from tcplab.scenario.quantity import parse, units, value_of

LARGEST = 2**62
KINDS = ("time", "rate", "size", "probability")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("time", "25 ms", 25_000_000),
        ("time", "0.1 s", 100_000_000),
        ("time", "1.5us", 1_500),
        ("time", "2 µs", 2_000),
        ("time", "1 min", 60_000_000_000),
        ("time", "0.5 h", 1_800_000_000_000),
        ("time", "0 s", 0),
        ("rate", "100 Mbit/s", 100_000_000),
        ("rate", "2.5 Gbit/s", 2_500_000_000),
        ("rate", "1e3 kbit/s", 1_000_000),
        ("size", "200 kB", 200_000),
        ("size", "64 KiB", 65_536),
        ("size", "4 MiB", 4 << 20),
        ("probability", "0.5 %", 5_000_000),
        ("probability", "0.0000001%", 1),
        ("probability", "100 %", 1_000_000_000),
    ],
)
def test_a_quantity_is_read_in_base_units(kind: str, text: str, value: int) -> None:
    assert value_of(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "read", "suggestion"),
    [
        ("rate", 100, "100 Mbit/s"),
        ("rate", "100 mbps", "100 Mbit/s"),
        ("rate", "100mbit/s", "100 Mbit/s"),
        ("rate", "1 gb/s", "1 Gbit/s"),
        ("rate", "12.5 MB/s", "100 Mbit/s"),
        ("rate", "Mbit/s 5", "5 Mbit/s"),
        ("time", "5 msec", "5 ms"),
        ("time", "5 MS", "5 ms"),
        ("time", "5 sec", "5 s"),
        ("time", "0,5 s", "0.5 s"),
        ("time", "-5 s", "5 s"),
        ("time", 2.5, "2.5 ms"),
        ("size", "10 KB", "10 kB"),
        ("size", "10 mb", "10 MB"),
        ("size", "10 bytes", "10 B"),
        ("probability", 0.5, "0.5 %"),
        ("probability", "1 percent", "1 %"),
        ("time", "soon", "25 ms"),
    ],
)
def test_the_nearest_valid_spelling_is_suggested(kind: str, read: object, suggestion: str) -> None:
    with pytest.raises(QuantityError) as refused:
        value_of(kind, read)
    assert refused.value.suggestion == suggestion
    value_of(kind, suggestion)


@pytest.mark.parametrize(
    ("read", "suggestion"), [(10, "10 s"), ("10", "10 s"), ("soon", "10 s"), ("10 msec", "10 ms")]
)
def test_when_something_happens_is_most_likely_given_in_seconds(read: object, suggestion: str) -> None:
    with pytest.raises(QuantityError) as refused:
        value_of("moment", read)
    assert refused.value.suggestion == suggestion


@pytest.mark.parametrize(
    ("read", "rate"), [("100 Mbps", 10**8), ("1 Gbps", 10**9), ("64 kbps", 64_000), ("9600bps", 9600)]
)
def test_rates_are_read_as_everyone_writes_them(read: str, rate: int) -> None:
    assert value_of("rate", read) == rate


@pytest.mark.parametrize(
    "read", [True, None, [], {}, "", "ms", "1 ms 2", "nan s", "inf s", "1e99 s", "9" * 40 + " s"]
)
def test_what_is_not_a_time_is_refused(read: object) -> None:
    with pytest.raises(QuantityError):
        value_of("time", read)


def test_what_rounds_to_nothing_is_refused() -> None:
    with pytest.raises(QuantityError, match="too small: it rounds to zero"):
        value_of("time", "0.1 ns")


def test_what_does_not_fit_a_table_is_refused() -> None:
    with pytest.raises(QuantityError, match="is too large"):
        value_of("time", f"{LARGEST + 1} ns")
    assert value_of("time", f"{LARGEST} ns") == LARGEST


def test_a_queue_limit_keeps_the_unit_it_was_given_in() -> None:
    assert value_of("queue-limit", "1.5 BDP") == {"bdp": "3/2"}
    assert value_of("queue-limit", "625 packets") == {"packets": 625}
    with pytest.raises(QuantityError, match="whole number of packets"):
        value_of("queue-limit", "2.5 packets")


def test_a_share_is_of_one() -> None:
    assert (parse("5 %").dimension, parse("5 %").value) == ("share", 0.05)


scalar_units = st.sampled_from([(kind, unit) for kind in ("time", "rate", "size") for unit in units()[kind]])


@given(scalar_units, st.integers(1, 10**6), st.integers(0, 3))
def test_decimals_are_exact(unit: tuple[str, str], mantissa: int, decimals: int) -> None:
    kind, name = unit
    whole, part = divmod(mantissa, 10**decimals)
    text = f"{whole}.{part:0{decimals}d} {name}" if decimals else f"{whole} {name}"
    exact = Fraction(mantissa, 10**decimals) * value_of(kind, f"1 {name}")
    if round(exact) == 0:
        with pytest.raises(QuantityError):
            value_of(kind, text)
    else:
        assert value_of(kind, text) == round(exact)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for kind in KINDS:
        with contextlib.suppress(QuantityError):
            assert 0 <= value_of(kind, text) <= LARGEST
