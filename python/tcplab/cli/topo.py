"""`tcplab topo`: networks that stay up, with a shell in every node."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, code_of, guarded
from tcplab.cli.options import Json, Settings
from tcplab.plan.types import Change, Direction
from tcplab.process import given_environment

if TYPE_CHECKING:
    from tcplab.testbed.held import Held

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Networks that stay up: build, list, open a shell in a node, change, remove.",
)

# A line that begins with a backspace keeps its paragraph from being wrapped.
_EXAMPLE = "\b\nExample:\n  "
Lab = Annotated[
    str | None,
    typer.Option("--lab", "-l", metavar="NAME", help="The lab. [default: the only one that is up]"),
]


@app.command(epilog=_EXAMPLE + "tcplab topo up scenarios/parking-lot.yaml --name lot")
@guarded
def up(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file.", show_default=False)
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The lab's name. [default: the scenario's]")
    ] = None,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Build the network of a scenario. It stays up until `tcplab topo down`.

    No traffic is started: run any program in a node with `tcplab topo exec` or `tcplab topo shell`.
    Every link is emulated, so that `tcplab topo set` can change it.
    """
    from tcplab.cli import options
    from tcplab.cli.check import problem_text
    from tcplab.cli.output import say, say_json, warn
    from tcplab.engine import load as engine_called
    from tcplab.quantities import plural
    from tcplab.results.certificate import described
    from tcplab.runner import problems_of
    from tcplab.scenario import expand
    from tcplab.testbed import held
    from tcplab.testbed.layout import has_routing

    read, _ = options.scenario(scenario, settings)
    plan = expand(read)
    for problem in problems_of(read, engine_called("kernel"), plan):
        if problem.fatal and not problem.where.startswith("flows"):
            said = problem_text(problem, scenario)
            raise CommandError(f"the network cannot be built:\n{said}", code_of([problem]))
        if not problem.fatal:
            warn(problem_text(problem, scenario))
    began = time.monotonic()
    with _naming():
        lab = held.up(plan, plan["name"] if name is None else name, str(scenario))
    took = time.monotonic() - began
    if json:
        say_json(_as_json(lab) | {"seconds": took})
        return
    size = f"{plural(len(lab.about['nodes']), 'node')}, {plural(len(lab.about['links']), 'link')}"
    say(f"lab {lab.name} is up after {took:.2f} s: {size}")
    if certificate := lab.about["verification"]:
        say(f"  {described(certificate)}")
    first = next(iter(lab.about["nodes"]))
    if has_routing(plan):
        say(f"  tcplab topo wait --lab {lab.name}    until its routers have converged")
    # The only one that is up needs no name.
    which = f" --lab {lab.name}" if len(held.names()) > 1 else ""
    say(f"  tcplab topo shell {first}{which}")
    say(f"  tcplab topo down {lab.name}")


@app.command(epilog=_EXAMPLE + "tcplab topo down lot")
@guarded
def down(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Labs. [default: the only one that is up]")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All labs of this user.")] = False,
    json: Json = False,
) -> None:
    """End labs and every process in them."""
    from tcplab.cli.output import say_json
    from tcplab.testbed import held

    if every and names:
        raise CommandError("name labs, or use --all, not both", Code.INPUT)
    with _naming():
        labs = held.names() if every else [held.find(name).name for name in (names or (None,))]
        for one in labs:
            held.down(one)
    if json:
        say_json({"labs": labs})


@app.command("list", epilog=_EXAMPLE + "tcplab topo list")
@guarded
def list_labs(json: Json = False) -> None:
    """List the labs that are up, with their nodes and addresses."""
    from tcplab.cli.output import say, say_json, table, warn
    from tcplab.testbed import held

    with _naming():
        labs = held.every()
    if json:
        say_json({"labs": [_as_json(lab) for lab in labs]})
    elif not labs:
        say("No lab is up: tcplab topo up SCENARIO")
    else:
        rows = [
            (lab.name, node, facts["kind"], ", ".join(facts["addresses"]))
            for lab in labs
            for node, facts in lab.about["nodes"].items()
        ]
        table(("lab", "node", "kind", "addresses"), rows)
    for lab in labs:
        for program in lab.ended:
            warn(f"tcplab: warning: {lab.name}: FRR has ended in {program}")


@app.command(
    "exec",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog=_EXAMPLE + "tcplab topo exec left -- ping -c 3 10.0.0.2",
)
@guarded
def execute(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node of the lab.", show_default=False)],
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="The program and its arguments.", show_default=False),
    ],
    lab: Lab = None,
) -> None:
    """Run a program in a node.

    The program uses this terminal and gets Ctrl-C. The exit code is that of the program: 126 if it cannot
    run, 127 if it is not found, 128 plus the signal's number if a signal ended it. The program ends with the
    lab.
    """
    if command[0] != "--" and command[0].startswith("-"):
        hint = f"options stand before NODE: tcplab topo exec {command[0]} ... {node} -- COMMAND"
        raise CommandError(f"{command[0]!r} is not a program", Code.INPUT, hint)
    words = command[command[:1] == ["--"] :]
    if not words or not words[0]:
        raise CommandError("missing argument 'COMMAND...'", Code.INPUT, "tcplab topo exec NODE -- bash")
    with _naming():
        found = _find(lab)
        _become(found.command(node, words), found, node)


@app.command(epilog=_EXAMPLE + "tcplab topo shell r1 --vtysh")
@guarded
def shell(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node of the lab.", show_default=False)],
    lab: Lab = None,
    vtysh: Annotated[bool, typer.Option("--vtysh", help="The console of the router's FRR.")] = False,
) -> None:
    """Open a shell in a node: bash, or the console of FRR."""
    with _naming():
        found = _find(lab)
        if vtysh and node not in found.about["routers"]:
            routers = ", ".join(found.about["routers"])
            hint = f"its routers with FRR: {routers}" if routers else "give a router `routing`"
            raise CommandError(f"{node} does not run FRR", Code.INPUT, hint)
        words = ["vtysh"] if vtysh else ["bash", "--norc", "-i"]
        _become(found.command(node, words), found, node)


@app.command(epilog=_EXAMPLE + "tcplab topo capture left-right -o trace.pcapng")
@guarded
def capture(
    link: Annotated[str, typer.Argument(metavar="LINK", help="A link of the lab.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A pcapng file; - is standard output.", show_default=False
        ),
    ],
    end: Annotated[
        str | None, typer.Option("--node", metavar="NODE", help="The end to capture at. [default: the first]")
    ] = None,
    lab: Lab = None,
) -> None:
    """Capture the packets of a link until Ctrl-C.

    Packets are captured at the node at one end of the link.

    Live view: tcplab topo capture LINK -o - | wireshark -k -i -
    """
    from tcplab.cli.writing import naming
    from tcplab.testbed.agent import agent_command

    with _naming():
        found = _find(lab)
        ends = dict(found.link(link)["ends"])
        node = end or next(iter(ends))
        if node not in ends:
            raise CommandError(
                f"link {link} does not end at {node}", Code.INPUT, f"its ends: {', '.join(ends)}"
            )
        command = found.command(node, agent_command("capture", ends[node]))
    if out == Path("-"):
        if sys.stdout.isatty():
            raise CommandError(
                "a capture is not written to a terminal", Code.INPUT, "name a file, or add: | tshark -r -"
            )
    else:
        with naming(out):
            file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, 1)
    _become(command, found, node)


@app.command("import", epilog=_EXAMPLE + "tcplab topo import published.mn -o published.yaml")
@guarded
def import_topology(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="MiniEdit's .mn or containerlab's .clab.yml.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The scenario. [default: standard output]"),
    ] = None,
    json: Json = False,
) -> None:
    """Write the topology of another tool as a scenario.

    Nodes, kinds and settings of links are kept. Addresses are tcplab's own, and the flow is a ping. Parts
    that a scenario cannot express are listed.
    """
    from tcplab.cli.output import say, say_json, warn
    from tcplab.cli.writing import write
    from tcplab.plan.yaml_text import dump_plan_yaml
    from tcplab.scenario.reading import unreadable
    from tcplab.topologies import UnreadableError, read

    out = None if out == Path("-") else out
    try:
        found = read(file)
        text = dump_plan_yaml(found.scenario())
    except UnreadableError as problem:
        raise CommandError(f"{file}: {problem}", Code.INPUT) from None
    except OSError as problem:
        raise CommandError(str(unreadable(file, problem)), Code.INPUT) from None
    for sentence in found.left_out:
        warn(f"{file}: left out: {sentence}")
    for sentence in found.notes:
        warn(f"{file}: {sentence}")
    if out is not None:
        if out.exists():
            raise CommandError(f"{out}: already exists", Code.INPUT, "name another file")
        write(out, text)
    if json:
        written = [] if out is None else [str(out)]
        notes = {"left_out": found.left_out, "notes": found.notes}
        say_json({"files": written, **notes, "scenario": None if out else text})
    elif out is None:
        say(text.rstrip())


@app.command(epilog=_EXAMPLE + "tcplab topo export parking-lot -o lot.py")
@guarded
def export(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A script for Mininet (.py) or containerlab's .clab.yml.",
            show_default=False,
        ),
    ],
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Write the network of a scenario for Mininet or containerlab.

    Addresses and routes are those that tcplab uses. Settings that the format cannot express are listed.
    """
    from tcplab.cli import options
    from tcplab.cli.output import say_json, warn
    from tcplab.cli.writing import write
    from tcplab.scenario import expand
    from tcplab.testbed import exported

    read, _ = options.scenario(scenario, settings)
    if out.suffix == ".py":
        writer = exported.mininet
    elif out.suffixes[-2:] in ([".clab", ".yml"], [".clab", ".yaml"]):
        writer = exported.containerlab
    else:
        raise CommandError(
            f"{out}: unknown format", Code.INPUT, "end the name in .py (Mininet) or .clab.yml (containerlab)"
        )
    if out.exists():
        raise CommandError(f"{out}: already exists", Code.INPUT, "name another file")
    made = writer(expand(read))
    for sentence in made.left_out:
        warn(f"{scenario}: left out: {sentence}")
    write(out, made.text)
    if json:
        say_json({"files": [str(out)], "left_out": made.left_out})


@app.command("set", epilog=_EXAMPLE + "tcplab topo set left-right rate=5Mbit/s loss=1%")
@guarded
def change(
    link: Annotated[str, typer.Argument(metavar="LINK", help="A link of the lab.", show_default=False)],
    settings: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE...", help="Its new settings.", show_default=False)
    ],
    direction: Annotated[
        str, typer.Option("--direction", metavar="<both|forward|reverse>", help="Direction to change.")
    ] = "both",
    lab: Lab = None,
    json: Json = False,
) -> None:
    """Change settings of a link at once, under traffic.

    Keys and values are those of a link's `at` in a scenario: rate, delay, loss, corrupt, duplicate, reorder,
    jitter, queue, up.
    """
    from tcplab.cli.old_spellings import deprecated
    from tcplab.cli.output import say_json, warn
    from tcplab.testbed import held
    from tcplab.testbed.link_change import directions, present

    keys = directions(direction)
    if not keys:
        raise CommandError(f"--direction is both, forward or reverse, not {direction!r}", Code.INPUT)
    if direction == "backward":
        warn(f"tcplab: warning: {deprecated('--direction backward', 'reverse')}")
    with _naming():
        found = _find(lab)
        facts, elapsed = found.link(link), found.elapsed()
        changes = {key: _change(present(facts[key], elapsed), settings) for key in keys}
        held.change(found, link, changes)
    if json:
        say_json({"link": link, "changes": changes})


@app.command(epilog=_EXAMPLE + "tcplab topo wait --timeout '30 s'")
@guarded
def wait(
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="Maximum time to wait.")] = "60 s",
    lab: Lab = None,
    json: Json = False,
) -> None:
    """Wait until every host reaches every other.

    Prints the time it took. Exit code 1 if some do not in time.
    """
    from tcplab.cli.output import say, say_json
    from tcplab.plan.kinds import node_kind
    from tcplab.testbed import held

    limit = _seconds(timeout)
    with _naming():
        found = _find(lab)
        hosts = {
            name: facts["addresses"][0].split("/")[0]
            for name, facts in found.about["nodes"].items()
            if node_kind(facts["kind"]).ends_flows and facts["addresses"]
        }
        pairs = [(one, other, at) for one in hosts for other, at in hosts.items() if one != other]
        silent, seconds = held.reach(found, pairs, limit)
    if json:
        unreached = [{"from": source, "to": to} for source, to, _ in silent]
        say_json({"reached": not silent, "seconds": seconds, "unreached": unreached})
    if silent:
        said = ", ".join(f"{source} to {to}" for source, to, _ in silent[:5])
        more = f" and {len(silent) - 5} more" if len(silent) > 5 else ""
        raise CommandError(f"no answer after {limit:g} s: {said}{more}", Code.NO)
    if not json:
        say(f"every host reaches every other after {seconds:.2f} s")


def _seconds(text: str) -> float:
    """A time as scenarios write it; a bare number, as before, is seconds."""
    from tcplab.cli.output import warn
    from tcplab.scenario import QuantityError
    from tcplab.scenario.quantity import value_of

    try:
        seconds = float(text)
    except ValueError:
        try:
            return float(value_of("time", text)) / 1e9
        except QuantityError as problem:
            raise CommandError(f"--timeout {text}: {problem}", Code.INPUT) from None
    if not seconds >= 0:
        raise CommandError(f"--timeout {text}: not a time", Code.INPUT, "such as '30 s'")
    warn(f"tcplab: warning: --timeout {text} has no unit: write '{text} s'")
    return seconds


def _change(now: Direction, settings: list[str]) -> Change:
    """The new settings of a direction, as in a plan."""
    from tcplab.safe_text import visible
    from tcplab.scenario import ScenarioErrors
    from tcplab.testbed.link_change import changed

    given: dict[str, str] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key or not value:
            raise CommandError(f"{visible(text)!r} is not KEY=VALUE", Code.INPUT, "rate=5Mbit/s")
        if key in given:
            raise CommandError(f"{visible(key)} is given twice", Code.INPUT)
        given[key] = value
    try:
        return changed(now, given)
    except ScenarioErrors as problem:
        said = "; ".join(f"{_setting(one.path)}{one.message}" for one in problem.errors)
        near = " and ".join(f"`{one.suggestion}`" for one in problem.errors if one.suggestion)
        hint = f"did you mean {near}?" if near else "docs/scenario.md lists the settings of a link"
        raise CommandError(said, Code.INPUT, hint) from None


def _setting(path: str) -> str:
    """The setting within a change, in front of its mistake: `loss.rate: `."""
    setting = path.partition(".at.1 s.")[2]
    return f"{setting}: " if setting else ""


def _find(lab: str | None) -> Held:
    from tcplab.testbed import held

    return held.find(lab or os.environ.get("TCPLAB_LAB"))


def _become(command: list[str], lab: Held, node: str) -> None:
    """Replace this process by the program, with its terminal, signals and exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    environment = {**given_environment(), "TCPLAB_LAB": lab.name, "TCPLAB_NODE": node}
    if "bash" in command:
        environment["PS1"] = f"{node}\\$ "
    # Without a shell, as the user asked.
    os.execvpe(command[0], command, environment)  # noqa: S606


def _as_json(lab: Held) -> dict[str, Any]:
    return {
        "name": lab.name,
        "process": lab.process,
        "pids": lab.pids,
        "ended": lab.ended,
        **lab.about,
    }


@contextmanager
def _naming() -> Iterator[None]:
    """Turn errors of a lab into errors of the command."""
    from tcplab.testbed.errors import InputFileError, TestbedError
    from tcplab.testbed.held import NoLabError

    try:
        yield
    except (NoLabError, InputFileError) as problem:
        raise CommandError(problem.message, Code.INPUT, problem.hint) from None
    except TestbedError as problem:
        raise CommandError(problem.message, Code.MACHINE, problem.hint) from None
