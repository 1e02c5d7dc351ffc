"""Another host's clock against ours, from exchanges of the time (RFC 5905, section 8).

Each exchange proves an interval. The other clock was read after we asked and before its answer came, so its
lead lies between (read - received) and (read - asked), however unlike the two directions are. The shortest
exchange gives the best estimate, and half its length bounds the error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Two clocks drift apart by no more, s a second, unless exchanges prove it: the frequency of each is corrected
# by 500 ppm at most, and only its tick by more (adjtimex(2)).
_USUAL = 1e-3
_MIN_EXCHANGES = 3


@dataclass(frozen=True)
class Exchange:
    """One reading of the other clock. Times in ns."""

    asked: int
    """On our clock."""
    read: int
    """On theirs."""
    received: int
    """On ours."""

    @property
    def length(self) -> int:
        """Round trip, ns."""
        return self.received - self.asked

    @property
    def offset(self) -> int:
        """Their clock less ours, ns, within half the length."""
        return self.read - (self.asked + self.received) // 2


@dataclass(frozen=True)
class Drift:
    """How fast the other clock leaves ours."""

    rate: float
    """Their seconds beyond ours, a second: 1e-6 is one part per million."""
    bound: float
    """Its error at most."""


class Clock:
    """A host's clock, as estimated from exchanges with it."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Take the next exchange."""
        self._exchanges.append(exchange)

    @property
    def count(self) -> int:
        """Exchanges so far."""
        return len(self._exchanges)

    def best(self) -> Exchange:
        """The shortest exchange; ValueError when there is none."""
        return min(self._exchanges, key=lambda one: one.length)

    def drift(self) -> Drift | None:
        """From the best exchanges in the first and last third of the time; none when these are too few."""
        if len(self._exchanges) < _MIN_EXCHANGES:
            return None
        begin, end = self._exchanges[0].asked, self._exchanges[-1].asked
        third = (end - begin) / 3
        early = (one for one in self._exchanges if one.asked <= begin + third)
        late = (one for one in self._exchanges if one.asked >= end - third)
        first, last = (min(those, key=lambda one: one.length) for those in (early, late))
        # While theirs advanced by this, ours advanced by the gap between the two exchanges or more, and by
        # the span of both or less.
        theirs = last.read - first.read
        gap, span = last.asked - first.received, last.received - first.asked
        if gap <= 0:
            return None
        low, high = theirs / span - 1, theirs / gap - 1
        if low <= _USUAL and high >= -_USUAL:
            low, high = max(low, -_USUAL), min(high, _USUAL)
        return Drift((low + high) / 2, (high - low) / 2)

    def offset_at(self, instant: int) -> tuple[int, int]:
        """Their clock less ours at an instant of ours, and the error at most, both ns.

        The exchange before or after it that bounds it best: what lies between may have drifted by as much as
        has been measured, with its own error.
        """
        drift = self.drift() or Drift(0.0, _USUAL)

        def bounded(one: Exchange) -> tuple[int, int]:
            apart = instant - (one.asked + one.received) // 2
            offset = one.offset + round(drift.rate * apart)
            # Their clock was read up to half the length away from the exchange's middle.
            fastest = abs(drift.rate) + drift.bound
            return offset, math.ceil(one.length / 2 * (1 + fastest) + drift.bound * abs(apart)) + 1

        return min((bounded(one) for one in self._exchanges), key=lambda found: found[1])
