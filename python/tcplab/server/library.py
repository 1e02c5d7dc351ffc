"""The server's interface to the rest of tcplab; `labs/network.py` is that to networks that stay up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab import engine as engines
from tcplab import runner, topologies
from tcplab.engine.base import Outcome, Problem, Progress, Status
from tcplab.results import Listed, ResultsError, Run, list_results, load, run_dir_of
from tcplab.results.listing import is_study, walk
from tcplab.scenario import ScenarioErrors, expand, from_document, json_schema, read_text, warnings
from tcplab.scenario.reading import MAX_BYTES, declares_scenario

if TYPE_CHECKING:
    import polars as pl

    from tcplab._core import Document
    from tcplab.plan.types import Plan
    from tcplab.scenario import Scenario
    from tcplab.study.api import StudyResults

__all__ = [
    "MAX_BYTES",
    "Listed",
    "Outcome",
    "Progress",
    "ResultsError",
    "Run",
    "ScenarioErrors",
    "Status",
    "UnreadableError",
    "UnsupportedError",
    "declares_scenario",
    "is_study",
    "json_schema",
    "list_results",
    "load",
    "run_dir_of",
    "walk",
]

UnsupportedError = runner.UnsupportedError
UnreadableError = topologies.UnreadableError
Prepared = runner.Prepared


class ForbiddenError(Exception):
    """A scenario names what this server does not give access to."""


def version() -> str:
    """The version of tcplab."""
    from importlib.metadata import version

    return version("tcplab")


def engine_names() -> list[str]:
    """The engines there are."""
    return engines.names()


def controls() -> list[str]:
    """The congestion controls that the simulator has."""
    from tcplab import _core

    return sorted(_core.controls())


def node_kinds() -> list[dict[str, Any]]:
    """The kinds of nodes, each with its traits."""
    from tcplab import _core

    found: list[dict[str, Any]] = json.loads(_core.node_kinds())
    return found


def check(text: str, name: str, base: Path, engine: str, root: Path, *, own_code: bool) -> dict[str, Any]:
    """Everything `tcplab check` says of a text, and the plan where it is right.

    Files it names are relative to `base` and must be below `root`.
    """
    found: dict[str, Any] = {"ok": False, "errors": [], "problems": [], "warnings": [], "plan": None}
    try:
        scenario = _scenario(text, name, base, root, own_code=own_code)
        plan = expand(scenario)
    except ScenarioErrors as mistakes:
        found["errors"] = [_error(mistake) for mistake in mistakes.errors]
        return found
    except ForbiddenError as problem:
        found["problems"] = [_problem(Problem("", str(problem)))]
        return found
    problems = runner.problems_of(scenario, engines.load(engine), plan)
    found["problems"] = [_problem(problem) for problem in problems]
    found["warnings"] = warnings(plan)
    found["plan"] = plan
    found["ok"] = not any(problem.fatal for problem in problems)
    return found


def prepare(
    text: str, name: str, base: Path, engine: str, root: Path, *, own_code: bool, packets: bool = False
) -> Prepared:
    """A scenario that can run; `packets` records every packet event whatever the text says.

    Raises ScenarioErrors, UnsupportedError and ForbiddenError.
    """
    sets = ("sample.packets=on",) if packets else ()
    scenario = _scenario(text, name, base, root, own_code=own_code, sets=sets)
    return runner.prepare(scenario, source=name, text=text, engine=engines.load(engine))


def packets_of(prepared: Prepared) -> int:
    """How many packets its run takes, estimated."""
    from tcplab.estimate import estimate

    return int(estimate(prepared.plan).packets)


def too_large(prepared: Prepared, results: Path) -> list[str]:
    """The resources that this machine lacks to run it."""
    problems = runner.refusals([prepared], results)
    return [f"{problem.where}: {problem.message}" for problem in problems if problem.fatal]


def reserve(name: str, runs: Path) -> Path:
    """Make a new, empty directory below `runs`; raises ResultsError."""
    return runner.reserve(runner.place(name, None, runs=runs), chosen=False)


def claim(prepared: Prepared, runs: Path) -> Path:
    """Make a new result directory below `runs`; raises ResultsError."""
    return runner.claim(prepared, None, runs=runs)


def execute(
    prepared: Prepared,
    number: int,
    result_dir: Path,
    progress: Callable[[Progress], None],
    note: Callable[[str], None] | None = None,
    attempts: int = 1,
) -> Outcome:
    """One repetition; KeyboardInterrupt out of `progress` ends it early and keeps what was recorded."""
    from tcplab.scenario import repetition

    outcome, _ = runner.run_once(
        repetition(prepared.plan, number),
        prepared.engine,
        run_dir_of(result_dir, number),
        repetition=number,
        warnings=prepared.warnings,
        progress=progress,
        attempts=attempts,
        note=note,
    )
    return outcome


def simulate(prepared: Prepared, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
    """Simulate without a manifest, for someone who edits; the tables are in `run_dir`."""
    return prepared.engine.run(prepared.plan, run_dir, progress)


def rows(run_dir: Path, table: str, columns: list[str], start: int, end: int) -> pl.DataFrame:
    """Some columns of a table's rows from `start` to `end` ns, without reading the rest of the file."""
    import polars as pl

    return _lazy(run_dir, table).filter(pl.col("time").is_between(start, end)).select(columns).collect()


def _lazy(run_dir: Path, table: str) -> pl.LazyFrame:
    import polars as pl

    file = run_dir / f"{table}.parquet"
    if file.exists():
        return pl.scan_parquet(file, glob=False)
    from tcplab.results import read_table

    return read_table(run_dir, table).lazy()


def lasted(run_dir: Path, plan: Plan) -> int:
    """How long a run took, ns: less than its plan's `duration` where all flows had ended in half of that.

    Otherwise it is the `duration`, so that runs whose flows end at about the same time have the same axis.
    """
    import polars as pl

    duration = int(plan["duration"])
    end, all_through = pl.col("end"), pl.col("complete").all() & pl.col("end").is_not_null().all()
    latest, is_over = _lazy(run_dir, "flows").select(end.max(), all_through.alias("over")).collect().row(0)
    return int(latest) if is_over and 0 < (latest or 0) <= duration // 2 else duration


def write_report(path: Path) -> Path:
    """The report of a result, as `tcplab report` writes it; raises ResultsError."""
    from tcplab.present.report import write_report as write

    return write(load(path))


def write_comparison(paths: list[Path], target: Path) -> Path:
    """The comparison of results as a page; raises ResultsError."""
    from tcplab.present.report import write_comparison as write

    return write([load(path) for path in paths], target)


def summary(run: Run) -> dict[str, Any]:
    """Steady-state figures of a result as tables of text cells, those that `tcplab show` prints."""
    from tcplab.present.summary_table import summary as summary_of

    found = summary_of(run)
    tables = [
        {"title": grid.title, "headings": [vars(heading) for heading in grid.headings], "rows": grid.rows}
        for grid in found.grids()
    ]
    return {"tables": tables, "notes": found.notes}


def shipped_studies() -> list[tuple[str, str]]:
    """The studies that come with tcplab: name and first sentence."""
    from tcplab.study.shipped import described

    return described()


def study_results(path: Path) -> dict[str, Any]:
    """Cells of a study directory with their figures, as far as it has come.

    Raises ResultsError and ScenarioErrors.
    """
    from tcplab.study.api import open_results
    from tcplab.study.execute import axes_of
    from tcplab.study.store import RESULTS_FILE, dataset
    from tcplab.study.summary import summary as summary_of

    # Before they are read: one that ends meanwhile may have been read without its figures.
    over = {run_dir for run_dir in path.glob("cells/*/run-*") if _has_ended(run_dir)}
    found = open_results(path)
    # The data set on disk is that of the study's end.
    cells = {cell.id: cell for cell in found.outcome.cells}
    done = [one for one in found.outcome.done if found.store.run_dir(cells[one.cell], one.repetition) in over]
    so_far = dataset(found.outcome.cells, done, axes_of(found.study))
    summary = summary_of(found.study, found.outcome.cells, so_far, level=found.level)
    judgements = found.judgements if (path / RESULTS_FILE).is_file() else []
    return {
        "name": found.study.name,
        "axes": {axis.name: [value.label for value in axis.values] for axis in found.study.axes},
        "axis_titles": {axis.name: axis.title for axis in found.study.axes},
        "cells": summary.to_json(),
        "runs": [
            {"cell": one.cell, "repetition": one.repetition, "status": one.status, "message": one.message}
            for one in done
        ],
        "places": {cell.id: str(found.store.cell_dir(cell)) for cell in found.outcome.cells},
        "left": _left(found),
        "repeat": found.study.repeat,
        "metrics": _metrics(),
        "expectations": [
            {"statement": judged.statement.text, "verdict": judged.verdict.value} for judged in judgements
        ],
    }


def _left(found: StudyResults) -> dict[str, int]:
    """How many runs a resumed study makes, repeats since they failed, and cannot make."""
    from tcplab.study.execute import refused, work

    try:
        todo = work(found.study, found.store)
        cells = refused(found.study, todo)
    except (ResultsError, ScenarioErrors):
        return {"missing": 0, "failed": 0, "refused": 0}
    possible = sum(job.cell.id not in cells for job in todo.missing)
    failed = sum(job.cell.id not in cells for job in todo.failed)
    return {"missing": possible - failed, "failed": failed, "refused": len(todo.missing) - possible}


def _has_ended(run_dir: Path) -> bool:
    """Whether a study's run is over: measured, failed or damaged, rather than going on or being measured."""
    from tcplab.results.manifest import read_manifest
    from tcplab.study.store import METRICS_FILE

    if (run_dir / METRICS_FILE).is_file():
        return True
    try:
        return read_manifest(run_dir).status == "failed"
    except ResultsError:
        return True


def _metrics() -> dict[str, dict[str, Any]]:
    from tcplab.study.metrics import METRICS, title

    return {
        name: {"title": title(name), "unit": metric.unit, "share": metric.share, "about": metric.doc}
        for name, metric in METRICS.items()
    }


def study_report(path: Path) -> Path:
    """The report of a study; raises ResultsError."""
    from tcplab.study.api import open_results
    from tcplab.study.report import write_study_report

    return write_study_report(open_results(path))


def ladder(capture: Path, flow: int, *, dark: bool, maximum: int = 200) -> str:
    """The flow graph of a flow's first and last packets as SVG; raises CaptureError."""
    from tcplab.captures.capture import read
    from tcplab.captures.ladder import ladder as graph
    from tcplab.captures.ladder_svg import DARK, LIGHT, svg
    from tcplab.captures.packets import follow

    packets, _ = follow(capture, [flow])
    return svg(graph(read(capture).flow(flow), packets, maximum), DARK if dark else LIGHT)


def study_begun(path: Path, root: Path) -> str:
    """The name of the study that a directory holds, whose file can be read again from below `root`.

    Raises ResultsError and ForbiddenError.
    """
    from tcplab.study.shipped import called
    from tcplab.study.store import Store

    store = Store(path)
    source = store.source()
    if called(source) not in dict(shipped_studies()) and not Path(source).resolve().is_relative_to(root):
        raise ForbiddenError(f"{source}: this file is outside the served directory")
    return str(store.index().get("study", path.name))


def imported(text: str, name: str) -> dict[str, Any]:
    """The topology of another tool, from a file of this name, as a scenario: its `text` and `name`.

    `left_out` has a sentence for each thing that the scenario does not say, `notes` one for each setting that
    could be meant otherwise. Raises UnreadableError.
    """
    from tcplab.plan.yaml_text import dump_plan_yaml

    found = topologies.read_text(text, name)
    return {
        "text": dump_plan_yaml(found.scenario()),
        "name": found.name,
        "left_out": found.left_out,
        "notes": found.notes,
    }


def _scenario(
    text: str, name: str, base: Path, root: Path, *, own_code: bool, sets: tuple[str, ...] = ()
) -> Scenario:
    from tcplab.testbed.known_controls import Controls

    document = read_text(text, name)
    _refuse_outside(document, base, root, own_code=own_code)
    return from_document(document, base, sets, Controls())


def _refuse_outside(document: Document, base: Path, root: Path, *, own_code: bool) -> None:
    """A trace or C file outside the served directory is refused before anything opens it."""
    for key, name in _named_files(document.plain([])):
        if key == "cc" and not own_code:
            raise ForbiddenError(
                f"{name}: a C file of one's own runs on the server's machine; start it with --allow-run"
            )
        if not (base / name).resolve().is_relative_to(root):
            raise ForbiddenError(f"{name}: this file is outside the served directory")


def _named_files(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _named_files(item)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key == "trace" and isinstance(inner, str):
            yield key, inner
        elif key == "cc":
            name = inner.get("name") if isinstance(inner, dict) else inner
            if isinstance(name, str) and ("/" in name or name.endswith(".c")):
                yield key, name
        else:
            yield from _named_files(inner)


def _problem(problem: Problem) -> dict[str, Any]:
    """A problem of an engine as the page reads it; its line is 0 where the text does not hold it."""
    at = problem.at
    place = (
        {"line": at.line, "column": at.column, "width": at.width}
        if at
        else {"line": 0, "column": 0, "width": 0}
    )
    return {
        "where": problem.where,
        "message": problem.message,
        "hint": problem.fix,
        "fatal": problem.fatal,
        **place,
    }


def _error(mistake: Any) -> dict[str, Any]:
    fields = ("line", "column", "width", "path", "value", "message", "suggestion")
    return {name: getattr(mistake, name) for name in fields}
