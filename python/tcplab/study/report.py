"""A study's report: one HTML file, its figures as images, its table as CSV and Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcplab.figures.images import FORMATS, write_images
from tcplab.present.page import figure_json, page_environment, plotly_script
from tcplab.present.text_table import Grid
from tcplab.results.files import write_text
from tcplab.study.api import StudyResults
from tcplab.study.execute import Outcome
from tcplab.study.figures import Family, axis_title
from tcplab.study.findings import findings
from tcplab.study.junit import case_words
from tcplab.study.load import Study
from tcplab.study.pairs import pair_grid
from tcplab.study.store import RESULTS_FILE
from tcplab.study.summary import flows_of

REPORT_FILE = "report.html"
_MAX_PAIRS = 120


def write_study_report(found: StudyResults, path: Path | None = None) -> Path:
    """Write the report, by default as the study's report.html; returns it. Raises ResultsError."""
    path = path or found.path / REPORT_FILE
    write_text(path, study_html(found))
    return path


def study_html(found: StudyResults) -> str:
    """The report as HTML."""
    study, outcome, results = found.study, found.outcome, found.results
    whole = found.summary()
    # The surest differences first.
    compared = sorted(found.pairs(), key=lambda pair: (math.isnan(pair.p), pair.p))
    verdicts = [
        {
            "verdict": judgement.verdict.value,
            "that": judgement.statement.text,
            "finding": judgement.statement.finding,
            "cases": case_words(judgement),
        }
        for judgement in found.judgements
    ]
    failed = [one for one in outcome.done if one.status == "failed"]
    return (
        page_environment()
        .get_template("study.html.j2")
        .render(
            title=study.name,
            study=study,
            lead=_lead(study, outcome),
            findings=findings(whole, found.judgements),
            verdicts=verdicts,
            grids=[whole.grid(), *(found.summary(flow=flow).grid() for flow in flows_of(results))],
            ping_grids=[found.summary(flow=flow).grid() for flow in flows_of(results, pings=True)],
            pair_grid=pair_grid(compared[:_MAX_PAIRS]) if compared else None,
            pairs_left_out=max(0, len(compared) - _MAX_PAIRS),
            notes=whole.notes,
            families=[_family(study, family) for family in found.families()],
            failed=[(one, next(c for c in outcome.cells if c.id == one.cell)) for one in failed],
            results_file=RESULTS_FILE,
            plotly=plotly_script(),
        )
    )


def write_study_figures(found: StudyResults, directory: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every chart in every format, and the table as CSV and Markdown; returns the files."""
    written = write_images(found.figures(), directory, formats)
    grid = found.summary().grid()
    for name, text in (("table.csv", csv_text(grid)), ("table.md", markdown_text(grid))):
        write_text(directory / name, text)
        written.append(directory / name)
    return written


def csv_text(grid: Grid) -> str:
    """A table as CSV; intervals stand in the cell of their value."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([f"{h.label} ({h.unit})" if h.unit else h.label for h in grid.headings])
    writer.writerows(grid.rows)
    return text.getvalue()


def markdown_text(grid: Grid) -> str:
    """A table as Markdown."""
    heads = [f"{h.label} ({h.unit})" if h.unit else h.label for h in grid.headings]
    rules = ["--:" if h.numeric else "---" for h in grid.headings]
    lines = [heads, rules, *[[cell.replace("|", "\\|") for cell in row] for row in grid.rows]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _family(study: Study, family: Family) -> dict[str, Any]:
    known = [chart for chart in family.charts if chart is not None]
    return {
        "title": known[0].title,
        "axes": [
            {"title": axis_title(study, axis), "labels": labels, "shown": family.values(family.first)[axis]}
            for axis, labels in family.axes.items()
        ],
        "first": family.first,
        "specs": [figure_json(chart) if chart is not None else None for chart in family.charts],
        "notes": list(dict.fromkeys(note for chart in known for note in chart.notes)),
    }


def _lead(study: Study, outcome: Outcome) -> str:
    engines = " and ".join(
        {"sim": "in the simulator", "kernel": "on the Linux TCP stack"}.get(name, f"by {name}")
        for name in dict.fromkeys(cell.engine for cell in outcome.cells)
    )
    done = sum(one.status == "done" for one in outcome.done)
    quick = " A quick run: shortened, with fewer repetitions." if study.quick else ""
    return (
        f"{len(outcome.cells)} cells of {study.repeat} repetitions {engines}; {done} of "
        f"{len(outcome.cells) * study.repeat} runs are done.{quick}"
    )
