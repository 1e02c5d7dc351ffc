"""The report of `tcplab echo run`: one HTML file, with what a run's report says of its echoes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tcplab.analysis.echo import Echoes, Step
from tcplab.present.echo import part_of
from tcplab.present.page import figure_json, page_environment, plotly_script
from tcplab.results.files import write_text
from tcplab.results.host import describe_host


def write_echo_page(
    path: Path,
    echoes: Echoes,
    steps: Sequence[Step],
    *,
    server: str,
    mode: str,
    warnings: Sequence[str] = (),
    errors: Sequence[str] = (),
) -> Path:
    """Write what a test between two machines measured; returns the file.

    `server` is the address it ran against, `mode` how both ends waited. Raises ResultsError when the file
    cannot be written.
    """
    part = part_of(echoes, steps, server)
    host = describe_host()
    template = page_environment().get_template("echo_page.html.j2")
    page = template.render(
        title=f"Echoes from {server}",
        echoes=echoes,
        mode=mode,
        warnings=warnings,
        errors=errors,
        host=host,
        written=f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S %Z}",
        echo=part,
        echo_figures=[
            {"title": title, "drawn": figure_json(figure), "notes": figure.notes}
            for title, figure in part.figures
        ],
        plotly=plotly_script(),
    )
    write_text(path, page)
    return path
