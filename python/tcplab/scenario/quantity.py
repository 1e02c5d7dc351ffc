"""Quantities with units, read exactly.

Every number that means an amount of something carries its unit (`25 ms`, `100 Mbit/s`, `200 kB`,
`0.5 %`, `1.5 BDP`). They are read as fractions and become integers in base units: nanoseconds, bit/s,
bytes, parts per billion. No floating point is involved, so `0.1 s` is exactly 100,000,000 ns.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

# The result tables keep times and sizes as signed 64-bit integers; the sum of two must fit.
LARGEST = 2**62
PPB = 1_000_000_000


class Dimension(StrEnum):
    """What a quantity measures."""

    TIME = "time"
    RATE = "rate"
    SIZE = "size"
    PROBABILITY = "percentage"
    PACKETS = "number of packets"
    BDP = "multiple of the bandwidth-delay product"


UNITS: dict[Dimension, dict[str, Fraction]] = {
    Dimension.TIME: {
        "ns": Fraction(1),
        "us": Fraction(10**3),
        "µs": Fraction(10**3),
        "μs": Fraction(10**3),
        "ms": Fraction(10**6),
        "s": Fraction(10**9),
        "min": Fraction(60 * 10**9),
        "h": Fraction(3600 * 10**9),
    },
    Dimension.RATE: {
        "bit/s": Fraction(1),
        "kbit/s": Fraction(10**3),
        "Mbit/s": Fraction(10**6),
        "Gbit/s": Fraction(10**9),
        "bps": Fraction(1),
        "kbps": Fraction(10**3),
        "Mbps": Fraction(10**6),
        "Gbps": Fraction(10**9),
    },
    Dimension.SIZE: {
        "B": Fraction(1),
        "kB": Fraction(10**3),
        "MB": Fraction(10**6),
        "GB": Fraction(10**9),
        "KiB": Fraction(2**10),
        "MiB": Fraction(2**20),
        "GiB": Fraction(2**30),
    },
    Dimension.PROBABILITY: {"%": Fraction(PPB, 100)},
    Dimension.PACKETS: {"packets": Fraction(1), "packet": Fraction(1)},
    Dimension.BDP: {"BDP": Fraction(1)},
}

EXAMPLES = {
    Dimension.TIME: "25 ms",
    Dimension.RATE: "100 Mbit/s",
    Dimension.SIZE: "200 kB",
    Dimension.PROBABILITY: "0.5 %",
    Dimension.PACKETS: "625 packets",
    Dimension.BDP: "1.5 BDP",
}

# The unit most likely meant by a bare number.
_USUAL = {
    Dimension.TIME: "ms",
    Dimension.RATE: "Mbit/s",
    Dimension.SIZE: "kB",
    Dimension.PROBABILITY: "%",
    Dimension.PACKETS: "packets",
    Dimension.BDP: "BDP",
}

# Spellings in use elsewhere: what is written here instead, and by what the number is multiplied.
_FOREIGN: dict[str, tuple[str, int]] = {
    "bps": ("bit/s", 1),
    "bit": ("bit/s", 1),
    "bits/s": ("bit/s", 1),
    "kbps": ("kbit/s", 1),
    "kbit": ("kbit/s", 1),
    "kb/s": ("kbit/s", 1),
    "mbps": ("Mbit/s", 1),
    "mbit": ("Mbit/s", 1),
    "mb/s": ("Mbit/s", 1),
    "gbps": ("Gbit/s", 1),
    "gbit": ("Gbit/s", 1),
    "gb/s": ("Gbit/s", 1),
    "kB/s": ("kbit/s", 8),
    "MB/s": ("Mbit/s", 8),
    "GB/s": ("Gbit/s", 8),
    "B/s": ("bit/s", 8),
    "nsec": ("ns", 1),
    "usec": ("us", 1),
    "msec": ("ms", 1),
    "sec": ("s", 1),
    "secs": ("s", 1),
    "second": ("s", 1),
    "seconds": ("s", 1),
    "m": ("min", 1),
    "mins": ("min", 1),
    "minute": ("min", 1),
    "minutes": ("min", 1),
    "hour": ("h", 1),
    "hours": ("h", 1),
    "byte": ("B", 1),
    "bytes": ("B", 1),
    "k": ("kB", 1),
    "K": ("KiB", 1),
    "M": ("MB", 1),
    "G": ("GB", 1),
    "KB": ("kB", 1),
    "Kb": ("kB", 1),
    "kb": ("kB", 1),
    "p": ("packets", 1),
    "pkt": ("packets", 1),
    "pkts": ("packets", 1),
    "percent": ("%", 1),
    "pct": ("%", 1),
}

# Long numbers are mistakes, and a huge exponent would take for ever to expand.
_NUMBER = re.compile(r"([+-]?)(\d{1,30}(?:\.\d{1,30})?)(?:[eE]([+-]?\d{1,2}))?\s*([A-Za-z%µμ].*)?", re.ASCII)


class QuantityError(ValueError):
    """A text that is not the quantity asked for; `suggestion` is the nearest valid spelling, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


@dataclass(frozen=True)
class Quantity:
    """A dimension and an exact value in its base unit (ns, bit/s, bytes, ppb, packets, BDP)."""

    dimension: Dimension
    value: Fraction

    def rounded(self) -> int:
        """The value as a whole number of base units."""
        return round(self.value)


def parse(read: object, *dimensions: Dimension, usual: str = "") -> Quantity:
    """The quantity written as `read`, which must have one of the `dimensions`.

    `usual` is the unit most likely meant by a bare number; by default the first dimension's.
    """
    wanted = _either([_with_article(dimension) for dimension in dimensions])
    example = f"10 {usual}" if usual else EXAMPLES[dimensions[0]]
    usual = usual or _USUAL[dimensions[0]]
    if isinstance(read, bool) or read is None or not isinstance(read, int | float | str):
        raise QuantityError(f"{show(read)} is not {wanted}", f"{example}")
    text = str(read).strip()
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise QuantityError(f"{show(read)} is not {wanted}", _closest_text(text, dimensions, usual, example))
    sign, digits, exponent, unit = match.groups()
    number = f"{digits}e{exponent}" if exponent else digits
    if unit is None:
        raise QuantityError(f"{show(read)} has no unit", f"{sign}{number} {usual}")
    dimension = next((known for known, units in UNITS.items() if unit in units), None)
    if dimension is None:
        raise QuantityError(
            f"{show(read)}: there is no unit `{unit}`", _respell(number, unit, dimensions, usual)
        )
    if dimension not in dimensions:
        message = f"{show(read)} is {_with_article(dimension)}, not {wanted}"
        raise QuantityError(message, _respell(number, unit, dimensions, usual))
    value = Fraction(digits) * Fraction(10) ** int(exponent or 0) * UNITS[dimension][unit]
    if sign == "-" and value:
        raise QuantityError(f"{show(read)} is negative", f"{number} {unit}")
    if dimension is not Dimension.BDP and value and round(value) == 0:
        raise QuantityError(f"{show(read)} is smaller than can be told apart from zero")
    if value > LARGEST:
        raise QuantityError(f"{show(read)} is larger than can be computed with")
    return Quantity(dimension, value)


def time(read: object) -> int:
    """A time, in ns."""
    return parse(read, Dimension.TIME).rounded()


def positive_time(read: object) -> int:
    """A time above zero, in ns."""
    return _positive(read, time(read))


def moment(read: object) -> int:
    """A time in ns that is most likely seconds: when something in a run happens, or how long it lasts."""
    return parse(read, Dimension.TIME, usual="s").rounded()


def positive_moment(read: object) -> int:
    """A time above zero, in ns, that is most likely seconds."""
    return _positive(read, moment(read))


def rate(read: object) -> int:
    """A rate above zero, in bit/s."""
    return _positive(read, parse(read, Dimension.RATE).rounded())


def size(read: object) -> int:
    """A size, in bytes."""
    return parse(read, Dimension.SIZE).rounded()


def positive_size(read: object) -> int:
    """A size above zero, in bytes."""
    return _positive(read, size(read))


def probability(read: object) -> int:
    """A percentage from 0 to 100, in parts per billion."""
    value = parse(read, Dimension.PROBABILITY)
    if value.value > PPB:
        raise QuantityError(f"{show(read)} is more than 100 %")
    return value.rounded()


def correlation(read: object) -> int:
    """A percentage from 0 to below 100, in parts per billion; at 100 % one fate would be everyone's."""
    value = probability(read)
    if value == PPB:
        raise QuantityError(f"{show(read)}: a correlation is below 100 %", "99 %")
    return value


def packets(read: object) -> int:
    """A number of packets above zero."""
    quantity = parse(read, Dimension.PACKETS)
    if quantity.value.denominator != 1:
        raise QuantityError(f"{show(read)} is not a whole number of packets")
    return _positive(read, quantity.rounded())


def initial_window(read: object) -> int:
    """An initial congestion window: from 1 to 65535 packets."""
    value = packets(read)
    if value > 65_535:
        raise QuantityError(f"{show(read)} is more than 65535 packets", "10 packets")
    return value


def queue_limit(read: object) -> Quantity:
    """How much may wait: packets, bytes, time or multiples of the BDP."""
    quantity = parse(read, Dimension.PACKETS, Dimension.SIZE, Dimension.TIME, Dimension.BDP)
    if quantity.value == 0:
        raise QuantityError(f"{show(read)}: a queue must hold something", "1 BDP")
    if quantity.dimension is Dimension.PACKETS:
        packets(read)
    return quantity


def marking_threshold(read: object) -> Quantity:
    """How much may wait before arrivals are marked: as a queue's limit, and nothing too."""
    quantity = parse(read, Dimension.PACKETS, Dimension.SIZE, Dimension.TIME, Dimension.BDP)
    if quantity.dimension is Dimension.PACKETS and quantity.value != 0:
        packets(read)
    return quantity


def window(read: object) -> Quantity:
    """A socket buffer: bytes or multiples of the BDP."""
    quantity = parse(read, Dimension.SIZE, Dimension.BDP)
    if quantity.value == 0:
        raise QuantityError(f"{show(read)} must be more than zero")
    return quantity


def show(read: object) -> str:
    """A value as it is quoted in a message."""
    if read is None:
        return "nothing"
    if isinstance(read, bool):
        return "`true`" if read else "`false`"
    if isinstance(read, dict):
        return "a mapping"
    if isinstance(read, list | tuple):
        return "a list"
    text = str(read)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"


def format_exact(value: Fraction) -> str:
    """A fraction as a decimal number, without trailing zeros, to at most nine decimals."""
    scaled = round(value * 10**9)
    whole, decimals = divmod(abs(scaled), 10**9)
    text = f"{whole}.{decimals:09d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


def format_quantity(value: int, dimension: Dimension) -> str:
    """A value in base units with the largest unit that leaves it at least one, such as `1.5 ms`."""
    units = [(unit, scale) for unit, scale in UNITS[dimension].items() if unit not in _NOT_PRINTED]
    unit, scale = next((pair for pair in reversed(units) if value >= pair[1]), units[0])
    return f"{format_exact(Fraction(value) / scale)} {unit}"


# Second spellings of a unit: read, but never written or suggested.
_ALSO_READ = {"bps", "kbps", "Mbps", "Gbps", "µs", "μs", "packet"}
_NOT_PRINTED = _ALSO_READ | {"min", "h", "KiB", "MiB", "GiB"}


def _positive(read: object, value: int) -> int:
    if value == 0:
        raise QuantityError(f"{show(read)} must be more than zero")
    return value


def _with_article(dimension: Dimension) -> str:
    return f"a {dimension}"


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _respell(number: str, unit: str, dimensions: tuple[Dimension, ...], usual: str) -> str:
    """The nearest valid spelling of `number unit`."""
    valid = [unit for dimension in dimensions for unit in UNITS[dimension] if unit not in _ALSO_READ]
    foreign = _FOREIGN.get(unit) or _FOREIGN.get(unit.lower())
    if foreign and foreign[0] in valid:
        spelling, factor = foreign
        return (
            f"{format_exact(Fraction(number) * factor)} {spelling}" if factor != 1 else f"{number} {spelling}"
        )
    folded = {spelling.lower(): spelling for spelling in reversed(valid)}
    close = difflib.get_close_matches(unit.lower(), folded, n=1, cutoff=0.5)
    if close:
        return f"{number} {folded[close[0]]}"
    return f"{number} {usual}"


def _closest_text(text: str, dimensions: tuple[Dimension, ...], usual: str, example: str) -> str:
    """A valid spelling near a text that does not even start with a number."""
    match = re.fullmatch(r"([a-zA-Z%/]+)\s*(\d{1,30}(?:\.\d{1,30})?)", text, re.ASCII)
    if match:
        return _respell(match[2], match[1], dimensions, usual)
    comma = re.fullmatch(r"(\d{1,20}),(\d{1,20})\s*(\S+)", text, re.ASCII)
    if comma:
        return _respell(f"{comma[1]}.{comma[2]}", comma[3], dimensions, usual)
    return example
