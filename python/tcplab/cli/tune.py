"""`tcplab tune`: the best configuration of a scenario for a goal."""

from __future__ import annotations

import math
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli import completion
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json, Level, Settings, level_of

if TYPE_CHECKING:
    from tcplab.tune.tune import Goal, Outlook, Tuned, Tuning

EXAMPLE = """tcplab tune one-cubic --over cc,window --dry-run
  tcplab tune satellite --over buffers,streams --subject-to "rtt.p95 < 800 ms\""""


@guarded
def tune(
    scenario: Annotated[
        Path,
        typer.Argument(metavar="SCENARIO", help="The scenario to tune.", autocompletion=completion.scenarios),
    ],
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="PARAMETERS",
            help="Parameters to vary: window,cc or cc='cubic|bbr1'. Repeatable.",
        ),
    ],
    goal: Annotated[
        str,
        typer.Option(metavar="METRIC", help="Metric to maximize, such as goodput; or `minimize rtt.p95`."),
    ] = "goodput",
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to", metavar="STATEMENT", help="Constraint, such as `rtt.p95 < 80 ms`. Repeatable."
        ),
    ] = None,
    settings: Settings = None,
    trials: Annotated[
        int | None,
        typer.Option(min=4, metavar="N", help="Sample N candidates (Optuna's TPE) and race the best."),
    ] = None,
    confirm: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="Also run the best on this engine: kernel.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Directory of the runs. [default: runs/tune-…]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="DIR", help="Resume a search: run only the missing runs."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Simulations at a time. [default: all cores]"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the candidates and estimate the time.")
    ] = False,
    level: Level = None,
    json: Json = False,
) -> None:
    """Find the best configuration of a scenario for a goal.

    Candidates race in the simulator. Those that fail a constraint or are significantly worse are dropped;
    the others get more repetitions.
    """
    from tcplab import runner
    from tcplab.cli.output import quiet
    from tcplab.cli.study_progress import Lines
    from tcplab.tune.race import UNMEASURED

    if confirm is not None:
        from tcplab.cli.options import engine_called

        engine_called(confirm)
        if confirm == "sim":
            raise CommandError(
                "--confirm sim: candidates race in the simulator; name another engine", Code.INPUT
            )
    if resume is not None and (output is not None or dry_run):
        other = "--output" if output is not None else "--dry-run"
        raise CommandError(f"--resume and {other} exclude each other", Code.INPUT)
    asked, confidence = _goal(goal, subject_to or []), level_of(level)
    if dry_run:
        # A dry run writes no files.
        with tempfile.TemporaryDirectory() as nowhere:
            announced = _tuning(scenario, over, asked, Path(nowhere) / "tune", settings, confidence)
            _print_outlook(announced, announced.outlook(jobs=jobs, trials=trials), json)
        return
    place = resume or runner.place(f"tune-{scenario.stem}", output, several=False)
    chosen = resume is not None or output is not None
    tuning = _tuning(
        scenario, over, asked, place, settings, confidence, chosen=chosen, resume=resume is not None
    )
    if not quiet():
        sys.stderr.write(_announced(tuning.outlook(jobs=jobs, trials=trials)) + "\n")
    tuned = tuning.run(watcher=Lines(), jobs=jobs, trials=trials, confirm=confirm)
    if json:
        _print_json(tuned)
    else:
        _print(tuned)
    if tuned.interrupted:
        where = shlex.quote(str(tuned.path))
        said = f"interrupted; the results so far are in {where}, and --resume {where} goes on"
        raise CommandError(said, Code.INTERRUPTED)
    if tuned.best is None and not any(len(one.measured.goal) for one in tuned.placed):
        why = tuned.placed[0].why
        if why == UNMEASURED:
            raise CommandError(f"--goal {goal}: no flow of {scenario} has this metric", Code.INPUT)
        raise CommandError(f"every run failed; the first: {why}", Code.FAILED)
    if tuned.best is None:
        raise CommandError("no candidate meets the constraints", Code.NO)


def _tuning(
    scenario: Path,
    over: list[str],
    goal: Goal,
    place: Path,
    settings: list[str] | None,
    level: float,
    *,
    chosen: bool = True,
    resume: bool = False,
) -> Tuning:
    from tcplab.cli.writing import naming
    from tcplab.shipped import located
    from tcplab.tune.knobs import KnobError, listed
    from tcplab.tune.tune import GoalError, Tuning

    knobs = [knob for text in over for knob in listed(text)]
    if not knobs:
        raise CommandError("--over: a parameter is missing, such as cc or window='64 KiB|1 MiB'", Code.INPUT)
    try:
        with naming(place, chosen=chosen):
            return Tuning(
                located(scenario),
                knobs,
                goal,
                place,
                sets=settings or (),
                level=level,
                chosen=chosen,
                resume=resume,
            )
    except (KnobError, GoalError) as problem:
        raise CommandError(str(problem), Code.INPUT) from None


def _announced(outlook: Outlook) -> str:
    from tcplab.quantities import plural, seconds

    took = f"about {seconds(float(f'{outlook.seconds:.2g}'))} on this machine"
    if outlook.sampled:
        return f"{outlook.space:,} candidates, {outlook.sampled} of them sampled: {outlook.runs} runs, {took}"
    return f"{plural(outlook.space, 'candidate')}; first round: {outlook.runs} runs, {took}"


def _print_outlook(tuning: Tuning, outlook: Outlook, json: bool) -> None:
    from tcplab.cli.output import say, say_json, table

    if json:
        say_json(
            {
                "candidates": [dict(labels) for labels in outlook.candidates],
                "space": outlook.space,
                "sampled": outlook.sampled,
                "runs": outlook.runs,
                "seconds": outlook.seconds,
            }
        )
        return
    knobs = [knob.name for knob in tuning.knobs]
    if outlook.candidates:
        table(knobs, [[labels[knob] for knob in knobs] for labels in outlook.candidates])
        say()
    say(_announced(outlook))


def _goal(text: str, constraints: list[str]) -> Goal:
    from tcplab.study.expect import ExpectationError, parse, parse_goal
    from tcplab.tune.tune import Goal

    where = f"--goal {text}"
    try:
        expression, sign = parse_goal(text)
        statements = []
        for constraint in constraints:
            where = f"--subject-to {constraint}"
            statements.append(parse(constraint))
    except ExpectationError as problem:
        meant = f"; did you mean `{problem.suggestion}`?" if problem.suggestion else ""
        raise CommandError(f"{where}: {problem}{meant}", Code.INPUT) from None
    return Goal(text, expression, sign, tuple(statements))


def _print(tuned: Tuned) -> None:
    from tcplab.cli.output import say, table
    from tcplab.tune.advice import advice
    from tcplab.tune.findings import confirmation, goal_text, justification

    knobs = [knob.name for knob in tuned.knobs]
    rows = []
    for one in tuned.placed[:20]:
        labels = tuned.labels[one.label]
        stayed = "" if one.left_in is None else f"round {one.left_in}: {one.why}"
        figures = [goal_text(tuned.goal, one, tuned.level), len(one.measured.goal), stayed]
        rows.append([*(labels.get(knob, "-") for knob in knobs), *figures])
    table([*knobs, tuned.goal.text, "n", "dropped in"], rows, right=[tuned.goal.text, "n"])
    if len(tuned.placed) > 20:
        say(f"and {len(tuned.placed) - 20} more, in {tuned.path}")
    say()
    for sentence in justification(tuned):
        say(sentence)
    for sentence in confirmation(tuned):
        say(sentence)
    if tuned.best is not None:
        for line in advice(tuned.labels[tuned.best.label]):
            say(f"  {line}")
    say(f"results  {tuned.path}")


def _print_json(tuned: Tuned) -> None:
    from tcplab.cli.output import say_json
    from tcplab.tune.advice import advice

    best, confirmed = tuned.best, tuned.confirmed
    say_json(
        {
            "path": str(tuned.path),
            "goal": tuned.goal.text,
            "level": tuned.level,
            "space": tuned.space,
            "sampled": tuned.sampled,
            "best": None if best is None else dict(tuned.labels[best.label]),
            "advice": [] if best is None else advice(tuned.labels[best.label]),
            "confirmed": None
            if confirmed is None
            else {
                "engine": confirmed.engine,
                "best": confirmed.best.tolist(),
                "unchanged": confirmed.unchanged.tolist(),
                "overloaded": confirmed.overloaded,
                "message": confirmed.message,
            },
            "candidates": [
                {
                    "labels": dict(tuned.labels[one.label]),
                    "goal": [tuned.goal.sign * value for value in one.measured.goal.tolist()],
                    "mean": tuned.goal.sign * float(one.measured.goal.mean())
                    if len(one.measured.goal)
                    else math.nan,
                    "left_in": one.left_in,
                    "why": one.why,
                    "feasible": one.measured.feasible,
                }
                for one in tuned.placed
            ],
        }
    )
