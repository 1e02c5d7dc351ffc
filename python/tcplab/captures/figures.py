"""Figures of a capture's flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tcplab.captures.flow import Flow
from tcplab.captures.packets import (
    FAST,
    NONE,
    OUT_OF_ORDER,
    PROBE,
    RETRANSMISSIONS,
    TIMEOUT,
    UNKNOWN,
    Packets,
)
from tcplab.captures.sequence_figure import sequence_figure
from tcplab.figures.decimate import POINTS, decimate
from tcplab.figures.model import Array, Figure, Line, Panel, Points
from tcplab.figures.palette import COLORS, Style, style
from tcplab.quantities import rate_scale, time_text

MAX_FLOWS = 8
"""More lines than this would hide each other."""

KINDS = ("throughput", "inflight", "rtt", "window", "sequence", "retransmissions", "interarrival")

_TIME = "Time (s)"

_THINNED = (
    f"Long series are thinned for drawing to {POINTS} points: each interval keeps its minimum and "
    "maximum, so no peak is hidden."
)


@dataclass(frozen=True)
class Shown:
    """A flow with its packets, and the time that figures count from."""

    flow: Flow
    packets: Packets
    start: int
    place: int
    """Among the flows shown: it decides the colour."""

    @property
    def name(self) -> str:
        """Its legend entry."""
        return f"{self.flow.number}: {self.flow.name}"

    @property
    def style(self) -> Style:
        """Its colour."""
        return style(self.place)

    def seconds(self, time: NDArray[np.int64]) -> Array:
        """Times as figures show them."""
        return (time - self.start) / 1e9

    @property
    def data(self) -> Packets:
        """Packets of the direction that carries more payload."""
        return self.packets.sent(self.flow.main)

    @property
    def answers(self) -> Packets:
        """Packets of the other direction."""
        return self.packets.sent(1 - self.flow.main)


def figures(kind: str, flows: Sequence[Flow], packets: Packets, start: int) -> list[Figure]:
    """Figures of this kind, or of all kinds; times count from `start`. Figures without data are left out."""
    shown = [Shown(flow, packets.of_flow(flow.number), start, place) for place, flow in enumerate(flows)]
    wanted = KINDS if kind == "all" else (kind,)
    made = [figure for name in wanted for figure in _MAKERS[name](shown)]
    end = max((one.flow.last for one in shown), default=start)
    span = (0.0, max(end - start, 1) / 1e9)
    made = [replace(one, x_range=span) if one.x_label == _TIME else one for one in made]
    return [figure for figure in made if any(panel.lines or panel.points for panel in figure.panels)]


def _figure(
    name: str, title: str, panels: Sequence[Panel], notes: Sequence[str], x_label: str = _TIME
) -> Figure:
    drawn = tuple(panel for panel in panels if panel.lines or panel.points)
    return Figure(name=name, title=title, x_label=x_label, panels=drawn, notes=tuple(notes))


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    if not len(x):
        return x, y
    return decimate(x, np.asarray(y, dtype=np.float64))


def _notes(shown: Sequence[Shown]) -> list[str]:
    return [_THINNED] if any(len(one.packets) > POINTS for one in shown) else []


_STEPS = (1, 2, 5)


def interval(span: int) -> int:
    """A round interval, ns, of which some 100 to 250 make the span; at least 1 ms."""
    step = 1_000_000
    while True:
        for factor in _STEPS:
            if span <= 250 * step * factor:
                return step * factor
        step *= 10


def _rates(one: Shown, packets: Packets, sizes: NDArray[np.uint32], every: int) -> tuple[Array, Array]:
    """Bits per second in each interval, at its end; intervals without packets are zero."""
    place = np.maximum(packets.time - one.start, 0) // every
    count = int((max(one.flow.last - one.start, 0)) // every) + 1
    total = np.bincount(place, weights=sizes, minlength=count)[:count]
    return (np.arange(count) + 1) * every / 1e9, total * 8e9 / every


def _throughput(shown: Sequence[Shown]) -> list[Figure]:
    every = interval(max(one.flow.last for one in shown) - min(one.start for one in shown))
    found: list[tuple[Shown, str, Style, tuple[Array, Array]]] = []
    for one in shown:
        data = one.data
        alone = len(shown) == 1
        if alone:
            found.append((one, "link", one.style, _rates(one, data, data.frame_len, every)))
            named = ("goodput", style(1))
        else:
            named = (one.name, one.style)
        found.append((one, *named, _rates(one, data, data.new_bytes, every)))
        if alone and one.flow.receiver.packets:
            back = one.answers
            found.append((one, "link, other direction", style(6), _rates(one, back, back.frame_len, every)))
    scale = rate_scale([float(rates.max(initial=0)) for *_, (_, rates) in found])
    lines = [
        Line(name, *_thinned(time, rates / scale.divisor), color, steps=True)
        for _, name, color, (time, rates) in found
    ]
    what = (
        "Link: bytes of frames; goodput: payload seen for the first time."
        if len(shown) == 1
        else "Goodput: payload seen for the first time, in the direction that carries more."
    )
    title = "Throughput" if len(shown) == 1 else "Goodput"
    return [
        _figure(
            "throughput",
            title,
            [Panel(title, scale.unit, tuple(lines), height=1.6)],
            [f"{what} Over intervals of {time_text(every)}."],
        )
    ]


def _outstanding(one: Shown) -> tuple[Array, Array]:
    """Bytes that the data's sender has sent and not had acknowledged, after every packet."""
    packets = one.packets
    mine = packets.direction == one.flow.main
    return one.seconds(packets.time), np.where(mine, packets.outstanding, packets.outstanding_peer).astype(
        float
    )


def _tcp(shown: Sequence[Shown]) -> list[Shown]:
    return [one for one in shown if one.flow.protocol == "tcp"]


def _inflight(shown: Sequence[Shown]) -> list[Figure]:
    lines = []
    for one in _tcp(shown):
        time, outstanding = _outstanding(one)
        lines.append(Line(one.name, *_thinned(time, outstanding / 1e3), one.style, unnamed=len(shown) == 1))
    note = "Sent and not yet acknowledged, as seen where the capture was made."
    panel = Panel("Data outstanding", "kB", tuple(lines), height=1.6)
    return [_figure("inflight", "Data outstanding", [panel], [note, *_notes(shown)])]


def _samples(answers: Packets, column: str) -> NDArray[np.bool_]:
    return np.asarray(answers.columns[column] != NONE)


def _rtt(shown: Sequence[Shown]) -> list[Figure]:
    by_time: list[Points] = []
    by_sequence: list[Points] = []
    for one in _tcp(shown):
        answers = one.answers
        matched = answers.where(_samples(answers, "rtt"))
        alone = len(shown) == 1
        if alone:
            echoed = answers.where(_samples(answers, "rtt_timestamps"))
            x, y = _thinned(one.seconds(echoed.time), echoed.rtt_timestamps / 1e6)
            by_time.append(Points("by timestamps", x, y, COLORS[5], size=3.0))
        name = "by acknowledgment" if alone else one.name
        x, y = _thinned(one.seconds(matched.time), matched.rtt / 1e6)
        by_time.append(Points(name, x, y, one.style.color, size=3.5))
        order = np.argsort(matched.ack, kind="stable")
        x, y = _thinned(matched.ack[order] / 1e6, matched.rtt[order] / 1e6)
        by_sequence.append(Points(name, x, y, one.style.color, size=3.5))
    notes = [
        "From a segment to its acknowledgment, never of one retransmitted (Karn's rule); by timestamps: from "
        "the segment whose timestamp is echoed (RFC 7323), as fine as the sender's clock. Captured near the "
        "receiver it covers only the path from there to the receiver and back.",
        *_notes(shown),
    ]
    return [
        _figure(
            "rtt",
            "Round-trip time",
            [Panel("RTT", "ms", points=tuple(by_time), height=1.6, zero=False)],
            notes,
        ),
        _figure(
            "rtt-sequence",
            "Round-trip time by sequence number",
            [Panel("RTT", "ms", points=tuple(by_sequence), height=1.6, zero=False)],
            [],
            "Sequence number acknowledged (MB)",
        ),
    ]


def _window(shown: Sequence[Shown]) -> list[Figure]:
    lines = []
    for one in _tcp(shown):
        answers = one.answers
        offered = answers.where((answers.flags & 0b110) == 0)
        window = _thinned(one.seconds(offered.time), offered.window / 1e3)
        alone = len(shown) == 1
        lines.append(Line("receive window" if alone else one.name, *window, one.style, steps=False))
        if alone:
            time, outstanding = _outstanding(one)
            lines.append(Line("outstanding", *_thinned(time, outstanding / 1e3), style(1)))
    note = (
        "The receiver's window, scaled as its SYN announced. Where outstanding data reach it, the receiver "
        "limits the flow."
    )
    panel = Panel("Window", "kB", tuple(lines), height=1.6)
    return [_figure("window", "Receive window and data outstanding", [panel], [note, *_notes(shown)])]


def _sequence(shown: Sequence[Shown]) -> list[Figure]:
    tcp = _tcp(shown)
    if len(shown) == 1:
        return [sequence_figure(one.flow, one.packets, one.start) for one in tcp]
    lines = []
    for one in tcp:
        data = one.data.where(one.data.new_bytes > 0)
        ends = (data.seq + data.payload) / 1e6
        lines.append(Line(one.name, *_thinned(one.seconds(data.time), ends), one.style))
    panel = Panel("Sequence number", "MB", tuple(lines), height=2.0)
    note = "With --flow N: acknowledgments, SACKs, retransmissions and the edge of the window too."
    return [_figure("sequence", "Sequence numbers over time", [panel], [note, *_notes(shown)])]


_CAUSES = (
    (FAST, "fast", COLORS[1]),
    (TIMEOUT, "after a timeout", COLORS[3]),
    (PROBE, "tail loss probe", COLORS[4]),
    (UNKNOWN, "cause not seen", COLORS[6]),
    (OUT_OF_ORDER, "out of order, sent once", COLORS[5]),
)


def _counted(one: Shown, times: NDArray[np.int64]) -> tuple[Array, Array]:
    """How many there were by each moment, from the flow's start to its end."""
    ends = np.array([one.flow.first, one.flow.last])
    x = np.concatenate([one.seconds(ends[:1]), one.seconds(np.sort(times)), one.seconds(ends[1:])])
    y = np.concatenate([[0], np.arange(1, len(times) + 1), [len(times)]]).astype(float)
    # A step is where it happened, not before.
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _retransmissions(shown: Sequence[Shown]) -> list[Figure]:
    lines = []
    for one in _tcp(shown):
        data = one.data
        if len(shown) == 1:
            for kind, name, color in _CAUSES:
                times = data.time[data.kind == kind]
                if len(times):
                    lines.append(Line(name, *_thinned(*_counted(one, times)), Style(color)))
        else:
            times = data.time[np.isin(data.kind, RETRANSMISSIONS)]
            lines.append(Line(one.name, *_thinned(*_counted(one, times)), one.style))
    panel = Panel("Retransmitted", "packets", tuple(lines), height=1.4)
    note = "Packets retransmitted, counted from the start of the flow, by cause."
    return [_figure("retransmissions", "Retransmissions", [panel], [note])]


_CDF_POINTS = 500


def _interarrival(shown: Sequence[Shown]) -> list[Figure]:
    sides: list[tuple[str, Callable[[Shown], Packets]]] = [
        ("Between packets, main direction", lambda one: one.data),
        ("Between packets, other direction", lambda one: one.answers),
    ]
    panels = []
    for title, side in sides:
        lines = []
        for one in shown:
            gaps = np.diff(side(one).time) / 1e6
            if len(gaps) < 2:
                continue
            shares = np.linspace(0, 1, _CDF_POINTS)
            # The last half percent would squeeze all the rest into the first pixels.
            values = np.quantile(gaps, shares * 0.995)
            lines.append(Line(one.name, values, shares * 0.995, one.style))
        panels.append(Panel(title, "ms", tuple(lines), top=1.0))
    drawn = tuple(panel for panel in panels if panel.lines)
    note = "Share of the gaps between one packet and the next at or below each value, up to 99.5 %."
    return [Figure("interarrival", "Interarrival times", "", drawn, notes=(note,), columns=2)]


_MAKERS: dict[str, Callable[[Sequence[Shown]], list[Figure]]] = {
    "throughput": _throughput,
    "inflight": _inflight,
    "rtt": _rtt,
    "window": _window,
    "sequence": _sequence,
    "retransmissions": _retransmissions,
    "interarrival": _interarrival,
}
