"""`tcplab check`: is a scenario right, can the engine run it, and what would run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tcplab.cli.failure import Code, CommandError, code_of, guarded, mistakes_text
from tcplab.cli.options import At, EngineName, Json, Scenarios, Settings, Yes, engine_called
from tcplab.cli.options import scenario as read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcplab.engine.base import Problem
    from tcplab.plan.types import Plan
    from tcplab.runner import UnsupportedError

EXAMPLE = "tcplab check four-controls"


@guarded
def check(
    scenario: Scenarios,
    engine: EngineName = "sim",
    at: At = None,
    settings: Settings = None,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Validate scenarios or studies and show what would run."""
    from tcplab.cli.check_study import is_study
    from tcplab.cli.output import say, say_json, warn
    from tcplab.estimate import beyond, estimate, many_rows
    from tcplab.runner import RUNS, problems_of, usable_cores
    from tcplab.scenario import ScenarioErrors, expand, warnings
    from tcplab.shipped import located

    chosen = engine_called(engine, at)
    reports: list[dict[str, Any]] = []
    worst = Code.DONE
    for path in map(located, scenario):
        found: dict[str, Any] = {"file": str(path), "ok": False, "errors": [], "problems": [], "warnings": []}
        reports.append(found)
        try:
            if is_study(path):
                worst = _worse(worst, _study(path, chosen.name, settings or [], found, json))
                continue
            loaded, _ = read(path, settings)
            plan = expand(loaded)
        except ScenarioErrors as mistakes:
            worst = Code.INPUT
            found["errors"] = [_error(mistake) for mistake in mistakes.errors]
            if not json:
                warn(mistakes_text(mistakes))
            continue
        taken = estimate(plan)
        at_once = 1 if chosen.exclusive else min(plan["repeat"], usable_cores())
        problems = [
            *problems_of(loaded, chosen, plan),
            *beyond([(taken, plan["repeat"])], at_once, RUNS, yes=yes),
        ]
        found["warnings"] = [*warnings(plan), *many_rows(taken)]
        found["estimate"] = {
            "packets": taken.packets,
            "rows": dict(taken.rows),
            "disk": taken.disk,
            "memory": taken.memory,
        }
        found["problems"] = list(map(problem_json, problems))
        fatal = [problem for problem in problems if problem.fatal]
        found["ok"] = not fatal
        worst = _worse(worst, code_of(problems))
        if json:
            found["plan"] = plan
            continue
        for problem in problems:
            warn(problem_text(problem, path))
        for warning in found["warnings"]:
            warn(f"{path}: warning: {warning}")
        if not fatal:
            for line in summary_lines(plan, plan["repeat"], chosen.name):
                say(line)
            say(f"  estimate: {taken}{' a run' if plan['repeat'] > 1 else ''}")
    if json:
        say_json({"files": reports})
    if worst is not Code.DONE:
        raise typer.Exit(worst)


def _worse(one: Code, other: Code) -> Code:
    """Wrong input goes before what the machine cannot do."""
    return Code.INPUT if Code.INPUT in (one, other) else max(one, other)


def _study(path: Path, engine: str, settings: list[str], found: dict[str, Any], json: bool) -> Code:
    """Check a study and print what was found; see `check_study`."""
    from tcplab.cli.check_study import check_study
    from tcplab.cli.output import say, warn

    code, problems = check_study(path, engine, settings, found)
    found["problems"] = list(map(problem_json, problems))
    if json:
        return code
    for problem in problems:
        warn(problem_text(problem, path))
    for warning in found["warnings"]:
        warn(f"{path}: warning: {warning}")
    for line in found["summary"] if found["ok"] else ():
        say(line)
    return code


def problem_text(problem: Problem, source: object) -> str:
    """A problem of an engine with a scenario: at its place in the file where it has one, then its hint."""
    from dataclasses import replace

    hint = f"\nhint: {problem.fix}" if problem.fix else ""
    kind = "error" if problem.fatal else "warning"
    if problem.at and problem.at.line:
        return str(replace(problem.at, path=f"{kind}: {problem.where}", message=problem.message)) + hint
    return f"{source}: {kind}: {problem.where}: {problem.message}{hint}"


def refusal(refused: Sequence[UnsupportedError]) -> CommandError:
    """The error that says why an engine cannot run these."""
    lines = [problem_text(each, one.scenario) for one in refused for each in one.problems]
    code = code_of(each for one in refused for each in one.problems)
    return CommandError(f"the engine {refused[0].engine} cannot run this:\n" + "\n".join(lines), code)


def problem_json(problem: Problem) -> dict[str, Any]:
    """A problem as scripts read it; line and column are 0 where the scenario's text does not hold it."""
    line, column = (problem.at.line, problem.at.column) if problem.at else (0, 0)
    file = problem.at.file if problem.at else ""
    return {
        "where": problem.where,
        "message": problem.message,
        "fix": problem.fix,
        "fatal": problem.fatal,
        "file": file,
        "line": line,
        "column": column,
    }


def summary_lines(plan: Plan, repeat: int, engine: str) -> list[str]:
    """Describe in words what would run."""
    from tcplab.plan.describe import describe_plan
    from tcplab.quantities import plural, seconds

    seeds = f"seed {plan['seed']}" if repeat == 1 else f"seeds {plan['seed']} to {plan['seed'] + repeat - 1}"
    times = plural(repeat, "run")
    head = f"{plan['name']}: {times} of {seconds(plan['duration'] / 1e9)} on {engine}, {seeds}"
    return [head, *(f"  {line}" for line in describe_plan(plan))]


def _error(mistake: Any) -> dict[str, Any]:
    fields = ("file", "line", "column", "path", "value", "message", "suggestion")
    return {name: getattr(mistake, name) for name in fields}
