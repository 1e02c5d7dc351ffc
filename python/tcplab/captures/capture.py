"""A capture from Python: its flows and their packets as polars frames."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.captures.columns import chosen
from tcplab.captures.frames import packets_frame
from tcplab.captures.packets import follow
from tcplab.captures.summary import Summary, summarise
from tcplab.quantities import plural

if TYPE_CHECKING:
    import polars as pl

    from tcplab.captures.flow import Flow

# Flows that a notebook shows.
_MAX_SHOWN = 100


class Capture:
    """A capture that has been read."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    @property
    def path(self) -> Path:
        """Its file."""
        return self._summary.path

    @property
    def facts(self) -> dict[str, Any]:
        """Packets read, by outcome, and how the capture ended."""
        return self._summary.facts

    @property
    def remarks(self) -> list[str]:
        """Warnings on parts that could not be read; empty if there are none."""
        from tcplab.captures.warnings import remarks

        return list(remarks(self.facts))

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow."""
        return self._summary.flows.frame()

    def flow(self, number: int) -> Flow:
        """One flow. Raises CaptureError if there is none of this number."""
        return self._summary.flow(number)

    def __iter__(self) -> Any:
        return iter(self._summary.flows)

    def __len__(self) -> int:
        return len(self._summary.flows)

    def series(self, flows: int | Iterable[int] | None = None) -> pl.DataFrame:
        """A row per packet of a flow, of several, or of all that it has.

        Raises CaptureError for an unknown flow.
        """
        asked = self.flows["flow"] if flows is None else flows
        # Integers of NumPy are not Python's own.
        numbers = [index(number) for number in (asked if isinstance(asked, Iterable) else [asked])]
        for number in () if flows is None else numbers:
            self.flow(number)
        packets, _ = follow(self.path, numbers)
        return packets_frame(packets)

    def _repr_html_(self) -> str:
        from tcplab.present.notebook import capture_html
        from tcplab.present.text_table import Heading

        shown = self._summary.flows[:_MAX_SHOWN]
        columns = chosen(shown, 0)
        rows = [[column.show(flow) for column in columns] for flow in shown]
        headings = [Heading(column.title, numeric=not column.left) for column in columns]
        return capture_html(str(self.path), self._counts, headings, rows, self.remarks)

    @property
    def _counts(self) -> str:
        return f"{self.facts['packets']:,} packets, {plural(len(self), 'flow')}"

    def __repr__(self) -> str:
        return f"<Capture {str(self.path)!r}: {self._counts}>"


def read(path: str | os.PathLike[str], *, filter: str | None = None) -> Capture:  # noqa: A002 - as --filter
    """Read a capture: pcap or pcapng, plain, gzip or zstd.

    `filter` keeps the flows it means, as "port 5201 and host 10.0.0.1". Raises CaptureError.
    """
    return Capture(summarise(Path(path), filter))
