"""The time-sequence graph of one flow: data, acknowledgments, SACKs, retransmissions, the window's edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcplab.captures.flow import Flow
from tcplab.captures.packets import FIN, NONE, OUT_OF_ORDER, RETRANSMISSIONS, RST, SYN, Packets
from tcplab.figures.decimate import POINTS, decimate
from tcplab.figures.model import Array, Figure, Line, Panel, Points
from tcplab.figures.palette import COLORS, Style

_SENT, _AGAIN, _ACKED, _EDGE, _SACKED, _REORDERED = (
    COLORS[0],
    COLORS[1],
    COLORS[2],
    COLORS[6],
    COLORS[3],
    COLORS[4],
)


def sequence_figure(flow: Flow, packets: Packets, start: int) -> Figure:
    """The graph of the direction that carries more payload."""
    data, answers = packets.sent(flow.main), packets.sent(1 - flow.main)
    data = data.where(data.payload > 0)
    answers_ack = answers.where((answers.ack != NONE) & ((answers.flags & (SYN | RST)) == 0))

    def seconds(time: NDArray[np.int64]) -> Array:
        return (time - start) / 1e9

    def scaled(numbers: NDArray[np.int64]) -> Array:
        return np.asarray(numbers / 1e6, dtype=np.float64)

    again = np.isin(data.kind, RETRANSMISSIONS)
    reordered = data.kind == OUT_OF_ORDER
    plain = data.where(~(again | reordered))
    low = scaled(plain.seq)
    high = scaled(plain.seq + plain.payload)
    lines: list[Line] = []
    if len(plain):
        lines.append(Line("sent", *bars(seconds(plain.time), low, high), Style(_SENT), width=1.6))
    if len(answers_ack):
        acked = decimate(seconds(answers_ack.time), scaled(answers_ack.ack))
        lines.append(Line("acknowledged", *steps(*acked), Style(_ACKED), width=1.2))
        edge = decimate(
            seconds(answers_ack.time), scaled(answers_ack.ack + answers_ack.window.astype(np.int64))
        )
        lines.append(Line("edge of the receiver's window", *steps(*edge), Style(_EDGE, "dot"), width=1.2))
    sacks = answers.sacks
    if len(sacks["row"]):
        x = seconds(answers.time[sacks["row"]])
        lines.append(
            Line("SACK", *bars(x, scaled(sacks["left"]), scaled(sacks["right"])), Style(_SACKED), width=1.0)
        )
    points = []
    for which, name, color, symbol in (
        (again, "retransmitted", _AGAIN, "cross"),
        (reordered, "out of order", _REORDERED, "dot"),
    ):
        chosen = data.where(which)
        if len(chosen):
            x, y = decimate(seconds(chosen.time), scaled(chosen.seq + chosen.payload // 2))
            points.append(Points(name, x, y, color, symbol, 5.0))
    fins = data.where((data.flags & FIN) != 0)
    if len(fins):
        points.append(
            Points("FIN", seconds(fins.time), scaled(fins.seq + fins.payload), COLORS[6], "tick", 8.0)
        )
    panel = Panel(
        "Sequence number",
        "MB",
        tuple(lines),
        points=tuple(points),
        height=2.6,
        top=_top(lines),
    )
    notes = [
        "A bar is a segment, from its first to its last byte. Between sent and acknowledged is what is "
        "outstanding; where the segments touch the window's edge, the receiver limits the flow.",
    ]
    if len(plain) > POINTS // 2:
        notes.append(
            f"{len(plain)} segments are drawn as {POINTS // 2} bars: each reaches from the first to the "
            "last byte sent in its stretch of time."
        )
    return Figure("sequence", "Time and sequence numbers", "Time (s)", (panel,), notes=tuple(notes))


def bars(x: Array, low: Array, high: Array, maximum: int = POINTS // 2) -> tuple[Array, Array]:
    """Upright bars as one line with gaps; more than `maximum` are merged by stretches of time."""
    if len(x) > maximum:
        stretches = np.linspace(x[0], x[-1], maximum + 1)
        bounds = np.unique(np.searchsorted(x, stretches[:-1], side="left"))
        bounds = bounds[bounds < len(x)]
        x, low, high = x[bounds], np.minimum.reduceat(low, bounds), np.maximum.reduceat(high, bounds)
    gap = np.full(len(x), np.nan)
    return (
        np.column_stack([x, x, gap]).ravel(),
        np.column_stack([low, high, gap]).ravel(),
    )


def steps(x: Array, y: Array) -> tuple[Array, Array]:
    """A value that holds until the next one."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _top(lines: list[Line]) -> float | None:
    """The window's edge may be far above everything else: then it would flatten the graph."""
    tops = {line.key: float(np.nanmax(line.y)) for line in lines}
    edge = tops.pop("edge of the receiver's window", None)
    rest = max(tops.values(), default=0.0)
    return rest * 1.25 if edge is not None and edge > 2 * rest > 0 else None
