"""An ellipse around repeated measurements of two figures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcplab.analysis.statistics import deterministic

Array = NDArray[np.float64]
_POINTS = 48


def spread(x: Array, y: Array) -> tuple[Array, Array] | None:
    """The ellipse of one standard deviation of pairs, along their principal axes.

    None for fewer than 2, and for copies.
    """
    if len(x) < 2 or (deterministic(x) and deterministic(y)):
        return None
    covariance = np.cov(np.vstack([x, y]))
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0, 2 * np.pi, _POINTS)
    circle = np.vstack([np.cos(angle), np.sin(angle)])
    around = vectors @ (np.sqrt(values.clip(min=0))[:, None] * circle)
    return around[0] + x.mean(), around[1] + y.mean()
