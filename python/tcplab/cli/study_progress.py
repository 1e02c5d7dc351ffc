"""How `tcplab study` and `tcplab tune` show what goes on."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tcplab.cli.output import quiet
from tcplab.safe_text import visible

if TYPE_CHECKING:
    from tcplab.study.grid import Cell
    from tcplab.study.task import Made


class Lines:
    """A line a run on standard error; on a terminal they overwrite one another.

    `--quiet` leaves those that failed.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()

    def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
        """See `tcplab.study.execute.Watcher`."""
        if quiet() and made.status == "done":
            return
        spent = time.monotonic() - self.began
        left = spent / number * (of - number)
        text = f"[{number}/{of}] {cell.title}, run {made.repetition}: {made.status}"
        if made.status == "failed":
            text += f": {made.message}"
        text = visible(text, lines=True)
        ahead = f" ({left:.0f} s left)" if number < of else ""
        if self.live and made.status == "done":
            sys.stderr.write(f"\r\x1b[K{text}{ahead}"[:200])
            sys.stderr.write("\n" if number == of else "")
        else:
            sys.stderr.write(("\r\x1b[K" if self.live else "") + text + "\n")
        sys.stderr.flush()
