"""How bulk TCP flows on one bottleneck get along: when they converge, and whether any starves."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tcplab.analysis.samples import Samples, Unit
from tcplab.analysis.statistics import convergence_time, starvation_episodes
from tcplab.plan.kinds import kind_of

_SECOND = 1e9
_TOLERANCE = 0.2
_HOLD = 5 * _SECOND


def convergence(samples: Samples, flows: Sequence[str]) -> float:
    """Time from the last start until all stay near the fair share for 5 s, ns; NaN: never, or alone."""
    units = _bulk(samples, flows)
    if len(units) < 2:
        return math.nan
    times, rates = samples.recent_goodput(units)
    starts = [span[0] for flow, _ in units if (span := samples.span(flow))]
    found = convergence_time(times, rates, max(starts, default=0.0), tolerance=_TOLERANCE, hold=_HOLD)
    return math.nan if found is None else found


def starvation(samples: Samples, flows: Sequence[str]) -> float:
    """Time flows had less than 5 % of their fair share for 1 s or longer, added up, ns; NaN for one alone."""
    units = _bulk(samples, flows)
    if len(units) < 2:
        return math.nan
    times, rates = samples.recent_goodput(units)
    active = np.isfinite(rates).sum(axis=1)
    fair = np.nansum(rates, axis=1) / np.maximum(active, 1)
    return sum(
        episode.end - episode.start
        for column, (flow, _) in enumerate(units)
        for episode in starvation_episodes(
            times, rates[:, column], fair, minimum=_SECOND, since=(samples.span(flow) or (0.0, 0.0))[0]
        )
    )


def _bulk(samples: Samples, flows: Sequence[str]) -> list[Unit]:
    return [unit for unit in samples.sharing(flows) if kind_of(samples.plan_flow(unit[0])).bulk_tcp]
