"""Text from elsewhere, made safe to show: nothing in it steers a terminal or hides in a page."""

from __future__ import annotations

import re
from typing import Any


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
