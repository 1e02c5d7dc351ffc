"""Errors of a control's file, and of the machine that shall compile it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcplab.cc.watch import At

# A first mistake often makes more.
_SHOWN = 8


def printable(text: str) -> str:
    """A stranger's words without what would control a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@dataclass(frozen=True)
class Mistake:
    """Something that is wrong in a file; line and column count from 1, 0 where none is known."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{where}: {self.message}"


class ControlFileError(Exception):
    """A file is not a control."""

    def __init__(self, file: str, what: str, mistakes: Sequence[Mistake] = ()) -> None:
        self.file = file
        self.what = what
        """Such as `does not compile`."""
        self.mistakes = tuple(mistakes)
        super().__init__(file, what, self.mistakes)

    def __str__(self) -> str:
        return "\n".join([f"{self.file} {self.what}", *self.details()])

    def details(self) -> list[str]:
        """The first mistakes, one a line."""
        more = len(self.mistakes) - _SHOWN
        lines = [f"  {mistake}" for mistake in self.mistakes[:_SHOWN]]
        return [*lines, f"  and {more} more"] if more > 0 else lines


class ControlCrashError(Exception):
    """The process that ran a user's controls has ended, or does not go on."""

    def __init__(
        self, at: At | None, what: str, number: signal.Signals | None, controls: Sequence[str]
    ) -> None:
        self.at = at
        """The operation that ran; none if none did."""
        self.what = what
        """Such as `division by zero`."""
        self.signal = number
        self.controls = tuple(controls)
        """The names of the C files."""
        super().__init__(at, what, number, self.controls)

    def __str__(self) -> str:
        # Outside of an operation: where a shared object is opened or closed.
        where = str(self.at) if self.at else f"{', '.join(self.controls)}, outside of its operations"
        name = f" ({self.signal.name})" if self.signal else ""
        return f"{where}: {self.what}{name}"


class NoCompilerError(Exception):
    """There is no compiler here for what is asked."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """The command that installs one."""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})"
