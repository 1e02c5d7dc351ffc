"""Metadata of a control: its name, phases, parameters and gauges, and where it is published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.cc.compiler import Source, native
from tcplab.cc.errors import ControlFileError

_PREFIX = "tl_"
# Names under which a control is known besides its own.
ALIASES = {"bbr": "bbr1", "ledbat++": "ledbatpp", "westwood+": "westwood"}
_PUBLISHED = re.compile(r"RFC \d+|draft-[a-z0-9]+(?:-[a-z0-9]+)*")
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """A number of a control that can be set."""

    name: str
    doc: str
    default: float
    minimum: float
    maximum: float
    step: float

    @property
    def range(self) -> str:
        """The minimum and the maximum, in few digits."""
        return f"{_short(self.minimum, self.step)} to {_short(self.maximum, self.step)}"

    @property
    def usual(self) -> str:
        """The default in few digits."""
        return _short(self.default, self.step)

    def holds(self, value: float) -> bool:
        """Whether it can be set to this, as the loaders of both sides judge."""
        steps = round(value / self.step)
        return round(self.minimum / self.step) <= steps <= round(self.maximum / self.step)


@dataclass(frozen=True)
class Gauge:
    """A figure that a control publishes of itself."""

    name: str
    unit: str
    """Empty for a ratio or a count."""
    doc: str

    @property
    def label(self) -> str:
        """The name with the unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


@dataclass(frozen=True)
class Description:
    """A control."""

    name: str
    phases: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    gauges: tuple[Gauge, ...]
    about: str
    """The first sentence of its file's first comment."""
    published: tuple[str, ...]
    """The RFCs and drafts that specify it, or the title of the paper, as that comment names them."""

    def faults(self, params: Mapping[str, float]) -> Iterator[str]:
        """Mistakes in values for its parameters."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name, value in params.items():
            if name not in known:
                yield f"{self.name} has no parameter `{name}`"
            elif not known[name].holds(value):
                yield f"{self.name}: `{name}` is {value:g}, outside {known[name].range}"


def shipped() -> list[str]:
    """Names of tcplab's own controls."""
    from tcplab import _core

    return sorted(_core.controls())


def known_as(name: str) -> str:
    """The name of tcplab's file of the control."""
    name = name.removeprefix(_PREFIX)
    return ALIASES.get(name, name)


def describe(name: str) -> Description:
    """One of tcplab's own; raises ValueError when there is none of that name."""
    from tcplab import _core

    metadata = _core.control(known_as(name))
    _, text = _core.control_files(known_as(name))
    return _description(metadata, text or "")


def described_file(source: Source) -> Description:
    """A control in a file, of which nothing runs: it is compiled, and what it says is read from the object.

    Raises ControlFileError, and NoCompilerError where nothing can compile it.
    """
    from tcplab import _core

    library = native(source)
    try:
        metadata = _core.control(source.file.name, str(library))
    except ValueError as problem:
        raise ControlFileError(str(source.file), f"is not a control: {problem}") from None
    return _description(metadata, source.text)


def file_of(name: str) -> tuple[Path, str]:
    """The C file of one of tcplab's own, as (name, text)."""
    from tcplab import _core

    _, text = _core.control_files(known_as(name))
    if text is None:
        raise ValueError(f"unknown control {name!r}")
    return Path(f"{known_as(name)}.c"), text


def _description(metadata: dict[str, Any], text: str) -> Description:
    said = first_comment(text)
    return Description(
        name=metadata["name"],
        phases=tuple(metadata["phases"]),
        parameters=tuple(Parameter(**row) for row in metadata["parameters"]),
        gauges=tuple(Gauge(**row) for row in metadata["gauges"]),
        about=_sentence(said),
        published=_published(said),
    )


def first_comment(text: str) -> str:
    """The words of a C file's first comment, its licence aside."""
    for found in _COMMENT.finditer(text):
        lines = (line.strip().removeprefix("*").strip() for line in found[1].splitlines())
        words = " ".join(" ".join(lines).split())
        if not words.startswith("SPDX"):
            return words
    return ""


def _sentence(words: str) -> str:
    """The first sentence; what stands in brackets or quotation marks does not end it."""
    return _until(words, re.compile(r"\.(?= [A-Z]|$)"))


def _published(words: str) -> tuple[str, ...]:
    """Where it is published: in the comment's `NAME (source): what it does`, or in its first sentence."""
    for part in (_until(words, re.compile(":")), _sentence(words)):
        named = _PUBLISHED.findall(part) or re.findall(r'"([^"]+)"', part)
        if named:
            return tuple(dict.fromkeys(name.rstrip(",.") for name in named))
    return ()


def _until(words: str, end: re.Pattern[str]) -> str:
    depth, quoted = 0, False
    for at, char in enumerate(words):
        if char == '"':
            quoted = not quoted
        depth += (char == "(") - (char == ")")
        if depth == 0 and not quoted and end.match(words, at):
            return words[:at]
    return words


def _figure(number: float) -> str:
    """A number without an exponent and without zeros at its end."""
    text = f"{number:.9f}"
    return text.rstrip("0").rstrip(".")


def _short(number: float, step: float) -> str:
    """A number in the fewest digits that mean the same multiple of `step`."""
    for digits in range(1, 12):
        near = float(f"{number:.{digits}g}")
        if round(near / step) == round(number / step):
            return _figure(near)
    return _figure(number)
