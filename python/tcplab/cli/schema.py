"""`tcplab schema`: the JSON Schema of scenario and study files, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.failure import guarded

EXAMPLE = "tcplab schema --output scenario.schema.json"


@guarded
def schema(
    study: Annotated[bool, typer.Option("--study", help="The schema of studies instead.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
) -> None:
    """Print the JSON Schema of scenarios or studies, for editors."""
    from tcplab.cli.output import say, say_plain_json
    from tcplab.cli.writing import write
    from tcplab.scenario import json_schema, study_schema

    found = study_schema() if study else json_schema()
    if output in (None, Path("-")):
        say_plain_json(found)
        return
    import json

    write(output, json.dumps(found, indent=2) + "\n")
    say(str(output))
