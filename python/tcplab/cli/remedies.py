"""`tcplab run --with-accelerator`, `--with-cache`, `--streams`: a scenario with and without remedies."""

from __future__ import annotations

import json as text
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tcplab.cli.failure import Code, CommandError

if TYPE_CHECKING:
    from tcplab.study.remedies import Remedies

# Enough for a test of twice the goodput where losses are random.
_REPEAT = 5
_STUDY_FILE = "remedies.yaml"


def run_remedies(
    scenarios: list[Path],
    remedies: Remedies,
    *,
    engine: str,
    settings: list[str] | None,
    repeat: int | None,
    seed: int | None,
    output: Path | None,
    jobs: int | None,
    level: float,
    json: bool,
    report: bool,
    yes: bool,
) -> None:
    """Run a scenario as it is, with each remedy and with all of them, and say which one to take."""
    from tcplab import runner
    from tcplab.cli.options import scenario
    from tcplab.cli.study import answer, check_size, require_possible
    from tcplab.cli.study_progress import Lines
    from tcplab.cli.writing import naming
    from tcplab.results.writer import TAKEN, in_the_way
    from tcplab.scenario import expand
    from tcplab.shipped import located
    from tcplab.study import execute
    from tcplab.study.api import StudyResults
    from tcplab.study.load import Asked, load_text
    from tcplab.study.remedies import RemedyError, study_of
    from tcplab.study.store import Store

    if engine == "remote":
        raise CommandError("remedies are compared by the engines sim and kernel", Code.INPUT)
    if len(scenarios) > 1 or scenarios == [Path("-")]:
        raise CommandError("remedies are compared for one scenario, from a file", Code.INPUT)
    file = located(scenarios[0]).resolve()
    plan = expand(scenario(file, settings)[0])
    seeds = plan["seed"] if seed is None else seed
    try:
        study = study_of(str(file), plan, remedies, repeat or max(plan.get("repeat", 1), _REPEAT), seeds)
    except RemedyError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    store = Store(runner.place(str(study["study"]), output, several=False))
    if store.occupied:
        raise CommandError(f"{store.path}: {TAKEN}", Code.INPUT)
    if foreign := in_the_way(store.path, _STUDY_FILE):
        raise CommandError(f"{store.path}: {foreign}", Code.INPUT)
    # JSON is YAML.
    written = text.dumps(study, indent=2)
    found = load_text(written, store.path / _STUDY_FILE, Asked((engine,), tuple(settings or ())))
    todo = execute.work(found, store)
    require_possible(replace(found, source=str(scenarios[0])), todo)
    check_size(found, todo, store, jobs, yes)
    with naming(store.path, chosen=output is not None):
        store = Store(runner.reserve(store.path, chosen=output is not None))
        source = store.path / _STUDY_FILE
        source.write_text(written, encoding="utf-8")
        found = replace(found, source=str(source))
        store.create(found)
    outcome = execute.execute(found, store, watcher=Lines(), jobs=jobs)
    answer(StudyResults(found, store, outcome, level=level), json=json, report=report)
