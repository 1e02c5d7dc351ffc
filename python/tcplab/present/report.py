"""The report: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from tcplab.analysis.event_counts import event_rows
from tcplab.figures.model import Figure
from tcplab.plan.describe import describe_direction, describe_flow
from tcplab.plan.paths import DIRECTIONS
from tcplab.plan.types import Direction, DirectionKey, Plan
from tcplab.present.comparison import Comparison, compare
from tcplab.present.echo import EchoPart, echo_part
from tcplab.present.network_drawing import draw_network
from tcplab.present.page import figure_json, page_environment, plotly_script
from tcplab.present.summary_table import summary as summary_of
from tcplab.present.text_table import Grid
from tcplab.quantities import time_text
from tcplab.results.files import write_text
from tcplab.results.run import Run
from tcplab.results.schema import TABLES
from tcplab.results.writer import REPORT_FILE

# A figure for each repetition is kept for this many; the tables hold the others.
_MAX_REPETITIONS = 5
# More flows than this are left to the plan.
_MAX_FLOWS = 40


@dataclass(frozen=True)
class CapturePart:
    """The report's section on the run's captures."""

    grid: Grid
    figures: tuple[Figure, ...]
    drawn_from: str
    """The capture whose flows are drawn."""
    notes: tuple[str, ...]


def write_report(
    run: Run,
    path: Path | str | None = None,
    *,
    omit: int | str | None = None,
    level: float = 0.95,
    captures: CapturePart | None = None,
) -> Path:
    """Write a run's report, by default as report.html in its directory; returns the file.

    Raises ResultsError when it cannot be written.
    """
    target = Path(path) if path is not None else run.path / REPORT_FILE
    write_text(target, report_html(run, omit=omit, level=level, captures=captures))
    return target


def write_comparison(runs: Sequence[Run], path: Path | str, *, level: float = 0.95) -> Path:
    """Write the comparison of two or more runs; returns the file. Raises ResultsError."""
    target = Path(path)
    write_text(target, comparison_html(compare(runs, level=level)))
    return target


def report_html(
    run: Run,
    *,
    omit: int | str | None = None,
    level: float = 0.95,
    captures: CapturePart | None = None,
) -> str:
    """A run's report as HTML; `captures` is the part about its captures, where there is one."""
    from tcplab.figures.runs.disciplines import disciplines
    from tcplab.figures.runs.distributions import cdf
    from tcplab.figures.runs.failures import failures
    from tcplab.figures.runs.gauges import gauges
    from tcplab.figures.runs.legs import legs
    from tcplab.figures.runs.timeseries import timeseries

    summary = summary_of(run, omit=omit, level=level)
    distributions = cdf(run, omit=omit)
    shown = run.repetitions[:_MAX_REPETITIONS]
    series = [timeseries(run, repetition) for repetition in shown]
    failed = [failures(run, repetition) for repetition in shown]
    published = [gauges(run, repetition) for repetition in shown]
    queues = [disciplines(run, repetition) for repetition in shown]
    split = [legs(run, repetition) for repetition in shown]
    echo = echo_part(run)
    template = page_environment().get_template("report.html.j2")
    return template.render(
        run=run,
        title=run.name,
        manifest=run.manifest,
        manifests=run.manifests,
        lead=_lead(run),
        grids=summary.grids(echoes=False),
        notes=summary.notes,
        series=[figure_json(figure) for figure in series if figure.panels],
        # Which repetition is shown stands beside the buttons that choose it.
        series_notes=[note for note in series[0].notes if not note.startswith("Repetition ")],
        repetitions=shown,
        left_out=len(run.repetitions) - len(shown),
        failures=[figure_json(figure) for figure in failed if figure.panels],
        failure_notes=failed[0].notes,
        gauges=[figure_json(figure) for figure in published if figure.panels],
        gauge_notes=published[0].notes,
        disciplines=[figure_json(figure) for figure in queues if figure.panels],
        discipline_notes=queues[0].notes,
        legs=[figure_json(figure) for figure in split if figure.panels],
        leg_notes=split[0].notes,
        distributions=figure_json(distributions) if distributions.panels else None,
        distribution_notes=distributions.notes,
        echo=echo,
        echo_figures=_echo_figures(echo),
        wire=captures,
        wire_figures=[
            {"title": figure.title, "drawn": figure_json(figure), "notes": figure.notes}
            for figure in (captures.figures if captures is not None else ())
        ],
        events=event_rows(run),
        network=draw_network(run.plan),
        links=_link_rows(run.plan),
        flows=_flow_rows(run.plan),
        sampling=_sampling(run),
        tables=_table_rows(run),
        scenario_text=run.scenario_text,
        plotly=plotly_script(),
    )


def _echo_figures(part: EchoPart | None) -> list[dict[str, Any]]:
    return [
        {"title": title, "drawn": figure_json(figure), "notes": figure.notes}
        for title, figure in (part.figures if part is not None else ())
    ]


def comparison_html(comparison: Comparison) -> str:
    """A comparison as HTML."""
    template = page_environment().get_template("compare.html.j2")
    return template.render(
        title=comparison.title,
        comparison=comparison,
        zipped=list(zip(comparison.labels, comparison.summaries, strict=True)),
        grids=comparison.grids(),
        series=[figure_json(comparison.timeseries)],
        series_notes=comparison.timeseries.notes,
        distributions=figure_json(comparison.cdf) if comparison.cdf.panels else None,
        distribution_notes=comparison.cdf.notes,
        echo=comparison.echo,
        echo_figures=_echo_figures(comparison.echo),
        plotly=plotly_script(),
    )


def _lead(run: Run) -> str:
    """A sentence or two: the run, its engine and its machine."""
    manifest, plan = run.manifest, run.plan
    flows, links = len(plan.get("flows", ())), len(plan.get("links", ()))
    n = len(run.repetitions)
    how = {
        "sim": "in the simulator",
        "kernel": "on the Linux TCP stack, over an emulated network",
        "remote": "between real hosts",
    }.get(run.engine, f"by {run.engine}" if run.engine else "")
    parts = [
        f"{_count(flows, 'flow')} over {_count(links, 'link')} for {time_text(plan.get('duration', 0))}",
        how,
    ]
    text = " ".join(part for part in parts if part)
    seeds = [m.seed for m in run.manifests.values()]
    text += f", {_count(n, 'repetition')} ({'seeds' if n > 1 else 'seed'} {_list(seeds)})."
    wall = [m.wall_duration for m in run.manifests.values() if m.wall_duration is not None]
    if wall:
        text += f" It took {sum(wall):.3g} s"
        text += f" and started {_date(manifest.started)}." if manifest.started else "."
    return text[0].upper() + text[1:]


def _date(iso: str) -> str:
    try:
        return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S %Z}"
    except ValueError:
        return iso


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _list(values: Sequence[Any]) -> str:
    texts = [str(value) for value in values]
    return ", ".join(texts) if len(texts) <= 6 else f"{texts[0]} to {texts[-1]}"


def _link_rows(plan: Plan) -> list[dict[str, str]]:
    """A row per distinct link direction, with the names of the links that share its settings."""
    groups: dict[str, tuple[list[str], Direction, DirectionKey]] = {}
    for link in plan.get("links", ()):
        for direction in DIRECTIONS:
            settings = link[direction]
            key = direction + json.dumps(settings, sort_keys=True)
            groups.setdefault(key, ([], settings, direction))[0].append(link["name"])
    return [
        {
            "links": ", ".join(names) if len(names) <= 6 else f"{names[0]} and {len(names) - 1} more alike",
            "direction": DIRECTIONS[direction],
            "rate": words.rate,
            "delay": words.delay,
            "queue": words.queue,
            "impairments": "; ".join(words.impairments) or "none",
            "changes": "; ".join(words.changes),
        }
        for names, settings, direction in groups.values()
        for words in (describe_direction(settings),)
    ]


def _flow_rows(plan: Plan) -> list[dict[str, str]]:
    return [
        {
            "name": flow["name"],
            "ends": f"{flow['from']} → {flow['to']}",
            "control": words.control,
            "traffic": words.traffic,
            "streams": str(flow.get("streams", 1)),
            "time": words.time,
        }
        for flow in plan.get("flows", ())[:_MAX_FLOWS]
        for words in (describe_flow(flow),)
    ]


def _sampling(run: Run) -> str:
    sample = run.plan.get("sample")
    if sample is None:
        return "nothing"
    names: list[Literal["sockets", "queues", "flows", "hosts"]] = ["sockets", "queues", "flows"]
    # Simulated hosts have neither CPU nor memory.
    if run.engine != "sim":
        names.append("hosts")
    parts = [f"{name} every {time_text(every)}" for name in names if (every := sample.get(name))]
    if sample.get("packets"):
        parts.append("every packet event")
    return ", ".join(parts) or "nothing"


def _table_rows(run: Run) -> list[dict[str, Any]]:
    rows = []
    for name in TABLES:
        files = [path / f"{name}.parquet" for path in run.run_dirs.values()]
        files = [path for path in files if path.exists()]
        if files:
            rows.append(
                {
                    "name": name,
                    "rows": len(run.tables[name]),
                    "size": sum(path.stat().st_size for path in files),
                    "files": [str(path.relative_to(run.path)) for path in files],
                }
            )
    return rows
