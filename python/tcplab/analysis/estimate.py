"""One figure of a summary: its value, its interval, what it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tcplab.analysis.samples import Series
from tcplab.analysis.statistics import Grade, Interval, batch_means, grade, mean_interval


@dataclass(frozen=True)
class Estimate:
    """A figure over the repetitions of a run."""

    interval: Interval
    values: tuple[float, ...]
    """The figure of each repetition."""

    @property
    def value(self) -> float:
        """The mean over repetitions."""
        return self.interval.value

    @property
    def n(self) -> int:
        """Repetitions."""
        return len(self.values)

    @property
    def grade(self) -> Grade:
        """How far it can be relied upon."""
        return grade(self.values)

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return not math.isnan(self.value)

    def to_json(self) -> dict[str, Any]:
        """Plain data; null for what is not known."""
        return {
            "value": _plain(self.interval.value),
            "low": _plain(self.interval.low),
            "high": _plain(self.interval.high),
            "n": self.n,
            "grade": self.grade,
            "method": self.interval.method,
            "repetitions": [_plain(value) for value in self.values],
        }


def estimate(values: Sequence[float], level: float, series: Series | None = None) -> Estimate:
    """A figure from its value in each repetition.

    With one repetition the interval is that of the batch means of `series`, whose mean the figure is.
    """
    known = tuple(value for value in values if not math.isnan(value))
    interval = mean_interval(known, level)
    if len(known) == 1 and series is not None and len(series) > 1:
        over = batch_means(series.value, level).interval
        half = over.half_width
        interval = Interval(known[0], known[0] - half, known[0] + half, 1, over.method)
    return Estimate(interval, known)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
