"""The text of a congestion control that a scenario names by its file."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 1 << 20


class ControlFileUnreadable(Exception):  # noqa: N818 - what it says is part of a sentence
    """The file's text cannot be had; the message says why."""


def read(file: Path) -> str:
    """The text; raises `ControlFileUnreadable`."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ControlFileUnreadable(f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise ControlFileUnreadable(f"has more than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ControlFileUnreadable(f"is not UTF-8 in line {line}") from None
