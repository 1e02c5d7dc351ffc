"""`tcplab check` on a study file: every cell is checked as a scenario is, and the cells are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.cli.failure import Code, code_of

if TYPE_CHECKING:
    from tcplab.engine.base import Problem
    from tcplab.study.load import Study


def is_study(path: Path) -> bool:
    """Whether a file has keys of a study at its top; no for one that cannot be read, and for a pipe."""
    from tcplab.scenario import ScenarioErrors, read

    if path.is_fifo():
        return False
    try:
        document = read(path)
    except ScenarioErrors:
        return False
    # `study` may be misspelt.
    return document.holds(["study"]) or (document.holds(["scenario"]) and not document.holds(["network"]))


def check_study(
    path: Path, engine: str, settings: Sequence[str], found: dict[str, Any]
) -> tuple[Code, list[Problem]]:
    """Check a study's cells on the engines it names, or on `engine` unless that is sim.

    Fills `found` as for a scenario, but for the problems, which it returns. Raises ScenarioErrors.
    """
    from tcplab.study.load import Asked, load

    study = load(path, Asked(() if engine == "sim" else (engine,), tuple(settings)))
    problems, warnings = _problems(study)
    fatal = [problem for problem in problems if problem.fatal]
    found["ok"] = not fatal
    found["warnings"] = warnings
    found["cells"] = [
        {"id": cell.id, "engine": cell.engine, "labels": cell.labels, "plan": study.plan_of(cell)}
        for cell in study.cells
    ]
    found["summary"] = list(_summary(study))
    return code_of(problems), problems


def _problems(study: Study) -> tuple[list[Problem], list[str]]:
    """Problems and warnings of the engines, each once, with the number of cells it concerns."""
    from dataclasses import replace

    from tcplab import engine as engines
    from tcplab.scenario import warnings

    problems: dict[Problem, int] = {}
    said: dict[str, int] = {}
    for cell in study.cells:
        plan = study.plan_of(cell)
        for problem in dict.fromkeys(engines.load(cell.engine).check(plan)):
            problems[problem] = problems.get(problem, 0) + 1
        for text in dict.fromkeys(warnings(plan)):
            said[text] = said.get(text, 0) + 1
    of = len(study.cells)

    def cells(count: int) -> str:
        return "" if count == of else f" (in {count} of {of} cells)"

    return (
        [replace(p, message=p.message + cells(count)) for p, count in problems.items()],
        [text + cells(count) for text, count in said.items()],
    )


def _summary(study: Study) -> Iterator[str]:
    from tcplab.quantities import plural
    from tcplab.study.load import engines_of

    runs = plural(len(study.cells) * study.repeat, "run")
    cells = plural(len(study.cells), "cell")
    seeds = f"seeds {study.file.seed} to {study.file.seed + study.repeat - 1}"
    yield f"{study.name}: a study of {cells}, {runs} on {' and '.join(engines_of(study.file))}, {seeds}"
    for axis in study.axes:
        yield f"  {axis.name}: {', '.join(value.label for value in axis.values)}"
    if study.expectations:
        yield f"  {plural(len(study.expectations), 'expectation')}"
