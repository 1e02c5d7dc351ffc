"""A study in a process of its own: `python -m tcplab.server.study_worker DIR [FILE [--quick]]`.

It says in a line of JSON what there is to do, when a run is over, and when the report is written. Ctrl-C
(SIGINT) ends it. Without a file it resumes the study of the directory: only missing runs are made.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any


def say(**message: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Lines:
    """Says when a run is over."""

    def ended(self, cell: Any, made: Any, number: int, of: int) -> None:
        """A run is over: the `number`th of the `of` to be made."""
        say(cell=cell.id, number=number, of=of, status=str(getattr(made, "status", "done")))


def main(arguments: list[str]) -> int:
    """Run or resume the study; 0 when it is whole, 130 when it was interrupted."""
    from tcplab.results import ResultsError
    from tcplab.scenario import ScenarioErrors
    from tcplab.study import execute
    from tcplab.study.api import StudyResults, asked_for
    from tcplab.study.load import Asked, load
    from tcplab.study.report import write_study_report
    from tcplab.study.shipped import find
    from tcplab.study.store import Store

    directory, *rest = arguments
    store = Store(Path(directory))
    try:
        if rest:
            study = load(find(rest[0]), Asked(quick="--quick" in rest))
            store.create(study)
        else:
            study = asked_for(store)
            store.write_index(study, study.cells)
        say(
            cells=[{"id": cell.id, "labels": cell.labels, "engine": cell.engine} for cell in study.cells],
            of=len(execute.work(study, store).missing),
        )
        outcome = execute.execute(study, store, watcher=Lines())
    except (ResultsError, ScenarioErrors) as problem:
        say(error=_explained(problem))
        return 2
    if not outcome.interrupted:
        say(reporting=True)
        write_study_report(StudyResults(study, store, outcome))
    say(ended=outcome.status)
    return 130 if outcome.interrupted else 0


def _explained(problem: Exception) -> str:
    """A problem for the page: without the lines of the file, under which only fixed-width text can point."""
    from tcplab.scenario import ScenarioErrors

    if not isinstance(problem, ScenarioErrors):
        return str(problem)
    shown = [replace(error, file=Path(error.file).name, source="") for error in problem.errors]
    return "\n".join(str(error) for error in shown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
