"""A table of text cells, and its rendering as plain text or for a rich console."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table


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
        """Something rich can print: minor columns are left out where they do not fit."""
        return RichGrid(self)

    def width(self) -> int:
        """Characters of a line on a terminal."""
        columns = zip(*self.rows, strict=True)
        cells = [
            max(map(len, (h.label, h.unit, *column)))
            for h, column in zip(self.headings, columns, strict=True)
        ]
        return sum(cells) + 3 * len(cells)

    def fitted(self, width: int) -> Grid:
        """The grid without the minor columns that do not fit into `width` characters."""
        grid = self
        while grid.rows and grid.width() > width:
            minor = max(range(len(grid.headings)), key=lambda i: grid.headings[i].minor)
            heading = grid.headings[minor]
            if not heading.minor:
                break
            grid = replace(
                grid,
                headings=grid.headings[:minor] + grid.headings[minor + 1 :],
                rows=tuple(row[:minor] + row[minor + 1 :] for row in grid.rows),
                left_out=(*grid.left_out, heading.label),
            )
        return grid

    def rich_table(self) -> Table:
        """A rich table of all columns."""
        from rich import box
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        if self.left_out:
            table.caption = f"On a wider terminal, or piped: {', '.join(reversed(self.left_out))}"
            table.caption_justify = "left"
        for heading in self.headings:
            label = f"{heading.label}\n[dim]{heading.unit}[/dim]" if heading.unit else heading.label
            table.add_column(
                label,
                justify="right" if heading.numeric else "left",
                no_wrap=heading.numeric,
                # Names are never cut: where nothing else helps they go on in the next line.
                overflow="ellipsis" if heading.numeric else "fold",
            )
        for row in self.rows:
            table.add_row(*row)
        return table


class RichGrid:
    """A grid as rich prints it, fitted to the console's width."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        yield self._grid.fitted(options.max_width).rich_table()
