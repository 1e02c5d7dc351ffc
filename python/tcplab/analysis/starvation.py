"""How a flow fares beside all others on its bottleneck, those that do not yield included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcplab.analysis.samples import Samples
from tcplab.analysis.statistics import max_min, starvation_episodes
from tcplab.analysis.steady_state import Window
from tcplab.plan.frames import payload_share
from tcplab.plan.kinds import kind_of
from tcplab.plan.paths import mean_rate, settings

Vector = NDArray[np.float64]

_SECOND = 1e9
# A flow with at least this much of its fair share is treated fairly; with more than 1/0.8 = 125 % it takes
# from others.
FAIR = 0.8
STARVED = 0.05


@dataclass(frozen=True)
class Faring:
    """One flow's share; times in ns since the run's start."""

    share: float
    """Its goodput over its fair share of the bottleneck's capacity; NaN without a rate."""
    starved: float
    """How long it had under 5 % of it, for 1 s or longer at a time; NaN where no other flow could take it."""
    began: float
    """When that first began; NaN: never."""
    ended: float
    """When it last ended; NaN: never."""


def faring(samples: Samples, flow: str, goodput: float, steady: Window | None = None) -> Faring | None:
    """How a flow fared with its goodput in the steady state; None for one alone, or without a rate.

    The fair share is the max-min share of the bottleneck's capacity among the sources that were active
    (each stream is one), whether they yield to congestion or not. One that sends at a rate of its own takes
    no more than that. The capacity follows changes of the rate. It is shared in bytes on the wire, of which
    each flow's full packets carry their own part as payload.
    """
    hop = samples.bottleneck(flow)
    span = (steady.start, steady.end) if steady else samples.span(flow)
    if hop is None or span is None or span[1] <= span[0]:
        return None
    direction = settings(samples.plan, hop)
    rate = mean_rate(direction, *span)
    beside = [
        other
        for other in samples.flow_names
        if hop in samples.bottlenecks(other) and kind_of(samples.plan_flow(other)).bulk
    ]
    if rate is None or flow not in beside or sum(_sources(samples, other) for other in beside) < 2:
        return None
    sources = np.array([_sources(samples, other) for other in beside], dtype=float)
    own = beside.index(flow)
    planned = [one for other in beside if (one := samples.plan_flow(other)) is not None]
    payload = np.array([payload_share(one, direction) for one in planned])
    demands = np.array([_demand(samples, other) for other in beside]) / payload
    every = np.ones(len(beside), dtype=bool)
    share = goodput / (payload[own] * _fair(float(rate), demands, sources, every, own))
    if beside == [flow]:
        return Faring(share, math.nan, math.nan, math.nan)
    times, rates = samples.recent_goodput([(other, None) for other in beside])
    # Goodput is that of the last second, and so is the capacity.
    capacity = np.asarray(mean_rate(direction, times - _SECOND, times))
    cases = np.column_stack([capacity, np.isfinite(rates)])
    known, when = np.unique(cases, axis=0, return_inverse=True)
    fair = np.array([_fair(float(row[0]), demands, sources, row[1:] > 0, own) for row in known])
    fair = payload[own] * fair[when.reshape(-1)]
    began = (samples.span(flow) or span)[0]
    episodes = starvation_episodes(times, rates[:, own], fair, share=STARVED, minimum=_SECOND, since=began)
    return Faring(
        share=share,
        starved=sum(episode.end - episode.start for episode in episodes),
        began=episodes[0].start if episodes else math.nan,
        ended=episodes[-1].end if episodes else math.nan,
    )


def verdict(share: float, starved: float, active: float) -> str:
    """fair, above share, squeezed or starved: starved when it was so for a tenth of its time or more.

    Nothing for less than a fair share where no other flow could take it (`starved` is NaN).
    """
    if starved >= 0.1 * active:
        return "starved"
    if share > 1 / FAIR:
        return "above share"
    if share >= FAIR:
        return "fair"
    return "" if math.isnan(starved) else "squeezed"


def _fair(capacity: float, demands: Vector, sources: Vector, active: NDArray[np.bool_], own: int) -> float:
    """The fair share of the flow at `own`, all its sources together, beside those that are active, bit/s."""
    active = active.copy()
    active[own] = True
    each = np.repeat(demands[active], sources[active].astype(int))
    first = int(sources[:own][active[:own]].sum())
    return float(max_min(capacity, each)[first : first + int(sources[own])].sum())


def _demand(samples: Samples, flow: str) -> float:
    """The rate of each source of a flow while it sends, bit/s of payload; `inf`: as fast as it may."""
    planned = samples.plan_flow(flow)
    rate = planned.get("rate") if planned else None
    return math.inf if rate is None else float(rate)


def _sources(samples: Samples, flow: str) -> int:
    planned = samples.plan_flow(flow)
    return (planned.get("streams", 0) if planned else 0) or 1
