"""Sizes of echoed messages: `1..65536`, a list, or a single one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from . import quantity
from .fields import refuse
from .quantity import QuantityError, show

LARGEST = 16 << 20
"""Both ends keep a message in memory."""
MOST = 1024
"""Sizes of one flow."""

_EXAMPLE = "1..65536"


def read_sizes(value: Any) -> tuple[int, ...]:
    """The sizes in bytes, in the order given.

    `A..B` doubles from A on up to B, so that `1..65536` are the powers of two from 1 to 65,536. A number is
    bytes; a text may carry a unit. Raises QuantityError.
    """
    if isinstance(value, str) and ".." in value:
        first, last = (_size(part.strip()) for part in value.split("..", 1))
        if first > last:
            raise QuantityError(f"{show(value)} goes down: from {first} to {last} bytes", f"{last}..{first}")
        sizes = []
        while first <= last:
            sizes.append(first)
            first *= 2
        return tuple(sizes)
    if isinstance(value, str) and "," in value:
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (_size(value),)
    if not value:
        raise QuantityError("no size is given", _EXAMPLE)
    if len(value) > MOST:
        raise QuantityError(f"{len(value)} sizes are too many: {MOST} at most", _EXAMPLE)
    sizes = [_size(part) for part in value]
    twice = next((size for number, size in enumerate(sizes) if size in sizes[:number]), None)
    if twice is not None:
        raise QuantityError(f"the size {twice} stands twice", "")
    return tuple(sizes)


def _size(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 1:
            raise QuantityError(f"{show(value)} must be above zero", "1")
        size = value
    else:
        size = quantity.positive_size(value)
    if size > LARGEST:
        raise QuantityError(f"a message of {size} bytes is longer than {LARGEST}", "16 MiB")
    return size


def _validated(value: Any) -> tuple[int, ...]:
    try:
        return read_sizes(value)
    except QuantityError as error:
        raise refuse(error.message, error.suggestion) from None


_ONE: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1, "maximum": LARGEST},
    {"type": "string", "pattern": r"^\+?\d+(\.\d+)?\s*(B|kB|MB|KiB|MiB)?$", "examples": ["64 KiB"]},
]

Sizes = Annotated[
    tuple[int, ...],
    BeforeValidator(_validated),
    WithJsonSchema(
        {
            "anyOf": [
                *_ONE,
                {"type": "string", "pattern": r"^[^.]+\.\.[^.]+$", "examples": [_EXAMPLE]},
                {"type": "array", "minItems": 1, "maxItems": MOST, "items": {"anyOf": _ONE}},
            ]
        }
    ),
]
