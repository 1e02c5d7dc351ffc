"""Delivery traces in mahimahi's format: one integer a line, the millisecond of one 1500-byte delivery.

A scenario may name any file. So a message tells the line that is wrong, never what stands in it.
"""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 64 << 20


class TraceError(ValueError):
    """A file that is not a delivery trace; the message names the line."""


def read(path: Path) -> list[int]:
    """The delivery opportunities in ms; raises `TraceError`."""
    try:
        # Opening a pipe or a terminal would wait for someone to write.
        if path.exists() and not path.is_file():
            raise TraceError("is not a file")
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror or error}") from None
    except TraceError:
        raise
    except ValueError as error:
        raise TraceError(f"cannot be read: {error}") from None
    if len(text) > MAX_BYTES:
        raise TraceError(f"has more than {MAX_BYTES} bytes")
    return parse(text)


def parse(text: bytes) -> list[int]:
    """The opportunities of a trace's text; raises `TraceError`."""
    times: list[int] = []
    last = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word.isdigit() or len(word) > 12:
            raise TraceError(f"is malformed in line {number}: not a whole number of milliseconds")
        time = int(word)
        if time < last:
            raise TraceError(f"is malformed in line {number}: the time is before that of the line above")
        times.append(time)
        last = time
    if not times:
        raise TraceError("is empty")
    if last == 0:
        raise TraceError(
            f"is malformed in line {len(times)}: the last time is the trace's period and must be above 0 ms"
        )
    return times


def mean_rate(opportunities: list[int]) -> int:
    """Mean rate of a trace, in bit/s."""
    return len(opportunities) * 1500 * 8 * 1000 // opportunities[-1]
