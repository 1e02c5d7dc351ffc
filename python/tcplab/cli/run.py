"""`tcplab run`: run scenarios, write their results and reports, print the summary."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import (
    At,
    EngineName,
    Json,
    Level,
    Scenarios,
    Settings,
    Yes,
    engine_called,
    fits,
    level_of,
    scenarios,
)
from tcplab.engine.base import ATTEMPTS

if TYPE_CHECKING:
    from tcplab.results import Run
    from tcplab.runner import Finished, Prepared

EXAMPLE = "tcplab run four-controls --set flows.bbr1.cc=bbr3 --repeat 3"


@guarded
def run(
    scenario: Scenarios,
    engine: EngineName = "sim",
    at: At = None,
    settings: Settings = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            "-n",
            min=1,
            metavar="N",
            help="Runs, each with the next seed. [default: the scenario's]",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            max=2**64 - 1,
            metavar="N",
            help="Seed of the first run. [default: the scenario's]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Result directory. [default: runs/NAME-DATE-TIME]"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Runs at a time. [default: all cores]"),
    ] = None,
    attempts: Annotated[
        int,
        typer.Option(
            "--attempts",
            min=1,
            metavar="N",
            help="Maximum executions of an overloaded kernel run; the best is kept.",
        ),
    ] = ATTEMPTS,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="After a kernel run, build its network again and leave it up."),
    ] = False,
    level: Level = None,
    with_accelerator: Annotated[
        str | None,
        typer.Option(
            metavar="[NODE]",
            help="Compare the scenario with itself accelerated, at this router or at each that flows pass.",
        ),
    ] = None,
    with_cache: Annotated[
        str | None,
        typer.Option(
            metavar="[NODE]",
            help="Compare the scenario with itself behind HTTP caches, at this router or at each.",
        ),
    ] = None,
    streams: Annotated[
        int | None,
        typer.Option(
            "--streams",
            min=2,
            max=100_000,
            metavar="N",
            help="Compare the scenario with each transfer divided over N connections or ranges.",
        ),
    ] = None,
    json: Json = False,
    report: Annotated[bool, typer.Option("--report/--no-report", help="Write the HTML report.")] = True,
    yes: Yes = False,
) -> None:
    """Run scenarios, print a summary and write a report."""
    from tcplab import runner
    from tcplab.cli.output import quiet, warn
    from tcplab.progress import watcher

    confidence = level_of(level)
    if with_accelerator is not None or with_cache is not None or streams is not None:
        from tcplab.cli.remedies import run_remedies
        from tcplab.study.remedies import Remedies

        remedies = Remedies(with_accelerator, streams, with_cache)
        run_remedies(
            scenario,
            remedies,
            engine=engine,
            settings=settings,
            repeat=repeat,
            seed=seed,
            output=output,
            jobs=jobs,
            level=confidence,
            json=json,
            report=report,
            yes=yes,
        )
        return
    chosen = engine_called(engine, at)
    if keep and (chosen.name != "kernel" or len(scenario) > 1):
        raise CommandError("--keep is for one scenario and --engine kernel", Code.INPUT)
    loaded = scenarios(scenario, settings)
    prepared = _prepare(scenario, loaded, chosen, repeat, seed)
    for one in prepared:
        for text in one.warnings:
            warn(f"{one.source}: warning: {text}")
    fits(runner.refusals(prepared, output or runner.RUNS, jobs=jobs, yes=yes))
    if keep:
        _admit(prepared[0])
    batch = _claim(prepared, output)
    try:
        with watcher(quiet=quiet() or (json and not sys.stderr.isatty())) as display:
            finished = runner.execute(
                batch,
                watcher=display,
                jobs=jobs,
                attempts=attempts,
                meanwhile=None if quiet() else _load_summary,
            )
    except KeyboardInterrupt:
        _quit()
    stopped = [ended for ended in finished if ended.status.value == "interrupted"]
    failed = [ended for ended in finished if ended.status.value == "failed"]
    if json:
        _print_json(finished, report, confidence)
    else:
        for ended in finished:
            if ended.status.value == "done":
                _print(ended, confidence, report=report, quiet=quiet())
    if keep and not stopped:
        _keep(prepared[0], quiet=json)
    if failed:
        outcomes = [out for one in failed for out in one.outcomes if out.status.value == "failed"]
        code = Code.INPUT if all(out.wrong_input for out in outcomes) else Code.FAILED
        raise CommandError("\n".join(f"{one.path}: {one.message}" for one in failed), code)
    if stopped:
        kept = ", ".join(str(one.path) for one in stopped)
        raise CommandError(f"interrupted; what was recorded is in {kept}", Code.INTERRUPTED)


def _load_summary() -> None:
    """Import what the summary needs: as long as many a simulation takes."""
    import_module("tcplab.present.summary_table")


def _admit(one: Prepared) -> None:
    """Fail before the test where its network could not stay up."""
    from tcplab.testbed import held

    try:
        held.admit(one.plan, one.plan["name"])
    except held.NoLabError as problem:
        name = one.plan["name"]
        hint = f"tcplab topo down {name}" if name in held.names() else problem.hint
        raise CommandError(f"--keep: {problem.message}", Code.INPUT, hint) from None


def _keep(one: Prepared, *, quiet: bool) -> None:
    """Leave the network up as a lab, as `tcplab topo up` does."""
    from tcplab.cli.output import say
    from tcplab.testbed import held
    from tcplab.testbed.errors import TestbedError
    from tcplab.testbed.layout import has_routing

    try:
        lab = held.up(one.plan, one.plan["name"], one.source)
    except TestbedError as problem:
        raise CommandError(problem.message, Code.MACHINE, problem.hint) from None
    if not quiet:
        say(f"lab {lab.name} is up: tcplab topo list, tcplab topo down {lab.name}")
        if has_routing(one.plan):
            say(f"  its routers have restarted: tcplab topo wait --lab {lab.name}")


def _prepare(
    paths: list[Path], loaded: list[Any], engine: Any, repeat: int | None, seed: int | None
) -> list[Prepared]:
    from tcplab import runner
    from tcplab.cli.check import refusal

    prepared = []
    refused = []
    for path, (scenario, text) in zip(paths, loaded, strict=True):
        try:
            prepared.append(
                runner.prepare(
                    scenario,
                    source=str(path),
                    text=text,
                    engine=engine,
                    repeat=repeat,
                    seed=seed,
                )
            )
        except runner.UnsupportedError as problem:
            refused.append(problem)
    if refused:
        raise refusal(refused)
    return prepared


def _claim(prepared: list[Prepared], out: Path | None) -> list[tuple[Prepared, Path]]:
    from tcplab import runner
    from tcplab.cli.writing import naming

    with naming(out or runner.RUNS, chosen=out is not None):
        return [(one, runner.claim(one, out, several=len(prepared) > 1)) for one in prepared]


def _print(one: Finished, level: float, *, report: bool, quiet: bool) -> None:
    from tcplab.cli.output import say, show, warn
    from tcplab.results import load

    results = load(one.path, plan=one.prepared.engine.executed(one.prepared.plan))
    for number, manifest in results.manifests.items():
        if manifest.overload:
            warn(f"{one.path}: run {number} overloaded: {manifest.overload}")
    for text in results.warnings:
        # The others were said before it ran.
        if text not in one.prepared.warnings:
            warn(f"{one.path}: warning: {text}")
    if not quiet:
        # The report takes a second or two: the figures come first.
        from tcplab.present.summary_table import summary

        say()
        show(summary(results, level=level))
        say(f"results  {one.path}")
    if report:
        written = _report(one, results, level)
        if not quiet:
            say(f"report   {written}")


def _print_json(finished: list[Finished], report: bool, level: float) -> None:
    from tcplab.analysis.summaries import summary
    from tcplab.cli.output import say_json
    from tcplab.results import load

    said = []
    for one in finished:
        entry: dict[str, Any] = {"name": one.prepared.name, "path": str(one.path), "status": one.status.value}
        if one.status.value == "done":
            results = load(one.path, plan=one.prepared.engine.executed(one.prepared.plan))
            entry["report"] = _report(one, results, level) if report else None
            entry["warnings"] = results.warnings
            entry["summary"] = summary(results, level=level).to_json()
        said.append(entry)
    say_json({"runs": said})


def _report(one: Finished, results: Run, level: float) -> str:
    from tcplab.api import write_report
    from tcplab.results.writer import REPORT_FILE

    path = one.path / REPORT_FILE
    write_report(results, path, level=level)
    return str(path)


def _quit() -> None:
    """Leave at once on a second Ctrl-C: the run directories have been marked interrupted from their start."""
    if sys.stderr.isatty():
        # The live display hides the cursor.
        sys.stderr.write("\x1b[?25h")
    sys.stderr.write("tcplab: interrupted\n")
    sys.stderr.flush()
    os._exit(Code.INTERRUPTED)
