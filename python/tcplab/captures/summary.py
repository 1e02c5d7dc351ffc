"""The flows of a capture and what was read of it, without a data frame library: for the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.captures.flow import Flow, flow_of
from tcplab.captures.opening import CaptureError, core_path, filter_words, refused


@dataclass(frozen=True)
class Summary:
    """A capture, summarised."""

    path: Path
    flows: list[Flow]
    facts: dict[str, Any]
    raw: list[dict[str, Any]]
    """The flows as the core says them."""

    def flow(self, number: int) -> Flow:
        """A flow by its number. Raises CaptureError if there is none."""
        for flow in self.flows:
            if flow.number == number:
                return flow
        raise CaptureError(f"{self.path}: there is no flow {number}{_which(self.flows)}")


def _which(flows: list[Flow]) -> str:
    if not flows:
        return ": there are none"
    numbers = [flow.number for flow in flows]
    return (
        f": there is flow {numbers[0]}" if len(numbers) == 1 else f": there are {numbers[0]} to {numbers[-1]}"
    )


def summarise(path: Path, filter_text: str | None = None) -> Summary:
    """Read a capture and summarise its flows. Raises CaptureError."""
    from tcplab import _core

    try:
        raw, facts = _core.summarise(core_path(path), filter_text, len(os.sched_getaffinity(0)))
    except _core.FilterError as error:
        raise filter_words(filter_text or "", error) from None
    except (OSError, _core.CaptureError) as error:
        raise refused(path, error) from None
    return Summary(path, [flow_of(one) for one in raw], facts, raw)
