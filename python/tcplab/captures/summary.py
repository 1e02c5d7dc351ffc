"""The flows of a capture and what was read of it, without a data frame library: for the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.captures.errors import CaptureError, core_path, filter_words, refused
from tcplab.captures.flow import Flow
from tcplab.captures.flows import Flows


@dataclass(frozen=True)
class Summary:
    """A capture, summarised."""

    path: Path
    flows: Flows
    facts: dict[str, Any]

    def flow(self, number: int) -> Flow:
        """A flow by its number. Raises CaptureError if there is none."""
        return self.only(number)[0]

    def only(self, number: int) -> Flows:
        """One flow by its number, as flows. Raises CaptureError if there is none."""
        found = self.flows.of_number(number)
        if not found:
            raise CaptureError(f"{self.path}: unknown flow {number}{_which(self.flows)}")
        return found


def _which(flows: Flows) -> str:
    if not flows:
        return ": there are none"
    first, last = flows[0].number, flows[-1].number
    return f": the flows are {first}" if len(flows) == 1 else f": there are {first} to {last}"


def summarise(path: Path, filter_text: str | None = None) -> Summary:
    """Read a capture and summarise its flows. Raises CaptureError."""
    from tcplab import _core

    try:
        flows, facts = _core.summarise(core_path(path), filter_text, len(os.sched_getaffinity(0)))
    except _core.FilterError as error:
        raise filter_words(filter_text or "", error) from None
    except (OSError, _core.CaptureError) as error:
        raise refused(path, error) from None
    return Summary(path, Flows(flows), facts)
