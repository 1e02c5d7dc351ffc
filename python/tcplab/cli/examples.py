"""`tcplab examples`: the shipped scenarios, listed or copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from tcplab.cli.command import NOT_A_STREAM
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="List or copy the scenarios that come with tcplab.",
)

_LIST_EXAMPLE = "\b\nExample:\n  tcplab examples list"
_COPY_EXAMPLE = "\b\nExample:\n  tcplab examples copy four-controls mine.yaml"


@app.command("list", epilog=_LIST_EXAMPLE)
@guarded
def list_examples(json: Json = False) -> None:
    """List the shipped scenarios.

    `tcplab run NAME` and `tcplab check NAME` take these names in any directory.
    """
    from tcplab.cli.output import say_json, table
    from tcplab.scenario import load
    from tcplab.shipped import SCENARIOS, scenario_names

    found = [(name, load(SCENARIOS / f"{name}.yaml").description.strip()) for name in scenario_names()]
    if json:
        say_json({"scenarios": [{"name": name, "description": about} for name, about in found]})
        return
    table(["name", "description"], [(name, about.partition(". ")[0].rstrip(".")) for name, about in found])


@app.command("copy", epilog=_COPY_EXAMPLE)
@guarded
def copy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A shipped scenario.")],
    target: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The new file. [default: NAME.yaml]")
    ] = None,
    json: Json = False,
) -> None:
    """Copy a shipped scenario, with the traces it names, to edit it."""
    from tcplab.cli.output import say, say_json
    from tcplab.cli.writing import naming
    from tcplab.shipped import SCENARIOS, scenario_names

    if name not in scenario_names():
        raise CommandError(
            f"no scenario of this name: {name}",
            Code.INPUT,
            f"the scenarios are {', '.join(scenario_names())}",
        )
    if target == Path("-"):
        raise CommandError(f"FILE -: {NOT_A_STREAM}", Code.INPUT)
    source, to = SCENARIOS / f"{name}.yaml", target or Path(f"{name}.yaml")
    text = source.read_text(encoding="utf-8")
    folder = to.parent / "traces"
    traces = [path for path in (SCENARIOS / "traces").iterdir() if f"traces/{path.name}" in text]
    with naming(to):
        if to.exists():
            raise CommandError(f"{to}: already exists", Code.INPUT, "name another file")
        # Traces that an earlier copy has brought stay.
        there = [folder / trace.name for trace in traces if (folder / trace.name).exists()]
        for path in there:
            if path.read_bytes() != (SCENARIOS / "traces" / path.name).read_bytes():
                raise CommandError(f"{path}: already exists", Code.INPUT, "copy to another directory")
        shutil.copyfile(source, to)
        for trace in traces:
            folder.mkdir(exist_ok=True)
            if folder / trace.name not in there:
                shutil.copyfile(trace, folder / trace.name)
    if json:
        say_json({"files": [str(to)]})
    else:
        say(str(to))
