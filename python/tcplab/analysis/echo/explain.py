"""Causes of the steps in a curve of round-trip time against message size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tcplab.analysis.echo.statistics import Echoes, SizeStatistics

# Linux delays an ACK by 40 ms (TCP_DELACK_MIN) up to 200 ms, and waits at least 200 ms before it retransmits
# (TCP_RTO_MIN). Timers fire up to some ms late. With both ends set alike, an echo may wait once on each way.
_DELAYED_ACK = (36e6, 60e6)
_BOTH_WAYS = (76e6, 120e6)
_TIMEOUT = (195e6, 260e6)
# A first round trip this much longer than the median is worth a sentence.
_COLD = 1.3


@dataclass(frozen=True)
class Path:
    """Known properties of the path; times in ns, rates in bit/s, None where unknown."""

    mss: int | None = None
    """Payload of a full segment, bytes, options taken off."""
    headers: int = 66
    """Bytes of a frame besides its payload: Ethernet 14, IPv4 20, TCP 20 and 12 for timestamps."""
    initial_window: int = 10
    rate: float | None = None
    """Minimum rate towards the server."""
    rate_back: float | None = None
    delay: float | None = None
    """Round-trip propagation."""

    def frames(self, size: int) -> int:
        """Bytes a message takes on the wire, headers included."""
        return size + self.headers * (math.ceil(size / self.mss) if self.mss else 1)

    def serialisation(self, size: int) -> float | None:
        """Time to send a message and its echo, each once on the slowest link of its way, ns."""
        if not self.rate or not self.rate_back or not self.mss:
            return None
        return self.frames(size) * 8e9 * (1 / self.rate + 1 / self.rate_back)

    def expected(self, size: int) -> float | None:
        """Round-trip time of a single client's message when nothing else takes time, ns."""
        sent = self.serialisation(size)
        return None if sent is None or self.delay is None else sent + self.delay


@dataclass(frozen=True)
class Step:
    """Something to see in the curve, and why."""

    kind: str
    """segment, window, serialisation, sharing, delayed ACK, timeout, first, dependence"""
    text: str


def explain(echoes: Echoes, path: Path) -> list[Step]:
    """Explain a test's results, most important first."""
    if not echoes.sizes:
        return []
    finders: tuple[Callable[[Echoes, Path], Iterator[Step]], ...] = (
        _stalls,
        _segments,
        _serialisation,
        _sharing,
        _window,
        _first,
        _dependence,
    )
    return [step for find in finders for step in find(echoes, path)]


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms" if ns < 1e9 else f"{ns / 1e9:.3g} s"


def _stalls(echoes: Echoes, path: Path) -> Iterator[Step]:
    """Round trips that took longer than the others by just what a timer takes."""
    for kind, (low, high), cause in (
        (
            "delayed ACK",
            _DELAYED_ACK,
            "about 40 ms longer than the rest: a delayed-ACK or Nagle stall. The sender waited for an ACK "
            "that the receiver held back (TCP_DELACK_MIN is 40 ms). Nagle's algorithm off (`nagle: off`, "
            "--nodelay), larger windows, or writing each message in one call avoid it",
        ),
        (
            "timeout",
            _TIMEOUT,
            "about 200 ms longer than the rest: a retransmission timeout (TCP_RTO_MIN is 200 ms), so packets "
            "were lost at the end of a message",
        ),
    ):
        found = {one.size: _stalled(echoes, one, low, high) for one in echoes.sizes}
        found = {size: count for size, count in found.items() if count}
        if found:
            total = sum(found.values())
            sizes = ", ".join(str(size) for size in found)
            trips = "1 round trip" if total == 1 else f"{total} round trips"
            yield Step(kind, f"{trips} (at {sizes} B) took {cause}.")
    for one in echoes.sizes:
        expected = path.expected(one.size)
        if echoes.clients != 1 or not expected:
            continue
        if any(low < one.median - expected < high for low, high in (_DELAYED_ACK, _BOTH_WAYS)):
            yield Step(
                "delayed ACK",
                f"At {one.size} B every other round trip or more takes {_ms(one.median - expected)} longer "
                "than the path explains: a delayed-ACK or Nagle stall in nearly every exchange "
                "(TCP_DELACK_MIN is 40 ms).",
            )


def _stalled(echoes: Echoes, one: SizeStatistics, low: float, high: float) -> int:
    """How many stand apart: between them and the others there is a gap, or it is only a wide distribution."""
    parts = [series.weighted() for series in echoes.of_size(one.size)]
    values = np.concatenate([value for value, _ in parts]) - one.median
    weights = np.concatenate([weight for _, weight in parts])
    inside = float(weights[(values > low) & (values < high)].sum())
    before = float(weights[(values > low / 3) & (values <= low)].sum())
    return int(inside) if inside > 2 * before else 0


def _segments(echoes: Echoes, path: Path) -> Iterator[Step]:
    if not path.mss:
        return
    small = [one for one in echoes.sizes if one.size <= path.mss]
    large = [one for one in echoes.sizes if one.size > path.mss]
    if not small or not large:
        return
    last, first = small[-1], large[0]
    number = math.ceil(first.size / path.mss)
    yield Step(
        "segment",
        f"Segment boundary: up to {last.size} B a message is one segment (MSS {path.mss} B) and takes "
        f"{_ms(last.median)}. {first.size} B are {number} segments, each with {path.headers} B of headers, "
        f"and take {_ms(first.median)}.",
    )


def _serialisation(echoes: Echoes, path: Path) -> Iterator[Step]:
    minimum, maximum = echoes.sizes[0], echoes.sizes[-1]
    a, b = path.serialisation(minimum.size), path.serialisation(maximum.size)
    if a is None or b is None or b <= a or echoes.clients != 1:
        return
    slope = maximum.median - minimum.median
    text = (
        f"Serialisation: from {minimum.size} to {maximum.size} B the median grows by {_ms(slope)}. To send "
        f"that much more both ways at the links' rates takes {_ms(b - a)}, which explains "
        f"{100 * min(1.0, (b - a) / slope):.0f} % of it."
        if slope > 0
        else ""
    )
    if text:
        base = minimum.median - a
        knee = next((one.size for one in echoes.sizes if (path.serialisation(one.size) or 0) > base), None)
        if knee and knee > minimum.size:
            text += f" From {knee} B on it outweighs everything else, which takes {_ms(base)}."
        yield Step("serialisation", text)


def _sharing(echoes: Echoes, path: Path) -> Iterator[Step]:
    maximum = echoes.sizes[-1]
    both = path.serialisation(maximum.size)
    if echoes.clients < 2 or both is None or not path.rate or not path.rate_back:
        return
    slower = path.frames(maximum.size) * 8e9 / min(path.rate, path.rate_back) * echoes.clients
    share = maximum.throughput / min(path.rate, path.rate_back)
    if share > 0.5:
        yield Step(
            "sharing",
            f"Sharing: {echoes.clients} clients fill {100 * share:.0f} % of the slower direction with "
            f"payload of {maximum.size} B messages. One message of each takes {_ms(slower)} there; the "
            f"median round trip is {_ms(maximum.median)}. From here on it grows with the number of clients.",
        )


def _window(echoes: Echoes, path: Path) -> Iterator[Step]:
    if not path.mss:
        return
    room = path.initial_window * path.mss
    beyond = [one for one in echoes.sizes if one.size > room]
    if not beyond:
        return
    one = max(beyond, key=lambda each: each.first / each.median)
    text = f"Initial window: messages above {room} B ({path.initial_window} segments) do not fit it. "
    if one.first > _COLD * one.median:
        text += (
            f"The first one of {one.size} B took {_ms(one.first)}, {one.first / one.median:.2g} times the "
            "median, while the congestion window grew; later ones find it open."
        )
    else:
        text += (
            "Yet their first round trips took no longer than the others: the window grows while the first "
            "segments are still being sent, or had grown before."
        )
    yield Step("window", text)


def _first(echoes: Echoes, path: Path) -> Iterator[Step]:
    first = echoes.sizes[0]
    ratio = first.first / first.median
    if ratio > _COLD:
        remark = (
            f"{echoes.warmup} of each size are left out" if echoes.warmup else "they count in the statistics"
        )
        yield Step(
            "first",
            f"First round trips: the first of each connection ({first.size} B) took {_ms(first.first)}, "
            f"{ratio:.2g} times the median: address resolution, cold caches, sleeping CPUs, and "
            f"connections that still acknowledge at once. They have a figure of their own; {remark}.",
        )


def _dependence(echoes: Echoes, path: Path) -> Iterator[Step]:
    sizes = [one for one in echoes.sizes if one.autocorrelated]
    if sizes:
        worst = max(sizes, key=lambda one: (one.batch_high - one.batch_low) / (one.high - one.low))
        ratio = (worst.batch_high - worst.batch_low) / (worst.high - worst.low)
        listed = ", ".join(str(one.size) for one in sizes)
        yield Step(
            "dependence",
            f"Dependence: at {listed} B each round trip resembles the one before, so that Student's t is too "
            f"sure of the mean. By batch means the bounds are up to {ratio:.2g} times as far apart (at "
            f"{worst.size} B: {_ms(worst.batch_low)} to {_ms(worst.batch_high)}).",
        )
