"""`tcplab list`: the results below a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import guarded
from tcplab.cli.options import Json, readable

EXAMPLE = "tcplab list runs"


@guarded
def list_runs(
    root: Annotated[Path, typer.Argument(metavar="[ROOT]", help="Directory to search.")] = Path("runs"),
    json: Json = False,
) -> None:
    """List the results below a directory, newest first.

    A study is one line; `runs` counts those of all its cells.
    """
    from tcplab.cli.output import say, say_json, table, warn
    from tcplab.results import list_results
    from tcplab.results.manifest import local_time

    if root == Path("runs") and not root.exists():
        if json:
            say_json({"results": []})
        else:
            say("no results here yet: tcplab run SCENARIO makes them in runs/")
        return
    readable(root)
    found = list_results(root, lambda error: warn(f"tcplab: warning: {error}"))
    for listed in found:
        if listed.message:
            warn(f"tcplab: warning: {listed.message}")
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
                local_time(listed.started),
                listed.warnings or "",
            )
            for listed in found
        ]
        columns = ("path", "kind", "name", "engine", "runs", "status", "started", "warnings")
        table(columns, rows, right=("runs", "warnings"))
