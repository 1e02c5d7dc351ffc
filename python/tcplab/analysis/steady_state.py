"""The steady state: which part of each flow the figures are taken from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

from tcplab.analysis.samples import Samples, once
from tcplab.analysis.statistics import mser5
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Plan
from tcplab.scenario.quantity import value_of


@dataclass(frozen=True)
class Window:
    """The steady part of one flow in one repetition, ns."""

    start: float
    end: float
    warm_up: float
    """The warm-up left out at the flow's start."""
    note: str = ""
    """Why the warm-up is not the one asked for; else empty."""

    @property
    def length(self) -> float:
        """Nanoseconds."""
        return self.end - self.start


def asked_omit(plan: Plan, omit: int | str | None) -> int | str:
    """The warm-up asked for, ns from a flow's start or `auto`: the caller's, else the plan's, else none.

    The caller's may be a time such as `10 s`. Raises QuantityError, a ValueError, for another text,
    ValueError for a negative number, and TypeError for one that is not an integer: it may be of seconds.
    """
    if isinstance(omit, str):
        return omit if omit == "auto" else int(value_of("time", omit))
    if omit is not None:
        if not isinstance(omit, Integral):
            raise TypeError(f"omit={omit!r}: a warm-up is a time such as '10 s', or an integer of ns")
        if omit < 0:
            raise ValueError(f"omit={omit!r}: it is at least 0")
        return int(omit)
    planned = plan.get("omit")
    return 0 if planned is None else planned


@once
def steady_window(samples: Samples, flow: str, omit: int | str) -> Window | None:
    """The part of a flow after its warm-up; None when the flow was never active.

    `auto` is MSER-5 on the goodput of its intervals, if the flow delivers anything after it. A warm-up as
    long as the flow leaves nothing to judge: then nothing is left out, and the window says so.
    """
    span = samples.span(flow)
    if span is None:
        return None
    start, end = span
    if omit == "auto":
        goodput = samples.goodput(flow).between(start, end)
        cut = mser5(goodput.value)
        # A short transfer over a long path delivers all it has before the intervals that MSER-5 finds steady.
        if not goodput.value[cut:].any():
            cut = 0
        warm_up = float(goodput.time[cut - 1]) - start if cut else 0.0
        return Window(start + warm_up, end, warm_up)
    warm_up = float(omit)
    if warm_up >= end - start:
        note = f"{flow} ended within the warm-up asked for; nothing of it is left out" if warm_up else ""
        return Window(start, end, 0.0, note)
    return Window(start + warm_up, end, warm_up)


def windows_of_load(samples: Samples, windows: Mapping[str, Window | None]) -> list[Window]:
    """The steady states of the flows that load a link: probes have no warm-up. Without any, those of all."""
    known = {flow: window for flow, window in windows.items() if window}
    loading = [
        window
        for flow, window in known.items()
        if window.length > 0 and kind_of(samples.plan_flow(flow)).moves_payload
    ]
    return loading or list(known.values())
