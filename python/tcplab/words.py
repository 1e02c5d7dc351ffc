"""Quantities as a person reads them in a terminal."""

from __future__ import annotations

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


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


def seconds(value: float) -> str:
    """A time in seconds: `0.21 s`, `12 ms`, `3 min 20 s`."""
    if value >= 120:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if value >= 1 or value == 0:
        return f"{_three(value)} s"
    if value >= 1e-3:
        return f"{_three(value * 1e3)} ms"
    if value >= 1e-6:
        return f"{_three(value * 1e6)} us"
    return f"{_three(value * 1e9)} ns"


def plural(count: int, word: str) -> str:
    """`1 run`, `3 runs`, `2 switches`."""
    ending = "" if count == 1 else "es" if word.endswith("ch") else "s"
    return f"{count} {word}{ending}"


def _three(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
