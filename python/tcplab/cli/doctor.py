"""`tcplab doctor`: what this machine can and cannot do, and how to fix it."""

from __future__ import annotations

import typer

from tcplab.cli.failure import Code, guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab doctor"


@guarded
def doctor(json: Json = False) -> None:
    """Check whether this machine can run the kernel engine.

    What is missing is told with its effect and the command that fixes it.

    Exit code 3 when the kernel engine does not work here. The simulator needs none of it.
    """
    from tcplab.cli.output import say, say_json, table
    from tcplab.testbed.machine import Grade, examine

    found = examine()
    missing = [one for one in found if one.grade is Grade.MISSING]
    if json:
        say_json(
            {
                "ok": not missing,
                "findings": [
                    {"name": one.name, "grade": one.grade.value, "said": one.said, "fix": one.mend}
                    for one in found
                ],
            }
        )
    else:
        table(("", "what", "found"), [(one.grade.value, one.name, one.said) for one in found])
        fixes = [one for one in found if one.mend]
        if fixes:
            say()
            say("How to fix it:")
            for one in fixes:
                say(f"  {one.name}: {one.mend}")
        say()
        say(_verdict(len(missing), sum(one.grade is Grade.WARN for one in found)))
    if missing:
        raise typer.Exit(Code.MACHINE)


def _verdict(missing: int, warnings: int) -> str:
    if missing:
        return "The kernel engine does not work here; the simulator does."
    return "The kernel engine works here." + (f" {warnings} of the findings limit it." if warnings else "")
