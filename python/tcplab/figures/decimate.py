"""Fewer points to draw, without hiding a peak."""

from __future__ import annotations

import numpy as np

from tcplab.figures.model import Array

POINTS = 3000
"""More points than this per line are decimated: over twice the pixels of a wide screen."""


def decimate(x: Array, y: Array, points: int = POINTS) -> tuple[Array, Array]:
    """Keep the minimum and the maximum of each of points/2 equal intervals of x, in their order.

    The first and last point stay. A stretch that holds a gap (NaN) keeps one. Series short enough stay whole.
    """
    if len(x) <= points:
        return x, y
    stretches = np.linspace(x[0], x[-1], max(points // 2, 1) + 1)
    bounds = np.unique(np.searchsorted(x, stretches[:-1], side="left"))
    low = np.minimum.reduceat(np.where(np.isnan(y), np.inf, y), bounds)
    high = np.maximum.reduceat(np.where(np.isnan(y), -np.inf, y), bounds)
    group = np.zeros(len(x), dtype=np.int64)
    group[bounds[1:]] = 1
    group = np.cumsum(group)
    keep = [0, len(x) - 1]
    for wanted in (y == low[group], y == high[group], np.isnan(y)):
        hits = np.flatnonzero(wanted)
        keep.extend(hits[np.unique(group[hits], return_index=True)[1]])
    index = np.unique(np.asarray(keep, dtype=np.int64))
    return x[index], y[index]
