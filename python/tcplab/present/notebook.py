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
    lead: str, titles: Iterable[str], rows: Iterable[Iterable[str]], notes: Iterable[str]
) -> str:
    """A capture's file and counts, its flows as a table, and what could not be read."""
    grid = Grid("", tuple(Heading(title) for title in titles), tuple(tuple(row) for row in rows))
    return _page(Markup("<p>{}</p>").format(lead), [grid], notes)


def _page(head: Markup, grids: Iterable[Grid], notes: Iterable[str]) -> str:
    tables = Markup("").join(grid_html(grid) for grid in grids)
    lines = Markup("<br>").join(escape(note) for note in notes)
    return str(head + tables + Markup("<p><small>") + lines + Markup("</small></p>"))


def grid_html(grid: Grid) -> Markup:
    """A grid as a table element."""
    heads = Markup("").join(
        Markup("<th>{}</th>").format(f"{h.label} ({h.unit})" if h.unit else h.label) for h in grid.headings
    )
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row))
        for row in grid.rows
    )
    return Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(
        grid.title, heads, rows
    )
