"""The packet list and a single packet, as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.captures.errors import core_path, filter_words, refused

if TYPE_CHECKING:
    from tcplab._core import PacketList

# The first lines shall not wait for the rest; later ones go out in larger pieces.
_FIRST, _THEN = 200, 5_000


def open_list(path: Path, flow: int | None, filter_text: str | None, width: int) -> PacketList:
    """The list of a capture's packets, of one flow, of those a filter means. Raises CaptureError."""
    from tcplab import _core

    asked = filter_text
    if flow is not None:
        asked = f"flow {flow}" if filter_text is None else f"flow {flow} and ({filter_text})"
    try:
        if filter_text is not None:
            # A mistake is shown in what was typed.
            _core.check_filter(filter_text)
        return _core.PacketList(core_path(path), asked, width)
    except _core.FilterError as problem:
        raise filter_words(filter_text or "", problem) from None
    except (OSError, _core.CaptureError) as problem:
        raise refused(path, problem) from None


def lines(packets: PacketList, limit: int) -> Iterator[str]:
    """Pieces of the list, each of one or more whole lines; `limit` 0: all packets."""
    left, count = limit, _FIRST
    while not limit or left > 0:
        text = packets.lines(min(count, left) if limit else count)
        if not text:
            return
        yield text
        left -= count
        count = _THEN


ROW = ("number", "time", "source", "destination", "protocol", "length", "info", "flow", "note")
"""Columns of a row of the list; time is in ns since the capture's first packet."""


def rows(packets: PacketList, limit: int) -> Iterator[dict[str, Any]]:
    """The list for a program."""
    left = limit
    while not limit or left > 0:
        found = packets.rows(min(_THEN, left) if limit else _THEN)
        if not found:
            return
        for row in found:
            yield dict(zip(ROW, row, strict=True))
        left -= len(found)


def dissection(packet: dict[str, Any], width: int) -> Iterator[str]:
    """A packet field by field: where each stands, what it says, and its bytes."""
    data: bytes = packet["bytes"]
    kept = len(data)
    cut = f", {kept} of them captured" if kept < packet["wire_len"] else ""
    yield f"packet {packet['number']}: {packet['wire_len']} bytes{cut}"
    when = f"{_clock(packet['time'])}, {packet['since_first'] / 1e9:.9f} s after the first packet"
    yield from wrapped("time     ", when, width)
    if packet["flow"] is not None:
        yield f"flow     {packet['flow']}" + (f": {packet['note']}" if packet["note"] else "")
    yield from wrapped("summary  ", f"{packet['protocol']} {packet['info']}", width)
    yield ""
    fields: list[tuple[int, int, int, str, str]] = packet["fields"]
    names = [f"{'  ' * depth}{name}" for depth, _, _, name, _ in fields]
    widest = max(map(len, names), default=0)
    yield f"{'offset':>6}  {'bytes':>5}  {'field':<{widest}}  value"
    for name, (_, offset, length, _, value) in zip(names, fields, strict=True):
        lead = f"{offset:>6}  {length:>5}  {name:<{widest}}  "
        yield from wrapped(lead, value, width)
    yield ""
    yield from hexdump(data)


def packet_json(packet: dict[str, Any]) -> dict[str, Any]:
    """A packet field by field, for a program."""
    names = ("depth", "offset", "length", "name", "value")
    fields = [dict(zip(names, field, strict=True)) for field in packet["fields"]]
    return {**packet, "bytes": packet["bytes"].hex(), "fields": fields}


def wrapped(lead: str, text: str, width: int) -> Iterator[str]:
    """Words of a text behind a lead, under one another where they don't fit; width 0: on one line."""
    if not width or len(lead) + len(text) <= width or width - len(lead) < 20:
        yield (lead + text).rstrip()
        return
    import textwrap

    first, *rest = textwrap.wrap(text, width - len(lead))
    yield lead + first
    for line in rest:
        yield " " * len(lead) + line


def hexdump(data: bytes) -> Iterator[str]:
    """Sixteen bytes a line: where they stand, in hexadecimal, and as characters."""
    for start in range(0, len(data), 16):
        piece = data[start : start + 16]
        left, right = piece[:8].hex(" "), piece[8:].hex(" ")
        readable = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        yield f"{start:>6}  {left:<23}  {right:<23}  {readable}"


def _clock(ns: int) -> str:
    from datetime import UTC, datetime

    seconds, rest = divmod(ns, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds}.{rest:09d} s since 1970"
