"""Quantities with units (`25 ms`, `100 Mbit/s`, `64 KiB`), read as the scenario language reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

_PPB = 1_000_000_000


@dataclass(frozen=True)
class Quantity:
    """An amount with its dimension."""

    dimension: str
    """time, rate, size, share, packets or bdp."""
    value: float
    """ns, bit/s, bytes, a share of 1, packets, or multiples of the bandwidth-delay product."""


def parse(text: str) -> Quantity:
    """A quantity of any dimension; raises QuantityError."""
    from tcplab import _core

    dimension, value = _core.quantity_of(text)
    return Quantity(dimension, value / _PPB if dimension == "share" else value)


def value_of(kind: str, written: object) -> Any:
    """A value of one of the language's kinds (`time`, `size`, `sizes`, ...) in base units.

    Raises QuantityError.
    """
    from tcplab import _core

    return json.loads(_core.value(kind, written))


@cache
def units() -> dict[str, list[str]]:
    """The units of each dimension."""
    from tcplab import _core

    return dict(_core.units())


def show(text: str) -> str:
    """A text in back quotes, cut if it is long."""
    return f"`{text}`" if len(text) <= 60 else f"`{text[:57]}...`"
