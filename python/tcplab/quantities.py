"""Quantities as people read them: in tables and figures (one unit a column), in sentences, in settings.

`rate`, `size` and `seconds` print what was measured, with three significant digits. `rate_text`,
`time_text` and `bytes_text` print what was asked for, exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

NONE = "–"  # noqa: RUF001 (an en dash is what typography asks for)


@dataclass(frozen=True)
class Scale:
    """How a column's values are shown."""

    unit: str
    divisor: float
    decimals: int

    def number(self, value: float) -> str:
        """A value."""
        return NONE if math.isnan(value) else f"{value / self.divisor:.{self.decimals}f}"

    def measured(self, value: float, half_width: float) -> str:
        """A value with the half width of its interval; NaN there: it has none."""
        number = self.number(value)
        return (
            number if math.isnan(value) or math.isnan(half_width) else f"{number} ± {self.number(half_width)}"
        )


_FIGURE = re.compile(
    r"(?<=\d) (?=(?:[TGMk]?bit/s|[GMk]?B|[KMG]iB|[mµn]?s|min|h|BDP|packets|segments|samples|%)(?![\w/]))"
)


def unbroken(text: str) -> str:
    """A sentence whose numbers stay on one line with their units, by no-break spaces."""
    return _FIGURE.sub("\N{NO-BREAK SPACE}", text)


_RATES = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
# The unit of a column where no value decides: all are zero, or there is none.
_USUAL = ("Mbit/s", "ms", "kB")
_DIGITS = 4


def rate_scale(values: Iterable[float]) -> Scale:
    """A scale for rates in bit/s."""
    return _scale(values, _RATES)


def fine_time_scale(values: Iterable[float]) -> Scale:
    """A scale for times in ns as `time_scale` has it, with enough decimals for the shortest."""
    known = [value for value in values if math.isfinite(value)]
    scale = time_scale(known)
    return replace(scale, decimals=_decimals(min(known, default=0.0) / scale.divisor))


def time_scale(values: Iterable[float]) -> Scale:
    """A scale for times in ns: milliseconds unless they are much shorter or longer."""
    top = _top(values)
    if 1e5 <= top < 1e10:
        return Scale("ms", 1e6, _decimals(top / 1e6))
    return _scale([top], _TIMES)


def size_scale(values: Iterable[float]) -> Scale:
    """A scale for sizes in bytes."""
    return _scale(values, _SIZES)


def percent_scale(values: Iterable[float]) -> Scale:
    """A scale for shares."""
    return Scale("%", 0.01, _decimals(_top(values) * 100))


def count_scale(values: Iterable[float]) -> Scale:
    """A scale for counts, and for means of counts."""
    whole = all(value == int(value) for value in values if math.isfinite(value))
    return Scale("packets", 1.0, 0 if whole else 1)


def seconds_scale(values: Iterable[float]) -> Scale:
    """A scale for times of the run itself: always seconds."""
    return Scale("s", 1e9, 2)


def index_scale(values: Iterable[float]) -> Scale:
    """A scale for indices from 0 to 1."""
    return Scale("", 1.0, 3)


def _scale(values: Iterable[float], units: tuple[tuple[str, float], ...]) -> Scale:
    top = _top(values)
    fitting = ((name, size) for name, size in units if (top >= size if top else name in _USUAL))
    unit, divisor = next(fitting, units[-1])
    return Scale(unit, divisor, _decimals(top / divisor))


def _top(values: Iterable[float]) -> float:
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def _decimals(top: float) -> int:
    """Decimals that give the largest value four significant digits, and never more than three."""
    if top <= 0:
        return 0
    return min(3, max(0, _DIGITS - 1 - math.floor(math.log10(top))))


def rate_text(rate: float | None) -> str:
    """A rate as people say it: `10 Mbit/s`."""
    if rate is None:
        return "unlimited"
    unit, divisor = next(((name, size) for name, size in _RATES if rate >= size), _RATES[-1])
    return f"{rate / divisor:.6g} {unit}"


def time_text(time: float) -> str:
    """A time as people say it: `100 ms`."""
    unit, divisor = next(((name, size) for name, size in _TIMES if abs(time) >= size), _TIMES[-1])
    return f"{time / divisor:.6g} {unit}" if time else "0 s"


def bytes_text(size: float) -> str:
    """A size as people say it: `200 kB`."""
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= divisor:
            return f"{size / divisor:.6g} {unit}"
    return f"{size:.6g} B"


_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def scaled(value: float, unit: str) -> str:
    """Three significant digits and a prefix: `93.2 Mbit/s`."""
    for scale, prefix in _SCALES:
        if abs(value) >= scale:
            return f"{_three(value / scale)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def rate(bits: float) -> str:
    """A rate in bit/s."""
    return scaled(bits, "bit/s")


def size(count: float) -> str:
    """A size in bytes."""
    return scaled(count, "B")


def count(number: int) -> str:
    """How many there are, when it is known only about: `950`, `36 thousand`, `1.2 million`."""
    for scale, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= scale:
            return f"{_three(number / scale)} {name}"
    return str(number)


def seconds(value: float) -> str:
    """A time in seconds: `0.21 s`, `12 ms`, `3 min 20 s`."""
    if value < 0:
        return f"-{seconds(-value)}"
    if value >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if value >= 1 or value == 0:
        return f"{_three(value)} s"
    if value >= 1e-3:
        return f"{_three(value * 1e3)} ms"
    if value >= 1e-6:
        return f"{_three(value * 1e6)} µs"
    return f"{_three(value * 1e9)} ns"


def plural(count: int, word: str) -> str:
    """`1 run`, `3 runs`, `2 switches`."""
    ending = "" if count == 1 else "es" if word.endswith("ch") else "s"
    return f"{count} {word}{ending}"


def _three(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
