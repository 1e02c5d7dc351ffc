"""Quantities and foreign text as a person reads them in a terminal."""

from __future__ import annotations

import re
from typing import Any

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


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`, `102nd`."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else endings.get(number % 10, 'th')}"


def _three(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def visible(text: str, *, lines: bool = False) -> str:
    """Text from elsewhere, with what would steer a terminal or hide in a page written as escapes.

    Control characters, NUL, bidirectional overrides, characters without width and bytes that are not UTF-8
    become their escapes in Python. `lines` keeps line ends and tabs, for text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or (lines and char in "\n\t") else _escape(char) for char in text
    )


def visible_data(data: Any, *, lines: bool = False) -> Any:
    """`visible` for every text in nested data, keys included."""
    if isinstance(data, str):
        return visible(data, lines=lines)
    if isinstance(data, dict):
        return {visible_data(key): visible_data(value, lines=lines) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(visible_data(value, lines=lines) for value in data)
    return data


def visible_json(text: str) -> str:
    """`visible` for the texts in a JSON document that is ASCII, as `json.dumps` writes it."""
    return _JSON_ESCAPE.sub(_shown, text)


# A backslash and what belongs to it: an escaped backslash begins no other escape.
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def _shown(found: re.Match[str]) -> str:
    escape = found[0]
    if not escape.startswith("\\u"):
        return escape
    char = chr(int(escape[2:], 16))
    # A half of a pair stands for a character beyond U+FFFF: none of those turns text around.
    return escape if char.isprintable() or "\ud800" <= char <= "\udfff" else f"\\{escape}"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
