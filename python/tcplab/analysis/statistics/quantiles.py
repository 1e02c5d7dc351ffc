"""Quantiles of values that do not all weigh the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def weighted_quantiles(
    values: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Quantiles of weighted values: the least value whose share of the weight is at least the probability.

    This is the inverse of the weighted distribution function, so every quantile is one of the values. Values
    or weights that are not finite are left out; weights must not be negative. All NaN when nothing is left.
    """
    p = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
    if ((p < 0) | (p > 1)).any():
        raise ValueError(f"probabilities lie between 0 and 1: {p}")
    x = np.asarray(values, dtype=np.float64).ravel()
    w = np.ones_like(x) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    if (w < 0).any():
        raise ValueError("weights must not be negative")
    keep = np.isfinite(x) & np.isfinite(w) & (w > 0)
    x, w = x[keep], w[keep]
    if not len(x):
        return np.full(p.shape, np.nan)
    order = np.argsort(x, kind="stable")
    x, w = x[order], w[order]
    share = np.cumsum(w)
    share /= share[-1]
    # A share computed as 0.30000000000000004 must still answer for 0.3.
    return np.asarray(x[np.searchsorted(share, p - 1e-12, side="left").clip(0, len(x) - 1)])


def empirical_cdf(
    values: ArrayLike, maximum: int = 500, *, weights: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values in order, and the share of all at or below each, from 0, in at most `maximum` steps.

    NaNs are left out; both are empty where nothing else is given.
    """
    x = np.asarray(values, dtype=np.float64)
    w = np.ones_like(x) if weights is None else np.asarray(weights, dtype=np.float64)
    count = float(w[np.isfinite(x)].sum())
    if not count > 0:
        return x[:0], x[:0]
    share = np.linspace(0, 1, max(1, min(maximum, int(count))) + 1)[1:]
    x = weighted_quantiles(x, share, w)
    return np.concatenate([x[:1], x]), np.concatenate([[0.0], share])
