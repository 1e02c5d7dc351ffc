"""A page of figures made from captures."""

from __future__ import annotations

from collections.abc import Sequence

from tcplab.figures.model import Figure
from tcplab.present.page import figure_json, page_environment, plotly_script


def captures_html(title: str, lead: str, figures: Sequence[Figure], remarks: Sequence[str]) -> str:
    """A page with these figures, one below the other."""
    template = page_environment().get_template("captures.html.j2")
    return template.render(
        title=title,
        lead=lead,
        remarks=remarks,
        figures=[
            {"title": figure.title, "drawn": figure_json(figure), "notes": figure.notes} for figure in figures
        ],
        plotly=plotly_script(),
    )
