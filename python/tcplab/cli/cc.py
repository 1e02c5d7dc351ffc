"""`tcplab cc`: list congestion controls, check one, create one, register one system-wide."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json
from tcplab.cli.service import interrupt_on_signals

if TYPE_CHECKING:
    from tcplab.control_trial import Step
    from tcplab.testbed.control_places import Listed, Place
    from tcplab.testbed.controls import Ours

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Congestion controls: list, check, create, register for the whole system.",
)


# The table shows this much of a long title; -v shows all of it.
_WIDTH = 48
# Fields that the kernel does not publish about its own controls.
_UNKNOWN: dict[str, Any] = {"about": None, "published": [], "phases": [], "parameters": [], "gauges": []}


def _example(text: str) -> str:
    return f"\b\nExample:\n  {text}"


@app.command("list", epilog=_example("tcplab cc list -v"))
@guarded
def list_controls(
    json: Json = False,
) -> None:
    """List the controls, and where each can run on this machine.

    -v adds phases, parameters, gauges, and what is missing.
    """
    from tcplab.cli.output import say, say_json, table, verbose
    from tcplab.testbed.control_places import everywhere

    found = everywhere()
    if json:
        say_json({"controls": [_as_json(one) for one in found]})
        return
    rows = [
        (one.name, _published(one), _short(one.simulator), _short(one.kernel), _short(one.loaded))
        for one in found
    ]
    table(("control", "published", "simulator", "kernel's own", "as tl_NAME"), rows)
    reasons = {one.loaded.why: one.loaded.fix for one in found if one.description and not one.loaded.runs}
    for why, fix in reasons.items():
        say()
        say(f"Not loaded as tl_NAME: {why} ({fix})")
    if not verbose():
        return
    for one in found:
        for line in _details(one):
            say(line)


def _published(one: Listed) -> str:
    if one.description is None:
        return "the kernel's"
    text = ", ".join(one.description.published)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1].rsplit(" ", 1)[0] + " …"


def _short(place: Place) -> str:
    if place.runs:
        return f"yes, {place.why}" if place.why else "yes"
    return f"no: {place.fix}" if place.fix.startswith("sudo modprobe") else "no"


def _details(one: Listed) -> list[str]:
    description = one.description
    lines = ["", one.name]
    if description is not None:
        lines += [f"  {description.about}"]
        if description.phases:
            lines += [f"  phases: {', '.join(description.phases)}"]
        lines += [f"  {row.name} = {row.usual} ({row.range}): {row.doc}" for row in description.parameters]
        lines += [f"  shows {row.label}: {row.doc}" for row in description.gauges]
    for where, place in (("kernel's own", one.kernel), ("as tl_NAME", one.loaded)):
        if not place.runs:
            lines += [f"  not {where}: {place.why}" + (f" ({place.fix})" if place.fix else "")]
    return lines


def _as_json(one: Listed) -> dict[str, Any]:
    from dataclasses import asdict

    places = {"simulator": one.simulator, "kernel": one.kernel, "loaded": one.loaded}
    description = asdict(one.description) if one.description else {}
    return {**_UNKNOWN, **description, "name": one.name} | {
        key: asdict(place) for key, place in places.items()
    }


@app.command("check", epilog=_example("tcplab cc check mine.c"))
@guarded
def check_control(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The C file.", show_default=False)],
    json: Json = False,
) -> None:
    """Test a control: compile it, verify it, run it in both engines.

    The kernel's verifier checks it, and each run takes 5 s. Steps that the machine does not allow are skipped
    with the reason. Exit code 1 when a step fails, 2 when the file cannot be read, 3 when this machine
    cannot run any.
    """
    from tcplab.cc.errors import ControlFileError
    from tcplab.cli.output import say, say_json
    from tcplab.control_trial import Verdict, steps

    done: list[Step] = []
    try:
        for step in steps(file):
            done.append(step)
            if json:
                continue
            say(f"{step.verdict.value:8}{step.name}" + (f": {step.message}" if step.message else ""))
            for line in step.details:
                say(f"        {line}")
            sys.stdout.flush()
    except ControlFileError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    verdicts = {step.verdict for step in done}
    if json:
        report = [
            {"step": one.name, "verdict": one.verdict.value, "message": one.message, "details": one.details}
            for one in done
        ]
        say_json({"file": str(file), "ok": verdicts == {Verdict.OK}, "steps": report})
    if Verdict.FAILED in verdicts:
        raise typer.Exit(Code.NO)
    if Verdict.OK not in verdicts:
        raise typer.Exit(Code.MACHINE)


@app.command("new", epilog=_example("tcplab cc new mine"))
@guarded
def new_control(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The control's name.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file. [default: NAME.c]")
    ] = None,
    json: Json = False,
) -> None:
    """Write a commented control to begin with.

    The control is Reno. The file compiles, loads and runs unchanged.
    """
    from tcplab.cc.compiler import headers
    from tcplab.cc.template import BadNameError, starting_file
    from tcplab.cli.output import say, say_json
    from tcplab.cli.writing import write

    try:
        text = starting_file(name)
    except BadNameError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    file = output or Path(f"{name}.c")
    if file.exists():
        raise CommandError(f"{file}: already exists", Code.INPUT, "give another name, or --output FILE")
    write(file, text)
    if json:
        say_json({"files": [str(file)], "header": str(headers())})
        return
    say(f"{file}: the control {name}. To try it: tcplab cc check {quote(str(file))}")
    say(f"tcplab_cc.h, for your editor: {headers()}")


@app.command("load", epilog=_example("tcplab cc load bbr2 --set loss_threshold=0.05"))
@guarded
def load_control(
    control: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A control's name, or a C file.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="Set a parameter. Repeatable."),
    ] = None,
) -> None:
    """Register a control with the kernel until interrupted.

    Every program of this machine can use it. When this command ends, even by kill -9, the control is
    unregistered. Connections that use it keep it until they are closed.
    """
    from tcplab.cli.output import say
    from tcplab.testbed.control_loading import Held
    from tcplab.testbed.controls import loader
    from tcplab.testbed.errors import TestbedError

    wanted = _wanted(control, settings or [])
    hello = loader()
    obstacle = hello["obstacle"] or (hello["not_built"] if wanted.source is None else None)
    if obstacle is not None:
        raise CommandError(obstacle["message"], Code.MACHINE, obstacle["hint"])
    interrupt_on_signals()
    try:
        with Held(wanted) as held:
            name = held.registered
            say(f"{name} is registered for every program on this machine until you press Ctrl-C.")
            if held.other:
                say(f"(It is not called {held.other}, another process has registered that name.)")
            say()
            say(f"  for one test         iperf3 -c HOST -C {name}")
            say(f"  for new connections  sudo sysctl -w net.ipv4.tcp_congestion_control={name}")
            say(f'  in a program         setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "{name}", {len(name)})')
            say("  without CAP_NET_ADMIN a program may choose it once it is among")
            say("  net.ipv4.tcp_allowed_congestion_control")
            sys.stdout.flush()
            held.wait()
            raise CommandError(f"the process that held {name} has ended", Code.MACHINE)
    except KeyboardInterrupt:
        # How it ends when all is well.
        return
    except TestbedError as problem:
        raise CommandError(problem.message, Code.MACHINE, problem.hint) from None


def _wanted(control: str, settings: list[str]) -> Ours:
    """The control with its parameters; what is wrong with either is bad input."""
    from tcplab.cc.compiler import Source
    from tcplab.cc.describe import describe, described_file, known_as, shipped
    from tcplab.cc.errors import ControlFileError, NoCompilerError
    from tcplab.testbed.controls import Ours

    source = None
    try:
        if control.endswith(".c"):
            source = Source.read(Path(control))
            described = described_file(source)
        else:
            if known_as(control) not in shipped():
                message = f"tcplab has no control called `{control}`: give a C file, or one of"
                raise CommandError(f"{message} {', '.join(shipped())}", Code.INPUT)
            described = describe(control)
    except ControlFileError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    except NoCompilerError as problem:
        raise CommandError(str(problem), Code.MACHINE) from None
    known = {parameter.name: parameter for parameter in described.parameters}
    params = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            has = ", ".join(known) or "none"
            raise CommandError(f"{described.name} has no parameter `{name}`; it has {has}", Code.INPUT)
        try:
            params[name] = float(text)
        except ValueError:
            raise CommandError(f"--set {setting}: `{text}` is not a number", Code.INPUT) from None
        if not known[name].holds(params[name]):
            message = f"--set {setting}: {params[name]:g} is outside {known[name].range}"
            raise CommandError(message, Code.INPUT)
    called = source.file.name if source else known_as(control)
    return Ours(called, tuple(sorted(params.items())), source)
