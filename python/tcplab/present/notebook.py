"""Runs and studies as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from tcplab.present.summary_table import summary
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import plural
from tcplab.results.run import Run


def notebook_html(run: Run) -> str:
    """The run's name, its summary tables and their notes."""
    table = summary(run)
    head = Markup("<p><b>{}</b>: {} on {}, {}</p>").format(
        run.name, plural(len(run.repetitions), "run"), run.engine, run.status
    )
    return _page(head, table.grids(), table.notes)


def study_html(name: str, status: str, grid: Grid, notes: Iterable[str]) -> str:
    """A study's name, its table of cells and the notes below it."""
    return _page(Markup("<p><b>{}</b>: study, {}</p>").format(name, status), [grid], notes)


def comparison_html(grids: Iterable[Grid], notes: Iterable[str]) -> str:
    """The tables of a comparison and their notes."""
    return _page(Markup(""), grids, notes)


def capture_html(
    name: str, counts: str, headings: Iterable[Heading], rows: Iterable[Iterable[str]], notes: Iterable[str]
) -> str:
    """A capture's file and counts, its flows as a table, and what could not be read."""
    grid = Grid("", tuple(headings), tuple(tuple(row) for row in rows))
    return _page(Markup("<p><b>{}</b>: {}</p>").format(name, counts), [grid], notes)


def _page(head: Markup, grids: Iterable[Grid], notes: Iterable[str]) -> str:
    tables = Markup("").join(grid_html(grid) for grid in grids)
    lines = Markup("<br>").join(escape(note) for note in notes)
    return str(head + tables + Markup("<p><small>") + lines + Markup("</small></p>"))


def grid_html(grid: Grid) -> Markup:
    """A grid as a table element."""
    # In a style of its own: a notebook aligns every cell to the right, a page none.
    cell = Markup('<{0} style="text-align: {1}; white-space: nowrap; padding: 1px 6px">{2}</{0}>')
    sides = ["right" if heading.numeric else "left" for heading in grid.headings]
    titles = [f"{h.label} ({h.unit})" if h.unit else h.label for h in grid.headings]

    def row(element: str, texts: Iterable[str]) -> Markup:
        return Markup("").join(
            cell.format(element, side, text) for side, text in zip(sides, texts, strict=True)
        )

    heads = row("th", titles)
    rows = Markup("").join(Markup("<tr>{}</tr>").format(row("td", texts)) for texts in grid.rows)
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        grid.title, heads, rows
    )
