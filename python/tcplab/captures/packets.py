"""Every packet of chosen flows, as arrays: what figures, ladders and tables of packets are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcplab.captures.errors import core_path, refused

NONE = np.iinfo(np.int64).min
"""Stands in a column of integers where there is no value."""

KINDS = (
    "control",
    "new",
    "after a gap",
    "fast retransmission",
    "retransmission after timeout",
    "tail loss probe",
    "retransmission",
    "out of order",
    "duplicate",
    "keep-alive",
    "out of window",
)
"""A packet's role in its flow; the column `kind` is an index into these."""

FAST, TIMEOUT, PROBE, UNKNOWN = 3, 4, 5, 6
RETRANSMISSIONS = (FAST, TIMEOUT, PROBE, UNKNOWN)
OUT_OF_ORDER = 7

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))


@dataclass(frozen=True)
class Packets:
    """Packets as columns; times are ns since 1970, numbers relative to the handshake."""

    columns: dict[str, NDArray[Any]]
    sacks: dict[str, NDArray[Any]]
    """SACK blocks: `row` of the packet that carries it, `left`, `right` edge."""

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self.columns[name]
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self.columns["packet"])

    def where(self, keep: NDArray[np.bool_]) -> Packets:
        """The packets for which `keep` is true, with their SACK blocks."""
        place = np.cumsum(keep) - 1
        stays = keep[self.sacks["row"]] if len(self.sacks["row"]) else np.zeros(0, dtype=bool)
        sacks = {name: values[stays] for name, values in self.sacks.items()}
        sacks["row"] = place[sacks["row"]] if len(sacks["row"]) else sacks["row"]
        return Packets({name: values[keep] for name, values in self.columns.items()}, sacks)

    def of_flow(self, number: int) -> Packets:
        """One flow's packets."""
        return self.where(self.columns["flow"] == number)

    def by_flow(self) -> dict[int, Packets]:
        """Each flow's packets."""
        order = np.argsort(self.columns["flow"], kind="stable")
        columns = {name: values[order] for name, values in self.columns.items()}
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        rows = place[self.sacks["row"]]
        by_row = np.argsort(rows, kind="stable")
        sacks = {name: values[by_row] for name, values in {**self.sacks, "row": rows}.items()}
        numbers, begins = np.unique(columns["flow"], return_index=True)
        found = {}
        for number, begin, end in zip(numbers, begins, [*begins, len(order)][1:], strict=True):
            first, last = np.searchsorted(sacks["row"], (begin, end))
            own = {name: values[first:last] for name, values in sacks.items()}
            found[int(number)] = Packets(
                {name: values[begin:end] for name, values in columns.items()},
                {**own, "row": own["row"] - begin},
            )
        return found

    def sent(self, direction: int) -> Packets:
        """One direction's packets."""
        return self.where(self.columns["direction"] == direction)


def follow(path: Path, flows: Sequence[int] | None = None) -> tuple[Packets, dict[str, Any]]:
    """The packets of these flows (None: all) and what was read of the capture. Raises CaptureError."""
    from tcplab import _core

    try:
        raw, facts = _core.follow(core_path(path), None if flows is None else list(flows))
    except (OSError, _core.CaptureError) as error:
        raise refused(path, error) from None
    arrays = {name: np.frombuffer(data, dtype=code) for name, (code, data) in raw.items()}
    sacks = {
        name.removeprefix("sack_"): arrays.pop(name) for name in list(arrays) if name.startswith("sack_")
    }
    sacks["row"] = sacks["row"].astype(np.int64)
    return Packets(arrays, sacks), facts
