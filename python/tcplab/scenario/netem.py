"""What netem's correlated random numbers do to a loss rate.

netem draws x' = (1 - c) u + c x with u uniform on [0, 1) and loses the packet when x' < p
(`get_crandom` in net/sched/sch_netem.c). The mix of two variates is not uniform any more: its middle
is likelier than its ends, so for small p far fewer packets are lost than asked for.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache
def effective_loss(rate: float, correlation: float) -> float:
    """The share of packets lost in the long run, when `rate` is asked for at `correlation` (both 0 to 1).

    The stationary distribution F of the recursion satisfies F(t) = ∫ F((t - (1 - c) u) / c) du. It is the
    fixed point of repeated application, which forgets its start by a factor c a step. Accurate to about
    1e-6 absolute.
    """
    if correlation <= 0 or rate <= 0 or rate >= 1:
        return min(max(rate, 0.0), 1.0)
    if correlation >= 1:
        # The first number is kept for ever, and netem starts at zero.
        return 1.0
    # A long memory takes many steps, but smooths the distribution: fewer cells do.
    cells = 1 << 15 if correlation < 0.8 else 1 << 11
    grid = np.linspace(0.0, 1.0, cells + 1)
    distribution = grid.copy()
    spread = 1.0 - correlation
    for _ in range(min(2000, int(np.ceil(np.log(1e-7) / np.log(correlation))) + 1)):
        # ∫ over u is a difference of the integral of F; F is 0 below 0 and 1 above 1.
        steps = (distribution[1:] + distribution[:-1]) / (2 * cells)
        integral = np.concatenate(([0.0], np.cumsum(steps)))
        upper, lower = grid / correlation, (grid - spread) / correlation
        area = _integral_to(upper, grid, integral) - _integral_to(lower, grid, integral)
        distribution = np.clip(area * correlation / spread, 0.0, 1.0)
    return float(np.interp(rate, grid, distribution))


def _integral_to(
    point: np.ndarray[tuple[int], np.dtype[np.float64]],
    grid: np.ndarray[tuple[int], np.dtype[np.float64]],
    integral: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """∫ F from 0 to each point."""
    inside: np.ndarray[tuple[int], np.dtype[np.float64]] = np.interp(point, grid, integral)
    return inside + np.maximum(point - 1.0, 0.0)
