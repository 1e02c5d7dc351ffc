"""`tcplab study`: run a scenario over a parameter grid with repetitions, and compare the results."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from tcplab.cli import completion
from tcplab.cli.command import DefaultGroup
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Engines, ImageFormats, Json, Level, Settings, Yes, fits, level_of

if TYPE_CHECKING:
    from tcplab.study.api import StudyResults
    from tcplab.study.execute import Tasks
    from tcplab.study.judge import Judgement
    from tcplab.study.load import Asked, Study
    from tcplab.study.store import Store

EXAMPLE = "tcplab study tuning --quick"

_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A study's directory.", show_default=False)]


def _engines(given: list[str] | None) -> list[str]:
    """The engines, of which an option may name several; Typer knows no lists of a Literal."""
    known = get_args(Engines)
    named = [name for each in given or () for name in each.split(",")]
    for name in named:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, known))}")
    return named


app = typer.Typer(cls=DefaultGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback(epilog=f"\b\nExample:\n  {EXAMPLE}\n  tcplab study studies/mine.yaml --engine sim,kernel")
def group() -> None:
    """Run a scenario over a parameter grid and compare the results.

    `tcplab study NAME` (or a file) is short for `tcplab study run NAME`, whose options
    `tcplab study run --help` lists.
    """


@app.command("run", epilog=f"\b\nExample:\n  {EXAMPLE}")
@guarded
def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STUDY",
            help="A study file, or the name of a shipped study.",
            autocompletion=completion.studies,
        ),
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            "-e",
            metavar="<sim|kernel|remote>",
            help="The engine, or several to compare. Repeatable.",
            autocompletion=lambda: list(get_args(Engines)),
            callback=_engines,
        ),
    ] = None,
    settings: Settings = None,
    repeat: Annotated[
        int | None,
        typer.Option("--repeat", "-n", min=1, metavar="N", help="Runs of each cell. [default: the study's]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**64 - 1, metavar="N", help="Seed of the first runs. [default: the study's]"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter and fewer runs, for a first look.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the cells and estimate the time.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Study directory. [default: runs/NAME-DATE-TIME]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="DIR", help="Resume a study, as it was asked for: run only the missing runs."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Simulations at a time. [default: all cores]"),
    ] = None,
    kernel_jobs: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Kernel runs at a time; they disturb each other."),
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Spread simulations over a Dask cluster (tcp://host:8786)."),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="With --dask: storage of the workers' results (an fsspec path, s3://…)."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the expectations as JUnit XML.")
    ] = None,
    level: Level = None,
    json: Json = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML report.")] = True,
    yes: Yes = False,
) -> None:
    """Run a scenario over a parameter grid and compare the results.

    Exit code 1 if an expectation fails, 4 if a run failed.
    """
    from tcplab.cli.study_progress import Lines
    from tcplab.study import execute
    from tcplab.study.api import StudyResults
    from tcplab.study.load import Asked, load
    from tcplab.study.shipped import find
    from tcplab.study.store import Store

    confidence = level_of(level)
    if storage is not None and dask is None:
        raise CommandError("--storage says where the workers of --dask put results: give both", Code.INPUT)
    asked = Asked(
        tuple(engine or ()),
        tuple(settings or ()),
        repeat,
        seed,
        quick,
    )
    if resume is not None:
        asked = asked.over(_resumed(Store(resume)))
    found = load(find(source), asked)
    store = Store(resume or _place(found, output))
    todo = execute.work(found, store)
    if dry_run:
        _print_cells(found, todo, jobs, json=json)
        return
    require_possible(found, todo)
    check_size(found, todo, store, jobs, yes)
    store = _claim(found, store, todo, resume, chosen=bool(resume or output))
    executor = _dask(dask, storage, store) if dask is not None else None
    outcome = execute.execute(
        found, store, watcher=Lines(), jobs=jobs, exclusive_jobs=kernel_jobs, executor=executor
    )
    answered = StudyResults(found, store, outcome, level=confidence)
    answer(answered, json=json, report=report, junit=junit)


@app.command(
    "report", epilog="\b\nExample:\n  tcplab study report runs/tuning-20260101-120000 --figures figures"
)
@guarded
def report(
    directory: _Directory,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the figures and the table as files into this directory."),
    ] = None,
    formats: ImageFormats = None,
    level: Level = None,
    json: Json = False,
) -> None:
    """Write a study's report again, or its figures and table as files."""
    from tcplab.cli.output import say_files
    from tcplab.cli.report import image_formats, write_study

    confidence = level_of(level)
    say_files(write_study(directory, figures, image_formats(formats, figures), confidence), json=json)


@app.command(
    "query",
    epilog="\b\nExample:\n  tcplab study query runs/tuning-20260101-120000 'SELECT * FROM results'",
)
@guarded
def query(
    directory: _Directory,
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="A query of `results`, or of `flows`, `intervals` and so on.")
    ],
    json: Json = False,
    form: Annotated[
        Literal["csv", "json"] | None,
        typer.Option("--format", "-f", help="Write only the rows, in this format."),
    ] = None,
) -> None:
    """Query a study's results with SQL."""
    from tcplab.cli.output import say, say_json, say_plain_json, table
    from tcplab.results import ResultsError
    from tcplab.study.query import QueryError, csv_text
    from tcplab.study.query import query as ask
    from tcplab.study.store import Store

    if not directory.is_dir():
        raise CommandError(f"{directory}: no such directory", Code.INPUT)
    try:
        answer = ask(Store(directory), sql)
    except (QueryError, ResultsError) as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    if json:
        say_json({"rows": answer.to_dicts()})
    elif form == "json":
        say_plain_json(answer.to_dicts())
    elif form == "csv":
        say(csv_text(answer).rstrip("\n"))
    else:
        numbers = [name for name, kind in answer.schema.items() if kind.is_numeric()]
        rows = [[f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in answer.rows()]
        table(answer.columns, rows, right=numbers)


@app.command("list", epilog="\b\nExample:\n  tcplab study list")
@guarded
def list_studies(json: Json = False) -> None:
    """List the studies that come with tcplab."""
    from tcplab.cli.output import say_json, table
    from tcplab.study.shipped import described

    found = described()
    if json:
        say_json({"studies": [{"name": name, "description": about} for name, about in found]})
    else:
        table(["study", "description"], found)


def _resumed(store: Store) -> Asked:
    """The changes that the study in a directory was begun with."""
    from tcplab.cli.writing import naming
    from tcplab.study.load import Asked

    if not store.taken:
        raise CommandError(
            f"{store.path} is not the directory of a study",
            Code.INPUT,
            "leave out --resume to start a new study",
        )
    with naming(store.path):
        return Asked.from_json(store.index()["asked"])


def _place(study: Study, out: Path | None) -> Path:
    from tcplab import runner

    return runner.place(study.name, out, several=False)


def _claim(study: Study, store: Store, todo: Tasks, resume: Path | None, *, chosen: bool) -> Store:
    from tcplab import runner
    from tcplab.cli.output import warn
    from tcplab.cli.writing import naming
    from tcplab.study.store import Store

    if resume is None and store.taken:
        raise CommandError(
            f"{store.path} already contains a study", Code.INPUT, f"--resume {store.path} goes on"
        )
    if todo.changed:
        cells = len({job.cell.id for job in todo.changed})
        warn(f"{cells} cells have changed since they were run, and are run again")
    for job in todo.damaged:
        warn(f"{store.run_dir(job.cell, job.repetition)} is damaged, and is run again")
    if resume is not None:
        there, failed = len(todo.done), len(todo.failed)
        missing = len(todo.missing) - failed
        rest = [f", {count} {what}" for count, what in ((missing, "missing"), (failed, "failed")) if count]
        warn(f"resuming: {there} of {there + missing + failed} runs are there{''.join(rest)}")
    with naming(store.path, chosen=chosen):
        claimed = Store(runner.reserve(store.path, chosen=chosen))
        claimed.create(study)
    return claimed


def require_possible(study: Study, todo: Tasks) -> None:
    """Fail if no cell of a new study can run here."""
    from tcplab.cli.check import refusal
    from tcplab.runner import UnsupportedError
    from tcplab.study import execute

    try:
        execute.require_possible(study, todo)
    except UnsupportedError as problem:
        raise refusal([problem]) from None


def check_size(study: Study, todo: Tasks, store: Store, jobs: int | None, yes: bool) -> None:
    """Warn of runs with many rows; fail if this machine has too little memory or disk."""
    from collections import Counter

    from tcplab.cli.output import warn
    from tcplab.estimate import beyond, estimate, many_rows
    from tcplab.runner import usable_cores

    times = Counter(job.cell.id for job in todo.missing)
    cells = {job.cell.id: job.cell for job in todo.missing}
    runs = [(estimate(study.plan_of(cells[name])), number) for name, number in times.items()]
    largest = max((one for one, _ in runs), key=lambda one: one.total_rows, default=None)
    for text in many_rows(largest) if largest is not None else ():
        warn(f"{study.source}: warning: the largest run: {text}")
    fits(beyond(runs, jobs or usable_cores(), store.path, yes=yes))


def _dask(address: str, storage: str | None, store: Store) -> Any:
    from tcplab.study.cluster import ClusterError, DaskCluster

    try:
        return DaskCluster(address, store, storage=storage)
    except ClusterError as problem:
        raise CommandError(str(problem), Code.MACHINE) from None


def _print_cells(study: Study, todo: Tasks, jobs: int | None, *, json: bool) -> None:
    from tcplab.cli.output import say, say_json, table
    from tcplab.study.execute import estimate

    if json:
        say_json(
            {
                "cells": [
                    {"id": cell.id, "engine": cell.engine, "labels": cell.labels} for cell in study.cells
                ],
                "repeat": study.repeat,
                "missing": len(todo.missing),
                "seconds": estimate(study, todo, jobs),
            }
        )
        return

    axes = [axis.name for axis in study.axes]
    several = len({cell.engine for cell in study.cells}) > 1
    columns = ["cell", *axes, *(["engine"] if several else [])]
    rows = [
        [cell.id, *(cell.labels.get(axis, "-") for axis in axes), *([cell.engine] if several else [])]
        for cell in study.cells
    ]
    table(columns, rows)
    if study.left_out:
        say(f"{len(study.left_out)} cells are left out: they set the path, and real hosts have their own.")
    say()
    seconds = estimate(study, todo, jobs)
    long = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    say(
        f"{len(study.cells)} cells of {study.repeat} runs; {len(todo.missing)} runs to make, "
        f"about {long} on this machine"
    )


def answer(found: StudyResults, *, json: bool, report: bool, junit: Path | None = None) -> None:
    """Print a study's results and write its report; CommandError and Exit carry the outcome."""
    from tcplab.cli.output import quiet, say, say_json
    from tcplab.study.judge import Verdict

    study, outcome, judged = found.study, found.outcome, found.judgements
    if junit is not None:
        from tcplab.cli.writing import naming
        from tcplab.study.junit import write_junit

        with naming(junit):
            write_junit(junit, study.name, judged, outcome.done)
    if json:
        say_json(_json(found))
    else:
        if not quiet():
            _print_summary(found)
        _print_verdicts(judged)
        if not quiet():
            say(f"results  {found.path}")
        if report and not outcome.interrupted:
            from tcplab.study.report import write_study_report

            written = write_study_report(found)
            if not quiet():
                say(f"report   {written}")
    if outcome.interrupted:
        from tcplab.study.shipped import called

        words = shlex.join(["tcplab", "study", called(study.source), "--resume", str(found.path)])
        raise CommandError(f"interrupted; `{words}` goes on", Code.INTERRUPTED)
    failed = [one for one in outcome.done if one.status == "failed"]
    if failed:
        runs = f"{len(failed)} of {len(outcome.done)} runs failed"
        raise CommandError(f"{runs}; the first: {failed[0].cell}: {failed[0].message}", Code.FAILED)
    if any(judgement.verdict is Verdict.FAILS for judgement in judged):
        raise typer.Exit(Code.NO)


def _print_summary(found: StudyResults) -> None:
    from tcplab.cli.output import say, show
    from tcplab.study.remedies import recommendation
    from tcplab.study.summary import flows_of

    show(found.summary())
    for flow in flows_of(found.results):
        show(found.summary(flow=flow).grid())
    for line in recommendation(found.summary()):
        say(line)


def _print_verdicts(judged: list[Judgement]) -> None:
    from tcplab.cli.output import say
    from tcplab.study.junit import case_words

    for judgement in judged:
        say(f"{judgement.verdict:<9}  {judgement.statement.text}")
        for line in case_words(judgement):
            say(f"           {line}")


def _json(found: StudyResults) -> dict[str, Any]:
    outcome = found.outcome
    return {
        "path": str(found.path),
        "status": outcome.status,
        "wall": outcome.wall,
        "cells": found.summary().to_json(),
        "failed": [
            {"cell": one.cell, "repetition": one.repetition, "message": one.message}
            for one in outcome.done
            if one.status == "failed"
        ],
        "expect": [
            {
                "that": judgement.statement.text,
                "verdict": judgement.verdict.value,
                "cases": [
                    {
                        "free": case.free,
                        "verdict": case.verdict.value,
                        "left": case.left,
                        "right": case.right,
                        "low": case.low,
                        "high": case.high,
                        "repetitions": case.repetitions,
                        "reason": case.reason,
                    }
                    for case in judgement.cases
                ],
            }
            for judgement in found.judgements
        ],
    }
