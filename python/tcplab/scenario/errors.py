"""Errors of a scenario: message, place, and suggestion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass


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
    """The text there, as written."""
    message: str
    suggestion: str = ""
    """The nearest valid spelling, or what else would fix it; empty when nothing is near."""
    source: str = ""
    """The text of the line."""
    width: int = 1
    """How many columns the mistake covers."""

    def __str__(self) -> str:
        from tcplab import _core

        return _core.mistake_text(*astuple(self))


class ScenarioErrors(Exception):  # noqa: N818 - a collection of errors, not one
    """All mistakes of a scenario, in the order of the file."""

    def __init__(self, errors: Iterable[ScenarioError]) -> None:
        unique = dict.fromkeys(errors)
        self.errors = sorted(unique, key=lambda e: (e.file == "--set", e.line, e.column, e.path, e.message))
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)

    @staticmethod
    def of_file(file: object, message: str) -> ScenarioErrors:
        """One mistake that concerns a whole file."""
        return ScenarioErrors([ScenarioError(str(file), 0, 0, "", "", message)])


class QuantityError(ValueError):
    """A text that is not the quantity asked for; `suggestion` is the nearest valid spelling, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
