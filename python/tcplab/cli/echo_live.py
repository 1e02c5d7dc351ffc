"""The table that grows while `tcplab echo run` measures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.text import Text

    from tcplab.echo.standalone import Test


class Shown(Protocol):
    """Something that shows how a test goes."""

    def update(self, event: dict[str, Any]) -> None:
        """An event has come in, and the test has noted it."""


@contextmanager
def display(test: Test, *, quiet: bool, labels: str) -> Iterator[Shown]:
    """A live table on a terminal, a line for each size elsewhere."""
    if quiet:
        yield _Nothing()
    elif not sys.stderr.isatty():
        yield _Lines(test)
    else:
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
            yield _Live(test, live, labels)


class _Nothing:
    def update(self, event: dict[str, Any]) -> None:
        """Show nothing."""


class _Lines:
    def __init__(self, test: Test) -> None:
        self._test = test

    def update(self, event: dict[str, Any]) -> None:
        """A line when all clients are through with a size."""
        if event["event"] != "series" or not self._test.done_at(event["size"]):
            return
        one = self._test.echoes().at(event["size"])
        if one is not None:
            sys.stderr.write(f"{one.size} B: {one.count} round trips, mean {one.mean / 1e6:.4f} ms\n")
            sys.stderr.flush()


class _Live:
    def __init__(self, test: Test, live: Any, labels: str) -> None:
        self._test = test
        self._live = live
        self._labels = labels
        self._lines: list[str] = []

    def update(self, event: dict[str, Any]) -> None:
        """The table of the sizes that are done, and how far the present one is."""
        if event["event"] == "series":
            from tcplab.analysis.echo import tables

            self._lines = tables(self._test.echoes(), self._labels)[0].lines(self._live.console.width)
        if event["event"] in ("series", "progress"):
            self._live.update(self._text(), refresh=True)

    def _text(self) -> Text:
        from rich.text import Text

        asked = self._test.asked
        lines = list(self._lines)
        current = self._test.current()
        if current is not None:
            size, done, mean = current
            place = asked.sizes.index(size) + 1 if size in asked.sizes else 0
            of = asked.iterations * max(1, len(self._test.connected))
            so_far = f", mean {mean / 1e6:.4f} ms" if done else ""
            lines.append(
                f"{size} B ({place} of {len(asked.sizes)} sizes): {done} of {of} round trips{so_far}"
            )
        return Text("\n".join(lines))
