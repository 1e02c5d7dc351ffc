"""A run as a notebook shows it."""

from __future__ import annotations

from markupsafe import Markup, escape

from tcplab.present.summary_table import summary
from tcplab.present.text_table import Grid
from tcplab.results.run import Run


def notebook_html(run: Run) -> str:
    """The run's name, its summary tables and their notes."""
    table = summary(run)
    head = Markup("<p><b>{}</b>: {}, {} repetition(s), {}</p>").format(
        run.name, run.engine, len(run.repetitions), run.status
    )
    tables = Markup("").join(grid_html(grid) for grid in table.grids())
    notes = Markup("<br>").join(escape(note) for note in table.notes)
    return str(head + tables + Markup("<p><small>") + notes + Markup("</small></p>"))


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
