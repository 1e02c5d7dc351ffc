"""What is wrong with a scenario, where, and what was probably meant."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

# Where nothing was read, a suggestion is an example, not a guess at what was meant.
_ABSENT = ("is missing", "has no value", "is empty")


@dataclass(frozen=True)
class ScenarioError:
    """One mistake. Lines and columns count from 1; 0 when the scenario did not come from a text."""

    file: str
    """The file's name, or `--set` for a command-line override."""
    line: int
    column: int
    path: str
    """Path in the scenario, such as `flows.bulk.rate`."""
    value: str
    """What was read there, as written."""
    message: str
    suggestion: str = ""
    """The nearest valid spelling, or what else would mend it; empty when nothing is near."""
    source: str = ""
    """The text of the line."""
    width: int = 1
    """How many columns the mistake covers."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        head = f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"
        lines = [head]
        if self.source.strip():
            lines += self._excerpt()
        if self.suggestion:
            ask = "for example `{}`" if self.message.endswith(_ABSENT) else "did you mean `{}`?"
            lines.append("  " + ask.format(self.suggestion))
        return "\n".join(lines)

    def _excerpt(self) -> list[str]:
        """The source line with a caret below the mistake; a long line is cut around it."""
        start = max(0, self.column - 60)
        before = self.source[start : self.column - 1]
        text = _printable(self.source[start : start + 110])
        at = sum(_columns(char) for char in before)
        width = max(1, min(self.width, len(text) - len(before)))
        margin = str(self.line)
        return [
            f"  {margin} | {text}",
            f"  {' ' * len(margin)} | {' ' * at}{'^' * width}",
        ]


class ScenarioErrors(Exception):  # noqa: N818 - a collection of errors, not one
    """All mistakes of a scenario, in the order of the file."""

    def __init__(self, errors: Iterable[ScenarioError]) -> None:
        unique = dict.fromkeys(errors)
        self.errors = sorted(unique, key=lambda e: (e.file == "--set", e.line, e.column, e.path, e.message))
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def _columns(char: str) -> int:
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
