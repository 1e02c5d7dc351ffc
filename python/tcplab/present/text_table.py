"""A table of text cells, and its rendering as plain text or for a rich console."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

# Characters of a line of a name or a heading on a terminal at the least.
_LEAST = 8


@dataclass(frozen=True)
class Heading:
    """A column's heading."""

    label: str
    unit: str = ""
    numeric: bool = True
    about: str = ""
    """Description of the column, for a tooltip."""
    minor: int = 0
    """On a narrow terminal the column with the highest number goes first; 0: never."""
    part: int = 0
    """The table for the column where the terminal has no room for one with all; 0: in each of them."""


@dataclass(frozen=True)
class Grid:
    """Headings and rows of cells."""

    title: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...] = ()
    """Columns for which the terminal had no room."""

    def to_text(self) -> str:
        """Plain text, columns aligned."""
        heads = [f"{h.label} ({h.unit})" if h.unit else h.label for h in self.headings]
        widths = [max(len(line[i]) for line in (heads, *self.rows)) for i in range(len(heads))]

        def line(cells: tuple[str, ...] | list[str]) -> str:
            return "  ".join(
                cell.rjust(width) if heading.numeric else cell.ljust(width)
                for cell, width, heading in zip(cells, widths, self.headings, strict=True)
            ).rstrip()

        rule = "  ".join("-" * width for width in widths)
        return "\n".join([self.title, line(heads), rule, *(line(row) for row in self.rows)])

    def to_rich(self) -> RichGrid:
        """Something rich can print: fitted to the width there is."""
        return RichGrid(self)

    def width(self) -> int:
        """Characters of a line on a terminal."""
        columns = zip(*self.rows, strict=True)
        cells = [
            max(map(len, (*h.label.split("\n"), h.unit, *column)))
            for h, column in zip(self.headings, columns, strict=True)
        ]
        return sum(cells) + 3 * len(cells)

    def folded(self) -> Grid:
        """The grid with headings that go on in the next line rather than widen their column."""
        columns = zip(*self.rows, strict=True)
        return replace(
            self,
            headings=tuple(
                replace(h, label=_folded(h.label, max(map(len, column))))
                for h, column in zip(self.headings, columns, strict=True)
            ),
        )

    def parts(self, width: int) -> list[Grid]:
        """The grid, or those below each other that take its place in `width`."""
        numbers = sorted({heading.part for heading in self.headings if heading.part})
        if not numbers or self.folded().width() <= width:
            return [self]
        return [self._part(number, self.title if number == numbers[0] else "") for number in numbers]

    def _part(self, number: int, title: str) -> Grid:
        kept = [index for index, heading in enumerate(self.headings) if heading.part in (0, number)]
        headings = tuple(self.headings[index] for index in kept)
        return Grid(title, headings, tuple(tuple(row[index] for index in kept) for row in self.rows))

    def fitted(self, width: int) -> Grid:
        """The grid with narrow headings, and without the minor columns, that do not fit into `width`."""
        grid = self.folded() if self.rows and self.width() > width else self
        while grid.rows and grid.width() > width:
            minor = max(range(len(grid.headings)), key=lambda i: grid.headings[i].minor)
            heading = grid.headings[minor]
            if not heading.minor:
                break
            grid = replace(
                grid,
                headings=grid.headings[:minor] + grid.headings[minor + 1 :],
                rows=tuple(row[:minor] + row[minor + 1 :] for row in grid.rows),
                left_out=(*grid.left_out, heading.label.replace("\n", " ")),
            )
        return grid

    def least_width(self) -> int:
        """Characters of a line on a terminal where names go on in the next one, and figures do not."""
        columns = list(zip(*self.rows, strict=True))
        heads = [max(map(len, (*h.label.split("\n"), h.unit))) for h in self.headings]
        cells = [
            max(head, *map(len, column)) if h.numeric else min(_LEAST, max(map(len, column)))
            for h, head, column in zip(self.headings, heads, columns, strict=True)
        ]
        return sum(cells) + 3 * len(cells)

    def rich_table(self, width: int) -> Table:
        """A rich table of all columns for a terminal of this width."""
        from rich import box
        from rich.table import Table

        table = Table(title=self.title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        if self.left_out:
            table.caption = f"On a wider terminal, or piped: {', '.join(reversed(self.left_out))}\n"
            table.caption_justify = "left"
        columns = zip(*self.rows, strict=True)
        # A figure is never cut either: 7.321 would be 7.
        narrow = bool(self.rows) and self.least_width() > width
        for heading, column in zip(self.headings, columns, strict=True):
            label = f"{heading.label}\n[dim]{heading.unit}[/dim]" if heading.unit else heading.label
            table.add_column(
                label,
                justify="right" if heading.numeric else "left",
                # A column of names is not squeezed out by those of numbers.
                min_width=None if heading.numeric else min(_LEAST, max(map(len, column))),
                no_wrap=heading.numeric and not narrow,
                # Names are never cut: where nothing else helps they go on in the next line.
                overflow="ellipsis" if heading.numeric and not narrow else "fold",
            )
        for row in self.rows:
            table.add_row(*row)
        return table


def _folded(label: str, width: int) -> str:
    """A heading in lines of this width, broken at spaces and hyphens."""
    return "\n".join(wrap(label, max(_LEAST, width), break_long_words=False))


class RichGrid:
    """A grid as rich prints it, in parts that fit the console's width."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        for grid in self._grid.parts(options.max_width):
            yield grid.fitted(options.max_width).rich_table(options.max_width)
