"""Standard output: tables for people, JSON for machines. Standard error: warnings and the log."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Protocol

from tcplab.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

# Spaces between two columns.
_GAP = 2
# Characters of a line of a text that goes on in the next one, at the least.
_LEAST = 24
JSON_VERSION = 1
"""Of the documents that `--json` prints: docs/json.md. It grows when a name or a meaning changes."""

_LOG = logging.getLogger("tcplab.cli")
_quiet = False


class _ToStandardError(logging.Handler):
    """Writes records to what is standard error now; what would steer the terminal is escaped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record: the commands' own as they are, others with level and origin."""
        text = record.getMessage()
        if record.name != _LOG.name:
            text = f"{record.levelname.lower()}: {record.name.removeprefix('tcplab.')}: {text}"
        sys.stderr.write(visible(text, lines=True) + "\n")


def configure(*, quiet: bool | None = None, level: int | None = None) -> None:
    """Set what standard error shows from now on: progress (`quiet`), and log records from `level` on."""
    global _quiet
    root = logging.getLogger("tcplab")
    if not root.handlers:
        root.addHandler(_ToStandardError())
        root.propagate = False
    if quiet is not None:
        _quiet = quiet
    if level is not None:
        root.setLevel(level)


def quiet() -> bool:
    """Whether `--quiet` was given: no progress, no summary."""
    return _quiet


def verbose() -> bool:
    """Whether `--verbose` was given."""
    return logging.getLogger("tcplab").level in (logging.INFO, logging.DEBUG)


def colored() -> bool:
    """Whether standard output takes colors: NO_COLOR or FORCE_COLOR decide, or that it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return _for_people()


def _for_people() -> bool:
    forced = os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR")
    return bool(forced) or sys.stdout.isatty()


def say(text: str = "") -> None:
    """A line of the result, or several; what would steer the terminal is escaped."""
    sys.stdout.write(visible(text, lines=True) + "\n")


def say_colored(text: str) -> None:
    """A line of our own making, which may hold the escapes that color it."""
    sys.stdout.write(text + "\n")


def warn(text: str) -> None:
    """A line beside the result, or several; what would steer the terminal is escaped."""
    configure()
    _LOG.warning("%s", text)


def say_json(data: dict[str, Any]) -> None:
    """The result for a machine, with the version of its shape. NaN and infinity are null."""
    say_plain_json({"version": JSON_VERSION, **data})


def say_files(paths: Iterable[Path], *, json: bool) -> None:
    """The files that a command has written."""
    if json:
        say_json({"files": [str(path) for path in paths]})
    else:
        for path in paths:
            say(str(path))


def say_plain_json(data: Any) -> None:
    """A document whose shape is not ours, such as a JSON Schema."""
    sys.stdout.write(json.dumps(_plain(data), indent=2, allow_nan=False, default=str) + "\n")


class Printed(Protocol):
    """A result in two forms."""

    def to_rich(self) -> RenderableType:
        """For a terminal: fitted to its width."""

    def to_text(self) -> str:
        """Plain text, lines as long as they need."""


def show(what: Printed) -> None:
    """Print a result: drawn by rich on a terminal, piped as plain text, for which rich is not imported."""
    if _for_people():
        from rich.console import Console

        Console().print(_Visible(what.to_rich()))
    else:
        say(what.to_text().rstrip())


class _Visible:
    """Something rich draws, without any control character in its text."""

    def __init__(self, what: RenderableType) -> None:
        self.what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self.what, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text, lines=True))


def width() -> int:
    """Columns of the terminal; piped, lines are as long as they need."""
    return get_terminal_size().columns if sys.stdout.isatty() else 10_000


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Print aligned columns under their names; those named in `right` hold numbers.

    On a terminal that is too narrow the widest column of texts goes on in the next line. Where its words,
    such as paths, would have no room, each row becomes a block of lines.
    """
    texts = [["" if cell is None else visible(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    excess = sum(widths) + _GAP * (len(widths) - 1) - width()
    if excess > 0:
        widest = max(range(len(columns)), key=lambda index: (columns[index] not in right) * widths[index])
        widths[widest] -= excess
        words = [word for row in texts for word in row[widest].split()]
        least = max(_LEAST, len(columns[widest]), *map(len, words))
        if columns[widest] in right or widths[widest] < least:
            name_width = max(map(len, columns))
            for row in texts:
                for name, cell in zip(columns, row, strict=True):
                    if cell:
                        say(f"{name:<{name_width}}  {cell}")
                say()
            return

    def lines(cells: Sequence[str]) -> Iterator[str]:
        wrapped = [
            wrap(cell, width, break_on_hyphens=False) if len(cell) > width else [cell]
            for cell, width in zip(cells, widths, strict=True)
        ]
        for line in zip_longest(*wrapped, fillvalue=""):
            aligned = (
                cell.rjust(width) if name in right else cell.ljust(width)
                for name, cell, width in zip(columns, line, widths, strict=True)
            )
            yield (" " * _GAP).join(aligned).rstrip()

    (heading,) = lines(columns)
    if _for_people():
        from rich.console import Console
        from rich.text import Text

        Console().print(Text(heading, style="bold"), soft_wrap=True)
    else:
        say(heading)
    for row in texts:
        for line in lines(row):
            say(line)


def _plain(data: Any) -> Any:
    if isinstance(data, float) and (data != data or data in (float("inf"), float("-inf"))):
        return None
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return data
