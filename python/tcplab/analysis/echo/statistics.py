"""Mean, spread, bounds and percentiles of round trips, size by size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tcplab.analysis.echo.round_trips import Array, Series
from tcplab.analysis.statistics import autocorrelation, batch_means, weighted_quantiles
from tcplab.analysis.statistics.intervals import t_quantile

# How much wider the interval by batch means must be before it is said that Student's t is too sure.
_WIDER = 1.25


@dataclass(frozen=True)
class SizeStatistics:
    """The round trips at one size; times in ns, NaN where there is none."""

    size: int
    count: int
    mean: float
    deviation: float
    """Standard deviation."""
    low: float
    """Lower confidence bound of the mean, by Student's t as if all round trips were independent."""
    high: float
    batch_low: float
    """Lower bound by batch means, which holds where one round trip depends on the one before."""
    batch_high: float
    correlation: float
    """Lag-1 autocorrelation of the series, or of its batches where they are longer than one."""
    minimum: float
    median: float
    p90: float
    p99: float
    p999: float
    maximum: float
    rate: float
    """Round trips per second, all clients of a repetition together, while they were under way."""
    first: float
    """Mean of the clients' first round trip at this size."""

    @property
    def autocorrelated(self) -> bool:
        """Whether Student's t is too sure of the mean, because round trips depend on each other."""
        wider = self.batch_high - self.batch_low > _WIDER * (self.high - self.low)
        return wider and abs(self.correlation) > 1.96 / math.sqrt(max(1, self.count))

    @property
    def throughput(self) -> float:
        """Payload one way, bit/s."""
        return self.rate * self.size * 8

    def to_json(self) -> dict[str, Any]:
        """Plain data; null for what is not known."""
        known = {key: None if math.isnan(value) else value for key, value in asdict(self).items()}
        return {**known, "throughput": self.throughput, "autocorrelated": self.autocorrelated}


_FIGURES = (
    *("mean", "deviation", "low", "high", "batch_low", "batch_high"),
    *("correlation", "minimum", "median", "p90", "p99", "p999", "maximum"),
)


@dataclass(frozen=True)
class Echoes:
    """One test: some clients, some sizes."""

    label: str
    clients: int
    iterations: int
    warmup: int
    """So many of the first messages of each size are left out of `sizes`."""
    level: float
    """Confidence level of all bounds."""
    sizes: tuple[SizeStatistics, ...]
    whole: tuple[SizeStatistics, ...]
    """With the warm-up; the same where there is none."""
    series: tuple[Series, ...] = field(repr=False)

    def at(self, size: int) -> SizeStatistics | None:
        """The statistics of one size."""
        return next((one for one in self.sizes if one.size == size), None)

    def of_size(self, size: int) -> list[Series]:
        """The series of all clients at one size."""
        return [one for one in self.series if one.size == size]


def statistics(
    series: Iterable[Series],
    *,
    clients: int,
    iterations: int,
    warmup: int = 0,
    # That of the published study.
    level: float = 0.98,
    label: str = "",
) -> Echoes:
    """The statistics of a test, pooled over its clients."""
    known = tuple(series)
    sizes = list(dict.fromkeys(one.size for one in sorted(known, key=lambda one: one.size)))
    whole = tuple(size_statistics([one for one in known if one.size == size], level) for size in sizes)
    kept = whole
    if warmup:
        kept = tuple(
            size_statistics(
                [one.without(warmup) for one in known if one.size == size], level, first=before.first
            )
            for size, before in zip(sizes, whole, strict=True)
        )
    return Echoes(label, clients, iterations, warmup, level, kept, whole, known)


def size_statistics(series: Sequence[Series], level: float, *, first: float | None = None) -> SizeStatistics:
    """The statistics of some clients' round trips at one size."""
    parts = [one.weighted() for one in series]
    values = np.concatenate([value for value, _ in parts])
    weights = np.concatenate([weight for _, weight in parts])
    count = int(weights.sum())
    if first is None:
        firsts = [one.rtts[0] for one in series if len(one.rtts)]
        first = float(np.mean(firsts)) if firsts else math.nan
    size = series[0].size
    if count == 0:
        unknown = dict.fromkeys(_FIGURES, math.nan)
        return SizeStatistics(size=size, count=0, rate=0.0, first=first, **unknown)
    mean = sum(one.total for one in series) / count
    squares = float((weights * (values - mean) ** 2).sum())
    deviation = math.sqrt(squares / (count - 1)) if count > 1 else math.nan
    half = t_quantile(level, count - 1) * deviation / math.sqrt(count) if count > 1 else math.nan
    together = _together(series)
    batch = batch_means(together, level).interval
    quantiles = weighted_quantiles(values, [0.5, 0.9, 0.99, 0.999], weights)
    return SizeStatistics(
        size=size,
        count=count,
        mean=mean,
        deviation=deviation,
        low=mean - half,
        high=mean + half,
        batch_low=mean - batch.half_width,
        batch_high=mean + batch.half_width,
        correlation=autocorrelation(together),
        minimum=float(values.min()),
        median=float(quantiles[0]),
        p90=float(quantiles[1]),
        p99=float(quantiles[2]),
        p999=float(quantiles[3]),
        maximum=float(values.max()),
        rate=sum(one.count / one.total * 1e9 for one in series if one.count)
        / len({one.repetition for one in series}),
        first=first,
    )


def _together(series: Sequence[Series]) -> Array:
    """The clients' series averaged step by step: clients at one time share what slows them down."""
    steps = [one.in_order() for one in series if one.count]
    shortest = min(map(len, steps))
    return np.asarray(np.mean([one[:shortest] for one in steps], axis=0))
