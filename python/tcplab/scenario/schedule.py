"""When flows stop and when the run ends.

A flow stops at its `stop`, or after its `duration`. One that says neither ends by itself if it has a
number of bytes, requests or messages, and else goes on to the end of the scenario. That is the scenario's
`duration`, or else when the last flow stops that says so, or else 30 s. Without a `duration`, flows that
end by themselves may take until `timeout`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .flows import AnyFlow
from .model import Scenario

DEFAULT_DURATION = 30_000_000_000


@dataclass(frozen=True)
class Schedule:
    """Times in ns."""

    stops: list[int | None]
    """Per flow; none: when its work is done."""
    end: int
    """When flows stop that go on to the end."""
    limit: int
    """When the run ends at the latest."""


def schedule(scenario: Scenario) -> Schedule:
    """The times of a scenario."""
    own = [flow.stop if flow.duration is None else flow.start + flow.duration for flow in scenario.flows]
    works = [_ends_by_itself(flow) for flow in scenario.flows]
    if scenario.duration is not None:
        end = limit = scenario.duration
    else:
        end = limit = max((stop for stop in own if stop is not None), default=DEFAULT_DURATION)
        if any(work and stop is None for work, stop in zip(works, own, strict=True)):
            limit = max(end, scenario.timeout)
    stops = [end if stop is None and not work else stop for work, stop in zip(works, own, strict=True)]
    return Schedule(stops, end, limit)


def _ends_by_itself(flow: AnyFlow) -> bool:
    return any(getattr(flow, work, None) is not None for work in ("bytes", "count", "iterations"))
