"""The flow graph: two hosts, and a row for each packet between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tcplab.captures.flow import Flow, Half
from tcplab.captures.packets import NONE, OUT_OF_ORDER, RETRANSMISSIONS, Packets

_FLAGS = ((2, "SYN"), (1, "FIN"), (4, "RST"), (8, "PSH"), (16, "ACK"), (32, "URG"), (64, "ECE"), (128, "CWR"))

_NOTES = {
    3: "fast retransmission",
    4: "retransmission after a timeout",
    5: "tail loss probe",
    6: "retransmission",
    7: "out of order",
    8: "duplicated by the network",
    9: "keep-alive or window probe",
    10: "outside the window",
    2: "previous segment not captured",
}


@dataclass(frozen=True)
class Rung:
    """One packet."""

    packet: int
    time: int
    """ns since the flow's first packet."""
    backward: bool
    flags: str
    seq: int | None
    """None for a datagram; below 0: before the direction's first captured byte."""
    ack: int | None
    length: int
    note: str
    again: bool
    """It was retransmitted, or arrived out of order."""
    words: str
    """The label of its arrow."""


@dataclass(frozen=True)
class Ladder:
    """A flow's packets, or those at its beginning and end."""

    flow: Flow
    rungs: tuple[Rung, ...]
    left_out: int
    """Packets between those at the beginning and those at the end."""
    break_at: int
    """Rungs before the break."""


def ladder(flow: Flow, packets: Packets, maximum: int = 0) -> Ladder:
    """The flow graph of `packets`, of one flow. With `maximum`, the first two thirds and the last third."""
    count = len(packets)
    if maximum and count > maximum:
        last = maximum // 3
        first = maximum - last
        places = [*range(first), *range(count - last, count)]
    else:
        first, places = count, list(range(count))
    start = int(packets.time[0]) if count else 0
    zero_windows = packets.window == 0
    rungs = []
    for place in places:
        flags, kind = int(packets.flags[place]), int(packets.kind[place])
        backward = bool(packets.direction[place])
        seq, ack = int(packets.seq[place]), int(packets.ack[place])
        length = int(packets.payload[place])
        names = flag_words(flags) if flow.protocol == "tcp" else ""
        words = f"len {length}"
        if flow.protocol == "tcp":
            mine, theirs = flow.halves[backward], flow.halves[not backward]
            counted = "" if ack == NONE else f" ack {_counted(ack, theirs)}"
            words = f"{names} seq {_counted(seq, mine)}{counted} {words}".strip()
        note = _NOTES.get(kind, "")
        if not note and packets.duplicate_ack[place]:
            note = "duplicate ACK"
        if not note and zero_windows[place] and flow.protocol == "tcp" and not flags & 4:
            note = "zero window"
        rungs.append(
            Rung(
                packet=int(packets.packet[place]),
                time=int(packets.time[place]) - start,
                backward=backward,
                flags=names,
                seq=seq if flow.protocol == "tcp" else None,
                ack=None if ack == NONE else ack,
                length=length,
                note=note + _sack_words(packets, place, flow.halves[not backward]),
                again=kind in RETRANSMISSIONS or kind == OUT_OF_ORDER,
                words=words,
            )
        )
    return Ladder(flow, tuple(rungs), count - len(places), first)


# Of a row as it is drawn.
_DRAWN = ("backward", "again", "words")


def _counted(relative: int, half: Half) -> str:
    """A number, which is absolute where it is before the first captured one of its direction."""
    if relative >= 0 or half.tcp is None:
        return str(relative)
    return f"{(half.tcp.initial_seq + relative) % 2**32} (absolute)"


def to_json(ladder: Ladder) -> dict[str, Any]:
    """For machines: a packet for each row; times in ns since the flow's first packet."""

    def row(rung: Rung) -> dict[str, Any]:
        direction = "reverse" if rung.backward else "forward"
        shown = {key: value for key, value in asdict(rung).items() if key not in _DRAWN}
        return {**shown, "note": rung.note.strip(), "direction": direction}

    return {"flow": ladder.flow.number, "left_out": ladder.left_out, "packets": list(map(row, ladder.rungs))}


def _sack_words(packets: Packets, place: int, acknowledged: Half) -> str:
    """The SACK blocks of a packet."""
    # Blocks stand in the order of their packets.
    first, last = packets.sacks["row"].searchsorted([place, place + 1])
    edges = zip(packets.sacks["left"][first:last], packets.sacks["right"][first:last], strict=True)
    blocks = ["-".join(_counted(int(edge), acknowledged) for edge in block) for block in edges]
    return f" sack {' '.join(blocks)}" if blocks else ""


def flag_words(flags: int) -> str:
    """`SYN ACK`."""
    return " ".join(name for bit, name in _FLAGS if flags & bit)


_TIME = 11
_MIN, _MAX = 40, 64


def text_lines(ladder: Ladder, width: int, *, color: bool) -> Iterator[str]:
    """The graph in characters: time, the two hosts' lines, and what is remarkable behind them."""
    left, right = (half.endpoint for half in ladder.flow.halves)
    words = max((len(rung.words) for rung in ladder.rungs), default=0)
    notes = max((len(rung.note.strip()) for rung in ladder.rungs), default=0)
    span = min(max(words + 10, _MIN, len(left) + len(right) + 2), max(_MAX, words + 10))
    if width:
        # Room for the notes if there is some, but never less than the words need.
        span = max(min(span, width - _TIME - 4 - min(notes + 2, 18)), words + 6)
        span = min(span, max(width - _TIME - 4, 24))
    yield f"{'time (s)':>{_TIME}}  {_heads(left, right, span + 2)}".rstrip()
    for place, rung in enumerate(ladder.rungs):
        if ladder.left_out and place == ladder.break_at:
            gap = f"... {ladder.left_out} packets left out ..."
            yield f"{'':>{_TIME}}  |{gap:^{span}}|"
        arrow = _arrow(rung, span)
        note = rung.note.strip()
        room = width - _TIME - span - 6 if width else len(note)
        if len(note) > room:
            note = note[: max(room - 1, 0)] + "…" if room > 4 else ""
        line = f"{rung.time / 1e9:>{_TIME}.6f}  |{arrow}|  {note}".rstrip()
        if color and (rung.again or rung.note):
            line = f"\x1b[{'31' if rung.again else '33'}m{line}\x1b[0m"
        yield line


def _heads(left: str, right: str, width: int) -> str:
    if len(left) + len(right) + 1 <= width:
        return f"{left}{right:>{width - len(left)}}"
    return f"{left} <-> {right}"


def _arrow(rung: Rung, span: int) -> str:
    words = rung.words
    if len(words) > span - 4:
        # Numbers matter more than their names.
        words = words.replace("seq ", "").replace("ack ", "a").replace("len ", "l")[: span - 4]
    line = f" {words} ".center(span - 1, "-")
    return f"<{line}" if rung.backward else f"{line}>"
