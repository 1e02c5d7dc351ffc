"""The building blocks of the model: strict mappings, quantities as field types, short forms."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from . import quantity
from .quantity import Dimension, Quantity, QuantityError, show

# Each stream has its own sockets and rows.
MOST_STREAMS = 100_000
# So many messages of each size and client are kept one by one, whatever follows.
MOST_WARMUP = 100_000


class Strict(BaseModel):
    """A mapping of the scenario language: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Short(Strict):
    """A mapping that may be written as just the value of one of its keys, `short`."""

    short: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _lengthen(cls, read: Any) -> Any:
        if isinstance(read, str | int | float) and not isinstance(read, bool):
            return {cls.short: read}
        return read

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        full = handler(core)
        body = handler.resolve_ref_schema(full)
        short = dict(body["properties"][cls.short])
        short.pop("default", None)
        return {"anyOf": [short, dict(body)], "description": body.get("description", "")}


def refuse(message: str, suggestion: str = "") -> PydanticCustomError:
    """An error to raise in a validator; `suggestion` is the nearest valid spelling."""
    return PydanticCustomError("scenario", "{message}", {"message": message, "suggestion": suggestion})


def _reader(parse: Callable[[Any], Any]) -> BeforeValidator:
    def read(value: Any) -> Any:
        if isinstance(value, Quantity):
            return value
        try:
            return parse(value)
        except QuantityError as error:
            raise refuse(error.message, error.suggestion) from None

    return BeforeValidator(read)


def _schema(what: str, *dimensions: Dimension, words: tuple[str, ...] = ()) -> WithJsonSchema:
    units = [unit for dimension in dimensions for unit in quantity.UNITS[dimension]]
    alternatives = "|".join(re.escape(unit).replace(r"\ ", " ").replace("/", r"\/") for unit in units)
    pattern = rf"^\+?\d+(\.\d+)?([eE][+-]?\d+)?\s*({alternatives})$"
    if words:
        pattern = rf"{pattern}|^({'|'.join(words)})$"
    examples = [*(quantity.EXAMPLES[dimension] for dimension in dimensions), *words]
    return WithJsonSchema({"type": "string", "title": what, "pattern": pattern, "examples": examples})


def _or_word(parse: Callable[[Any], Any], word: str) -> Callable[[Any], Any]:
    """A reader that also takes `word`, and then gives none."""

    def read(value: Any) -> Any:
        if value == word or (value is False and word == "off"):
            return None
        try:
            return parse(value)
        except QuantityError as error:
            if isinstance(value, str) and not any(char.isdigit() for char in value):
                raise QuantityError(f"{error.message}, nor `{word}`", word) from None
            raise

    return read


def _ordinal(most: int, least: int = 1) -> Callable[[Any], int]:
    """A reader of whole numbers from `least` to `most`."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise refuse(f"{show(value)} is not a whole number")
        if value < least:
            raise refuse(f"{show(value)} must be at least {least}", str(least))
        if value > most:
            raise refuse(f"{show(value)} must be at most {most}", str(most))
        return value

    return read


def _ip_version(value: Any) -> int:
    if isinstance(value, bool) or value not in (4, 6):
        near = str(value).lower().removeprefix("ipv").removeprefix("v")
        raise refuse(f"{show(value)} is not a version of IP: 4 or 6", near if near in ("4", "6") else "")
    return int(value)


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(f"{show(value)} is not a whole number")
    if not 0 <= value < 2**64:
        raise refuse(f"{show(value)} must be from 0 to 2^64 - 1")
    return value


_SWITCH = {True: True, False: False, "on": True, "off": False}


def _switch(value: Any) -> bool:
    if isinstance(value, bool | str) and value in _SWITCH:
        return _SWITCH[value]
    yes = str(value).lower() in ("yes", "y", "1", "true", "enabled", "enable")
    no = str(value).lower() in ("no", "n", "0", "false", "disabled", "disable")
    raise refuse(f"{show(value)} is neither `on` nor `off`", "on" if yes else "off" if no else "")


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise refuse(f"{show(value)} is not a name: it must be a text that starts with a letter")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,47}", value, re.ASCII):
        near = re.sub(r"[^A-Za-z0-9_-]+", "-", value).strip("-")[:48]
        near = near if re.fullmatch(r"[A-Za-z].*", near) else ""
        message = f"{show(value)} is not a name: letters, digits, `-` and `_`, a letter first, at most 48"
        raise refuse(message, near)
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise refuse(f"{show(value)} is not a number")
    if abs(value) > 1e18:
        raise refuse(f"{show(value)} is out of range")
    return float(value)


def text(value: Any) -> str:
    """A text that can be written to a file and shown on a terminal."""
    if not isinstance(value, str):
        raise refuse(f"{show(value)} is not a text")
    odd = next(
        (char for char in value if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"), ""
    )
    if odd:
        raise refuse(f"the text holds the control character U+{ord(odd):04X}")
    return value


def distinct_times(value: Any) -> Any:
    """Refuse two spellings of one time, such as `1 s` and `1000 ms`."""
    seen: dict[int, object] = {}
    for key in value if isinstance(value, dict) else ():
        try:
            time = quantity.time(key)
        except QuantityError:
            continue
        if time in seen:
            raise refuse(f"{show(key)} and {show(seen[time])} are the same time")
        seen[time] = key
    return value


Time = Annotated[int, _reader(quantity.time), _schema("time", Dimension.TIME)]
PositiveTime = Annotated[int, _reader(quantity.positive_time), _schema("time above zero", Dimension.TIME)]
Moment = Annotated[int, _reader(quantity.moment), _schema("time", Dimension.TIME)]
PositiveMoment = Annotated[int, _reader(quantity.positive_moment), _schema("time above zero", Dimension.TIME)]
Interval = Annotated[
    int | None,
    _reader(_or_word(quantity.positive_time, "off")),
    _schema("time above zero, or off", Dimension.TIME, words=("off",)),
]
Omit = Annotated[
    int | None,
    _reader(_or_word(quantity.moment, "auto")),
    _schema("time, or auto", Dimension.TIME, words=("auto",)),
]
Rate = Annotated[int, _reader(quantity.rate), _schema("rate", Dimension.RATE)]
LinkRate = Annotated[
    int | None,
    _reader(_or_word(quantity.rate, "unlimited")),
    _schema("rate, or unlimited", Dimension.RATE, words=("unlimited",)),
]
Size = Annotated[int, _reader(quantity.size), _schema("size", Dimension.SIZE)]
PositiveSize = Annotated[int, _reader(quantity.positive_size), _schema("size above zero", Dimension.SIZE)]
Probability = Annotated[int, _reader(quantity.probability), _schema("percentage", Dimension.PROBABILITY)]
Correlation = Annotated[
    int, _reader(quantity.correlation), _schema("percentage below 100", Dimension.PROBABILITY)
]
InitialWindow = Annotated[int, _reader(quantity.initial_window), _schema("packets", Dimension.PACKETS)]
Packets = Annotated[int, _reader(quantity.packets), _schema("packets", Dimension.PACKETS)]
QueueLimit = Annotated[
    Quantity | None,
    _reader(_or_word(quantity.queue_limit, "unlimited")),
    _schema(
        "packets, size, time or BDP, or unlimited",
        Dimension.PACKETS,
        Dimension.SIZE,
        Dimension.TIME,
        Dimension.BDP,
        words=("unlimited",),
    ),
]
MarkingThreshold = Annotated[
    Quantity,
    _reader(quantity.marking_threshold),
    _schema("packets, size, time or BDP", Dimension.PACKETS, Dimension.SIZE, Dimension.TIME, Dimension.BDP),
]
Window = Annotated[Quantity, _reader(quantity.window), _schema("size or BDP", Dimension.SIZE, Dimension.BDP)]
Count = Annotated[
    int, BeforeValidator(_ordinal(quantity.LARGEST)), WithJsonSchema({"type": "integer", "minimum": 1})
]
Warmup = Annotated[
    int,
    BeforeValidator(_ordinal(MOST_WARMUP, least=0)),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MOST_WARMUP}),
]
Streams = Annotated[
    int,
    BeforeValidator(_ordinal(MOST_STREAMS)),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_STREAMS}),
]
IpVersion = Annotated[int, BeforeValidator(_ip_version), WithJsonSchema({"enum": [4, 6]})]
Seed = Annotated[int, BeforeValidator(_seed), WithJsonSchema({"type": "integer", "minimum": 0})]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema({"enum": ["on", "off", True, False]})]
Name = Annotated[
    str,
    BeforeValidator(_name),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,47}$"}),
]
Number = Annotated[float, BeforeValidator(_number), WithJsonSchema({"type": "number"})]
Text = Annotated[str, BeforeValidator(text), WithJsonSchema({"type": "string"})]
