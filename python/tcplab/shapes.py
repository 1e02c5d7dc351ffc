"""Whether data from a file has the shape that its readers rely on; the first place that has not is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Shape = Callable[[Any], None]
"""Raises ShapeError for a value that has it not."""


class ShapeError(ValueError):
    """A value that is not as expected; `path` leads to it from the value that was checked."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(path)}: {message}" if path else message)
        self.message = message
        self.path = path


def text(value: Any) -> None:
    """A text."""
    _expect(isinstance(value, str), value, "a text")


def switch(value: Any) -> None:
    """True or false."""
    _expect(isinstance(value, bool), value, "true or false")


def mapping(value: Any) -> None:
    """A mapping with any keys."""
    _expect(isinstance(value, dict), value, "a mapping")


def whole(minimum: int, maximum: int) -> Shape:
    """A whole number in a range."""

    def check(value: Any) -> None:
        _expect(isinstance(value, int) and not isinstance(value, bool), value, "a whole number")
        _expect(minimum <= value <= maximum, value, f"from {minimum} to {maximum}")

    return check


def number(minimum: float = -math.inf, maximum: float = math.inf) -> Shape:
    """A finite number in a range."""

    def check(value: Any) -> None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        _expect(is_number, value, "a number")
        _expect(minimum <= value <= maximum, value, f"from {minimum:g} to {maximum:g}")

    return check


def word(*words: str) -> Shape:
    """One of a few words."""
    return lambda value: _expect(value in words, value, " or ".join(words))


def optional(shape: Shape) -> Shape:
    """The shape, or null."""
    return lambda value: None if value is None else shape(value)


def either(*shapes: Shape) -> Shape:
    """One of several shapes."""

    def check(value: Any) -> None:
        for shape in shapes[:-1]:
            try:
                return shape(value)
            except ShapeError:
                continue
        return shapes[-1](value)

    return check


def each(shape: Shape, minimum: int = 0, maximum: int | None = None) -> Shape:
    """A list whose items have the shape."""

    def check(value: Any) -> None:
        _expect(isinstance(value, list), value, "a list")
        _expect(
            minimum <= len(value) and (maximum is None or len(value) <= maximum),
            value,
            f"a list of {minimum} or more",
        )
        for index, item in enumerate(value):
            _inside(str(index), shape, item)

    return check


def by_name(shape: Shape) -> Shape:
    """A mapping whose values have the shape."""

    def check(value: Any) -> None:
        mapping(value)
        for key, item in value.items():
            text(key)
            _inside(key, shape, item)

    return check


def fields(shapes: Mapping[str, Shape], required: tuple[str, ...] = ()) -> Shape:
    """A mapping with these keys, of which some must be there; others are not looked at."""

    def check(value: Any) -> None:
        mapping(value)
        for key, shape in shapes.items():
            if key in value:
                _inside(key, shape, value[key])
            elif key in required:
                raise ShapeError("is missing", (key,))

    return check


def _inside(key: str, shape: Shape, value: Any) -> None:
    try:
        shape(value)
    except ShapeError as wrong:
        raise ShapeError(wrong.message, (key, *wrong.path)) from None


def _expect(holds: bool, value: Any, what: str) -> None:
    if not holds:
        shown = repr(value) if isinstance(value, int | float | str | None) else f"a {type(value).__name__}"
        raise ShapeError(f"{shown if len(shown) <= 60 else shown[:57] + '...'} is not {what}")
