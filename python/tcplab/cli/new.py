"""`tcplab new`: a scenario to begin with."""

from __future__ import annotations

import re
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab new mine"

_SCHEMA = "tcplab.schema.json"
_TEXT = """\
# yaml-language-server: $schema={schema}
tcplab: 1
name: {name}
description: One flow over a bottleneck.
network:
  path:
    rate: 100 Mbit/s
    rtt: 40 ms # base RTT, half in each direction
    queue: {{kind: droptail, limit: 1 BDP}}
flows:
  - {{name: bulk, kind: tcp, cc: cubic, duration: 30 s}}
repeat: 3
"""


_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,47}"


@guarded
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The scenario's name.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file. [default: NAME.yaml]")
    ] = None,
    json: Json = False,
) -> None:
    """Write a scenario to begin with, and its JSON Schema for editors.

    An editor with the YAML language server then completes and checks the file as it is typed.
    """
    import json as encoder

    from tcplab.cli.output import say, say_files
    from tcplab.cli.writing import write
    from tcplab.scenario import json_schema

    if not re.fullmatch(_NAME, name):
        stem = re.fullmatch(rf"({_NAME})\.yaml", name)
        raise CommandError(
            f"`{name}` is not a name: letters, digits, `-` and `_`, a letter first, at most 48",
            Code.INPUT,
            f"tcplab new {stem[1]} writes {name}" if stem else "--output names the file" if name else "",
        )
    file = output or Path(f"{name}.yaml")
    if file.exists():
        raise CommandError(f"{file}: already exists", Code.INPUT, "name another file with --output")
    write(file, _TEXT.format(schema=_SCHEMA, name=name))
    schema = file.parent / _SCHEMA
    write(schema, encoder.dumps(json_schema(), indent=2) + "\n")
    if json:
        say_files([file, schema], json=True)
    else:
        say(f"{file}: edit it, then run: tcplab run {quote(str(file))}")
