"""Who gets how much: Jain's index, max-min shares, share of the fair rate, harm, convergence, starvation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]


def jain(values: ArrayLike) -> float:
    """Jain's index of rates (Jain, Chiu and Hawe 1984): 1/n to 1; NaN when nobody got anything."""
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    squares = float((x * x).sum())
    if squares == 0:
        return math.nan
    return float(x.sum()) ** 2 / (len(x) * squares)


def jain_over_time(rates: ArrayLike) -> Matrix:
    """Jain's index at each time: `rates` has a row per time and a column per flow; NaN: flow not active.

    NaN where fewer than two flows are active or nobody got anything.
    """
    r = np.asarray(rates, dtype=np.float64)
    active = np.isfinite(r)
    x = np.where(active, r, 0.0)
    count = active.sum(axis=1)
    squares = (x * x).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        index = x.sum(axis=1) ** 2 / (count * squares)
    return np.where((count >= 2) & (squares > 0), index, np.nan)


def share_of_fair_rate(rates: ArrayLike, capacity: float | None = None) -> Matrix:
    """Each flow's rate over its fair rate; 1 is fair.

    The fair rate is `capacity` (or, when not given, what the flows got together) divided by their number.
    """
    x = np.asarray(rates, dtype=np.float64)
    total = float(np.nansum(x)) if capacity is None else capacity
    count = int(np.isfinite(x).sum())
    if count == 0 or total <= 0:
        return np.full_like(x, np.nan)
    return x * count / total


def max_min(capacity: float, demands: ArrayLike) -> Matrix:
    """Each demand's max-min fair share of `capacity` (Bertsekas and Gallager 1992, section 6.5.2).

    Who asks for less than an equal share gets what it asks for; the others share what is left. `inf` asks
    for all.
    """
    d = np.asarray(demands, dtype=np.float64)
    shares = np.zeros_like(d)
    left = capacity
    for rank, place in enumerate(np.argsort(d, kind="stable")):
        shares[place] = min(d[place], left / (len(d) - rank))
        left -= shares[place]
    return shares


def harm(alone: float, beside: float, *, more_is_better: bool = True) -> float:
    """Harm that other flows do to a flow, 0 to 1 (Ware and others 2019, "Beyond Jain's Fairness Index").

    `alone` and `beside` are a figure of the flow without the company and with it: `more_is_better` of
    throughput, not of delay, loss or completion time. 0 also where the company does it good; NaN without
    figures.
    """
    worse, better = (beside, alone) if more_is_better else (alone, beside)
    if not (math.isfinite(worse) and math.isfinite(better)) or better <= 0:
        return math.nan
    return min(1.0, max(0.0, 1 - worse / better))


def convergence_time(
    times: ArrayLike, rates: ArrayLike, start: float, *, tolerance: float = 0.2, hold: float = 1.0
) -> float | None:
    """Time from `start` until every active flow stays within `tolerance` of the fair rate for `hold`.

    `times` are the ends of the samples, `rates` as in `jain_over_time`; the fair rate at each time is the
    mean of the active flows. Returns None when it never happens while all are active: where one leaves, the
    others have what it had. `hold` and the result are in the unit of `times`.
    """
    t = np.asarray(times, dtype=np.float64)
    r = np.asarray(rates, dtype=np.float64)
    after = t > start
    t, r = t[after], r[after]
    with np.errstate(invalid="ignore"):
        count = np.isfinite(r).sum(axis=1)
        fair = np.where(count > 0, np.nansum(r, axis=1) / np.maximum(count, 1), np.nan)
        near = np.where(np.isfinite(r), np.abs(r - fair[:, None]) <= tolerance * fair[:, None], True)
    good = near.all(axis=1) & (count >= 2) & (count == count.max(initial=0))
    since: float | None = None
    for now, fine in zip(t, good, strict=True):
        if not fine:
            since = None
            continue
        since = float(now) if since is None else since
        if now - since >= hold:
            return since - start
    return None


@dataclass(frozen=True)
class Episode:
    """A stretch of time, in the unit of the times it was found in."""

    start: float
    end: float


def starvation_episodes(
    times: ArrayLike,
    rate: ArrayLike,
    fair_rate: ArrayLike | float,
    *,
    share: float = 0.05,
    minimum: float = 1.0,
    since: float = -math.inf,
) -> list[Episode]:
    """When a flow had less than `share` of its fair rate for `minimum` or longer.

    `times` are the ends of evenly spaced samples; `rate` is NaN where the flow was not active. It was not
    before `since`, which may be in the midst of a sample.
    """
    t = np.asarray(times, dtype=np.float64)
    r = np.asarray(rate, dtype=np.float64)
    if len(t) == 0:
        return []
    step = float(np.median(np.diff(t))) if len(t) > 1 else float(t[0])
    with np.errstate(invalid="ignore"):
        starved = np.isfinite(r) & (r < share * np.asarray(fair_rate, dtype=np.float64))
    episodes: list[Episode] = []
    begin: float | None = None
    for i, hungry in enumerate([*starved, False]):
        if hungry and begin is None:
            begin = max(float(t[i]) - step, since)
        elif not hungry and begin is not None:
            end = float(t[i - 1])
            # Half a sample of slack: the ends of samples are the resolution there is.
            if end - begin >= minimum - step / 2:
                episodes.append(Episode(begin, end))
            begin = None
    return episodes
