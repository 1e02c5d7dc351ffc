"""The round trips of one client at one size, whether each is known or only their histogram and order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]


def _none() -> Array:
    return np.empty((0, 2))


@dataclass(frozen=True)
class Series:
    """Times in ns."""

    client: int
    size: int
    """Bytes of a message."""
    rtts: Array
    """Of the first round trips, or of all: one by one, in order."""
    buckets: Array = field(default_factory=_none)
    """Of the others: round-trip time, and how often it occurred, in rows."""
    batches: Array = field(default_factory=_none)
    """The others in their order: mean of consecutive ones, and how many, in rows."""
    repetition: int = 1
    """Of the run. Clients of different ones were not there at the same time."""

    @property
    def count(self) -> int:
        """Round trips."""
        return len(self.rtts) + int(self.buckets[:, 1].sum())

    def without(self, warmup: int) -> Series:
        """The series without its first round trips; only those known one by one can be left out."""
        if warmup == 0:
            return self
        return replace(self, rtts=self.rtts[warmup:])

    def weighted(self) -> tuple[Array, Array]:
        """Round-trip times and how often each occurred."""
        values = np.concatenate([self.rtts, self.buckets[:, 0]])
        return values, np.concatenate([np.ones(len(self.rtts)), self.buckets[:, 1]])

    @property
    def total(self) -> float:
        """Sum of all round-trip times. Batches keep it exactly, where buckets are 0.1 % wide."""
        return float(self.rtts.sum() + (self.batches[:, 0] * self.batches[:, 1]).sum())

    def in_order(self) -> Array:
        """Means of stretches of equal length, in order, for judging how one depends on the next."""
        if not len(self.batches):
            return self.rtts
        whole = self.batches[:, 1] == self.batches[0, 1]
        return np.asarray(self.batches[whole, 0])


def from_tables(echoes: pl.DataFrame, batches: pl.DataFrame) -> list[Series]:
    """The series in the rows of one flow in the tables `echoes` and `echo_batches`.

    Repetitions count as further clients.
    """
    keys = [name for name in ("repetition", "client", "size") if name in echoes.columns]
    ordered = {
        key: part.select("rtt_mean", "count").to_numpy().astype(np.float64)
        for key, part in batches.sort("iteration").partition_by(keys, as_dict=True).items()
    }
    found = []
    clients: dict[tuple[Any, ...], int] = {}
    parts = echoes.partition_by(keys, as_dict=True, maintain_order=True)
    for key, part in sorted(parts.items()):
        single = part["iteration"].is_not_null()
        rtts = part.filter(single).sort("iteration")["rtt"].to_numpy().astype(np.float64)
        many = part.filter(~single).select("rtt", "count").to_numpy().astype(np.float64)
        client = clients.setdefault(key[:-1], len(clients))
        buckets, batched = many.reshape(-1, 2), ordered.get(key, _none())
        repetition = int(key[0]) if keys[0] == "repetition" else 1
        found.append(Series(client, int(key[-1]), rtts, buckets, batched, repetition))
    return found


def from_events(events: Iterable[dict[str, Any]]) -> list[Series]:
    """The series that an agent's `series` events carry."""
    return [
        Series(
            int(event["client"]),
            int(event["size"]),
            np.array([rtt for _, rtt in event["rounds"]], dtype=np.float64),
            np.array(event["buckets"], dtype=np.float64).reshape(-1, 2),
            np.array([(mean, count) for _, _, count, mean, _ in event["batches"]]).reshape(-1, 2),
        )
        for event in events
        if event["event"] == "series"
    ]
