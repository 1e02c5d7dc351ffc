"""Progress of runs: live bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tcplab.quantities import rate, seconds
from tcplab.safe_text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tcplab.engine.base import Outcome, Progress
    from tcplab.runner import Repetition

# Rates of more flows than this are shown as their number and sum.
_FLOWS_SHOWN = 6
# Seconds between two plain lines of one run.
_PLAIN_PERIOD = 5.0


def watcher(*, quiet: bool) -> Silent | Plain | Live:
    """The display that suits standard error, where progress goes; standard output keeps the results."""
    if quiet:
        return Silent()
    return Live() if sys.stderr.isatty() else Plain()


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def started(self, run: Repetition) -> None:
        """A repetition begins."""

    def moved(self, run: Repetition, progress: Progress) -> None:
        """A repetition has come further."""

    def ended(self, run: Repetition, outcome: Outcome, wall: float) -> None:
        """A repetition is over after `wall` seconds."""

    def note(self, text: str) -> None:
        """Something to be known at once."""


class Plain(Silent):
    """A line when a repetition ends, and every few seconds while it goes on."""

    def __init__(self) -> None:
        self._said: dict[Repetition, float] = {}
        self._lock = threading.Lock()

    def started(self, run: Repetition) -> None:
        """A repetition begins."""
        self._said[run] = time.monotonic()

    def moved(self, run: Repetition, progress: Progress) -> None:
        """A repetition has come further."""
        now = time.monotonic()
        if now - self._said[run] < _PLAIN_PERIOD:
            return
        self._said[run] = now
        self.note(f"{run.title}: {_position(progress)}, {_rates(progress)}".removesuffix(", "))

    def ended(self, run: Repetition, outcome: Outcome, wall: float) -> None:
        """A repetition is over after `wall` seconds."""
        self.note(_ending(run, outcome, wall))

    def note(self, text: str) -> None:
        """Something to be known at once."""
        with self._lock:
            sys.stderr.write(visible(text, lines=True) + "\n")
            sys.stderr.flush()


class Live(Silent):
    """A bar for each repetition that goes on, with the goodput of its flows."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._console = Console(stderr=True)
        self._running: dict[Repetition, Progress | None] = {}
        self._lock = threading.Lock()
        self._live = RichLive(
            console=self._console, get_renderable=self._render, refresh_per_second=10, transient=True
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def started(self, run: Repetition) -> None:
        """A repetition begins."""
        with self._lock:
            self._running[run] = None

    def moved(self, run: Repetition, progress: Progress) -> None:
        """A repetition has come further."""
        with self._lock:
            self._running[run] = progress

    def ended(self, run: Repetition, outcome: Outcome, wall: float) -> None:
        """A repetition is over after `wall` seconds."""
        with self._lock:
            self._running.pop(run, None)
        self.note(_ending(run, outcome, wall))

    def note(self, text: str) -> None:
        """Something to be known at once."""
        self._console.print(visible(text, lines=True), markup=False, highlight=False, soft_wrap=True)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            running = sorted(self._running.items(), key=lambda item: (item[0].name, item[0].number))
        rows: list[RenderableType] = []
        for run, progress in running:
            done = progress.time / progress.duration if progress and progress.duration else 0.0
            bar = Table.grid(padding=(0, 1), expand=False)
            bar.add_column(no_wrap=True, overflow="ellipsis")
            bar.add_column(width=max(10, min(40, self._console.width - 48)))
            bar.add_column(no_wrap=True)
            where = _position(progress) if progress else "starting"
            bar.add_row(Text(run.title), ProgressBar(total=1.0, completed=min(done, 1.0)), Text(where))
            rows.append(bar)
            if progress and progress.goodput:
                rows.append(Text(f"  {_rates(progress)}", style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*rows)


def _position(progress: Progress) -> str:
    # Repetitions last up to a round trip longer than the plan.
    whole = progress.duration / 1e9
    return f"{progress.time / 1e9:.1f} of {round(whole, 1) if whole >= 1 else whole:g} s"


def _rates(progress: Progress) -> str:
    flows = progress.goodput
    if not flows:
        return ""
    if len(flows) > _FLOWS_SHOWN:
        return f"{len(flows)} flows, together {rate(sum(flows.values()))}"
    return ", ".join(f"{name} {rate(goodput)}" for name, goodput in flows.items())


def _ending(run: Repetition, outcome: Outcome, wall: float) -> str:
    words = {"done": "done", "interrupted": "interrupted", "failed": "failed"}[outcome.status.value]
    # Of a single run, the error that follows says why.
    is_said_later = outcome.status.value == "failed" and run.of == 1
    tail = f": {outcome.message}" if outcome.message and not is_said_later else ""
    took = seconds(wall) if wall >= 120 else f"{wall:.2f} s"
    return f"{run.title}: {words} in {took}{tail}"
