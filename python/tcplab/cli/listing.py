"""`tcplab list`: the results below a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab list runs"


@guarded
def list_runs(
    root: Annotated[Path, typer.Argument(metavar="[ROOT]", help="Directory to search.")] = Path("runs"),
    json: Json = False,
) -> None:
    """List the results below a directory, newest first.

    A study is one line; `runs` counts those of all its cells.
    """
    from tcplab.cli.output import say, say_json, table
    from tcplab.results import ResultsError, list_results

    if not root.is_dir():
        if root == Path("runs") and not root.exists():
            if json:
                say_json({"results": []})
            else:
                say("no results here yet: tcplab run SCENARIO makes them in runs/")
            return
        raise CommandError(f"{root}: no such directory", Code.INPUT)
    # A search passes over directories that it may not read.
    try:
        os.scandir(root).close()
    except OSError as error:
        raise CommandError(str(ResultsError.unreadable(root, error)), Code.INPUT) from None
    found = list_results(root)
    if json:
        say_json({"results": [{**vars(listed), "path": str(listed.path)} for listed in found]})
    elif not found:
        say(f"no results in {root}")
    else:
        rows = [
            (
                str(listed.path),
                listed.kind,
                listed.name,
                listed.engine,
                listed.repetitions,
                listed.status,
                listed.started[:19].replace("T", " "),
                listed.warnings or "",
            )
            for listed in found
        ]
        columns = ("path", "kind", "name", "engine", "runs", "status", "started", "warnings")
        table(columns, rows, right=("runs", "warnings"))
