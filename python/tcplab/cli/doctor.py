"""`tcplab doctor`: what this machine can and cannot do, and how to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

if TYPE_CHECKING:
    from tcplab.testbed.doctor import Finding

EXAMPLE = "tcplab doctor"


@guarded
def doctor(
    host: Annotated[
        str | None,
        typer.Argument(metavar="[HOST]", help="Another machine: ssh://USER@HOST or tcplab://HOST:PORT."),
    ] = None,
    json: Json = False,
) -> None:
    """Check whether this machine can run the kernel engine, or another machine can run the remote engine.

    Lists missing features with their effect and the command that fixes them. The simulator needs none of
    them.

    Exit code 3 if the kernel engine does not work here, 4 if the other machine cannot be reached.
    """
    from tcplab.cli.output import say, say_json, table
    from tcplab.testbed.doctor import Grade, examine

    found = examine() if host is None else _examine_there(host)
    missing = [one for one in found if one.grade is Grade.MISSING]
    if json:
        say_json(
            {
                "ok": not missing,
                "findings": [
                    {"name": one.name, "grade": one.grade.value, "message": one.message, "fix": one.hint}
                    for one in found
                ],
            }
        )
    else:
        table(("", "what", "found"), [(one.grade.value, one.name, one.message) for one in found])
        fixes = [one for one in found if one.hint]
        if fixes:
            say()
            say("How to fix it:")
            for one in fixes:
                say(f"  {one.name}: {one.hint}")
        if host:
            return
        say()
        say(_verdict(len(missing), sum(one.grade is Grade.WARN for one in found)))
    if missing:
        raise typer.Exit(Code.MACHINE)


def _examine_there(host: str) -> list[Finding]:
    from tcplab.engine.remote.examine import examine
    from tcplab.engine.remote.place import PlaceError
    from tcplab.testbed.errors import TestbedError

    try:
        return examine(host)
    except PlaceError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    except TestbedError as problem:
        raise CommandError(str(problem).removeprefix("host: "), Code.FAILED) from None


def _verdict(missing: int, warnings: int) -> str:
    if missing:
        return "The kernel engine does not work here; the simulator does."
    return "The kernel engine works here." + (f" {warnings} of the findings limit it." if warnings else "")
