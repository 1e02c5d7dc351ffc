"""Values that do not fit the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

# Iglewicz and Hoaglin 1993: the modified z-score beyond which a value is called an outlier.
_BEYOND = 3.5
_MIN = 4


def outliers(values: ArrayLike) -> list[int]:
    """Positions of outliers by the modified z-score, 0.6745 · |x - median| / MAD (Iglewicz and Hoaglin 1993).

    None among fewer than four values, or where half of them are alike: nothing then shows what is usual.
    """
    x = np.asarray(values, dtype=np.float64).ravel()
    if len(x) < _MIN or not np.isfinite(x).all():
        return []
    distance = np.abs(x - np.median(x))
    typical = float(np.median(distance))
    if typical == 0:
        return []
    return [int(i) for i in np.flatnonzero(0.6745 * distance / typical > _BEYOND)]
