"""Axes whose values are amounts: labels as numbers, so that a figure can have them to scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tcplab.quantities import Scale, percent_scale, rate_scale, size_scale, time_scale
from tcplab.scenario import QuantityError
from tcplab.scenario.quantity import parse

# Values that span more than this are distinguished on a logarithmic axis only.
_WIDE = 20


@dataclass(frozen=True)
class Amounts:
    """The values of an axis as numbers."""

    values: tuple[float, ...]
    unit: str
    log: bool
    """They span so much that a logarithmic axis suits them."""


def amounts(labels: Sequence[str]) -> Amounts | None:
    """The labels as numbers of one unit; None when they are names, or of different dimensions."""
    found = [_amount(label) for label in labels]
    known = [each for each in found if each is not None]
    if len(known) < len(labels) or not known or len({dimension for dimension, _ in known}) != 1:
        return None
    dimension = known[0][0]
    values = [value for _, value in known]
    log = min(values) > 0 and max(values) / min(values) > _WIDE
    # Of a wide range the unit is that of its middle: from 1 B to 64 KiB, bytes.
    scale = _scale(dimension, [math.sqrt(min(values) * max(values))] if log else values)
    shown = tuple(value / scale.divisor for value in values)
    return Amounts(shown, scale.unit if dimension is not None else "", log)


def _amount(label: str) -> tuple[str | None, float] | None:
    try:
        number = float(label)
    except ValueError:
        pass
    else:
        return (None, number) if math.isfinite(number) else None
    try:
        quantity = parse(label)
    except QuantityError:
        return None
    return quantity.dimension, quantity.value


def _scale(dimension: str | None, values: Sequence[float]) -> Scale:
    match dimension:
        case "time":
            return time_scale(values)
        case "rate":
            return rate_scale(values)
        case "size":
            return size_scale(values)
        case "share":
            return percent_scale(values)
        case "packets":
            return Scale("packets", 1.0, 0)
        case _:
            return Scale("", 1.0, 0)


def metric_scale(unit: str, share: bool, values: Sequence[float]) -> Scale:
    """How a metric's values are shown."""
    finite = [value for value in values if math.isfinite(value)]
    if share:
        return percent_scale(finite)
    match unit:
        case "bit/s":
            return rate_scale(finite)
        case "ns":
            return time_scale(finite)
        case "B":
            return size_scale(finite)
        case _:
            return Scale(unit, 1.0, _decimals(max(map(abs, finite), default=0.0)))


def _decimals(largest: float) -> int:
    """Three below 10; for a small quotient of two metrics as many as show three digits of it."""
    if largest >= 10:
        return 0
    if largest >= 0.001 or largest == 0:
        return 3
    return 2 - math.floor(math.log10(largest))
