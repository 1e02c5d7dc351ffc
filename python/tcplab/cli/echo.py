"""`tcplab echo`: how long messages take to come back, between two machines or on one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tcplab.cli.between import run_between
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json, Level, level_of
from tcplab.cli.service import addresses_of, interrupt_on_signals, listen, value_of_option

if TYPE_CHECKING:
    from tcplab.analysis.echo import Echoes, Step
    from tcplab.echo.standalone import Asked, Test

PORT = 1025
_MAX_CLIENTS = 4096

SERVE_EXAMPLE = "tcplab echo serve --port 1025 --max-clients 16"
RUN_EXAMPLE = "tcplab echo run server.example.org --clients 2 --csv echo.csv"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure request-response times over TCP, by message size and clients.",
)

Cpus = Annotated[
    str, typer.Option("--cpus", metavar="LIST", help="CPUs for the threads in turn, such as 0,1 or 0-3.")
]


@app.command("serve", epilog=f"\b\nExample:\n  {SERVE_EXAMPLE}")
@guarded
def serve(
    bind: Annotated[
        str | None, typer.Option("--bind", metavar="ADDR", help="Address to listen on. [default: all]")
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port to listen on.")] = PORT,
    max_clients: Annotated[
        int,
        typer.Option(
            "--max-clients", min=1, max=100_000, metavar="N", help="Maximum number of clients at a time."
        ),
    ] = 64,
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Maximum size of a message.")
    ] = "1 MiB",
    busy_poll: Annotated[
        bool,
        typer.Option(
            "--busy-poll",
            help="Allow clients to request polling instead of sleeping, which takes a CPU for each.",
        ),
    ] = False,
    cpus: Cpus = "",
    json: Json = False,
) -> None:
    """Echo messages for any number of clients, until interrupted."""
    settings = {
        "addresses": addresses_of(bind, port, passive=True),
        "clients": max_clients,
        "size": value_of_option(max_size, "positive-size", "--max-size"),
        "busy_poll": busy_poll,
        "cpus": _cpus(cpus),
    }
    listen("echo-serve", settings, _described, json=json)


@app.command("run", epilog=f"\b\nExample:\n  {RUN_EXAMPLE}")
@guarded
def run(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="A host that runs `tcplab echo serve`, or a URL: tcplab://HOST:PORT, ssh://USER@HOST.",
            show_default=False,
        ),
    ],
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="Port of the server.")] = PORT,
    sizes: Annotated[
        str,
        typer.Option(
            "--sizes", metavar="SIZES", help="Bytes of a message: 1..65536 (doubling), 1,1024 or one."
        ),
    ] = "1..65536",
    iterations: Annotated[
        int, typer.Option("--iterations", min=1, max=4_000_000_000, help="Messages of each size.")
    ] = 1000,
    clients: Annotated[
        int | None,
        typer.Option(
            "--clients", "-c", min=1, max=_MAX_CLIENTS, help="Clients at the same time. [default: 1]"
        ),
    ] = None,
    level: Level = None,
    preset: Annotated[
        Literal["published"] | None,
        typer.Option("--preset", help="published: 2 clients and 98 %, like the published study."),
    ] = None,
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup", min=0, max=100_000, metavar="N", help="Leave out the first N messages of each size."
        ),
    ] = 0,
    nodelay: Annotated[
        bool, typer.Option("--nodelay/--nagle", help="Nagle's algorithm off or on, at both ends.")
    ] = True,
    busy_poll: Annotated[
        bool,
        typer.Option(
            "--busy-poll", help="Poll instead of sleep; the server too if it was started with --busy-poll."
        ),
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="Minimum time from one message to the next.")
    ] = "0 s",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Maximum time of a round trip.")
    ] = "10 s",
    cc: Annotated[
        str,
        typer.Option("--cc", metavar="NAME", help="Congestion control of both ends. [default: the kernels']"),
    ] = "",
    cpus: Cpus = "",
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Maximum duration, where HOST is a URL.")
    ] = "60 s",
    labels: Annotated[
        Literal["en", "pt"], typer.Option("--labels", help="Row names: English, or Portuguese as published.")
    ] = "en",
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the tables as CSV.")
    ] = None,
    raw: Annotated[
        Path | None, typer.Option("--raw", metavar="FILE", help="Also write every round-trip time as CSV.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write an HTML report with figures."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure the round-trip times of messages, by size."""
    from tcplab.analysis.echo import csv_text, explain
    from tcplab.cli.output import quiet, warn
    from tcplab.cli.writing import naming
    from tcplab.echo.standalone import Asked, Test
    from tcplab.results.files import write_text

    published = preset == "published"
    confidence = 0.98 if published and level is None else level_of(level)
    asked = Asked(
        addresses=() if "://" in host else tuple(addresses_of(host, port)[:1]),
        sizes=tuple(value_of_option(sizes, "sizes", "--sizes")),
        iterations=iterations,
        clients=clients or (2 if published else 1),
        warmup=min(warmup, iterations),
        interval=value_of_option("0 s" if interval == "0" else interval, "time", "--interval"),
        timeout=value_of_option(timeout, "positive-time", "--timeout"),
        nodelay=nodelay,
        busy_poll=busy_poll,
        control=cc,
        cpus=tuple(_cpus(cpus)),
        raw=str(raw) if raw else None,
    )
    if "://" in host:
        if output is not None or raw is not None:
            raise CommandError(
                "--output and --raw are for a host that runs `tcplab echo serve`",
                Code.INPUT,
                hint="tcplab run SCENARIO --engine remote keeps the results",
            )
        _run_at(host, asked, duration, confidence, labels=labels, csv=csv, json=json)
        return
    test = Test(asked, confidence)
    interrupted = _follow(test, quiet=quiet() or (json and not sys.stderr.isatty()), labels=labels)
    if test.series:
        if csv is not None:
            with naming(csv):
                write_text(csv, csv_text(test.echoes(), labels))
        if output is not None:
            with naming(output):
                _write_report(test, output)
        echoes = test.echoes()
        rest = {
            "server": test.asked.addresses[0],
            "sockets": test.connected,
            "asked": test.asked.to_json(),
            "errors": test.errors,
            "warnings": test.warnings,
        }
        _print(echoes, explain(echoes, test.path()), labels, test.mode(), rest, json=json)
    for text in test.warnings:
        warn(f"tcplab: warning: {text}")
    if interrupted:
        raise CommandError("interrupted; the measurements so far are above", Code.INTERRUPTED)
    if test.errors:
        kept = "" if not test.series else "; the measurements so far are above"
        raise CommandError("\n".join(test.errors) + kept, Code.FAILED, hint="; ".join(test.hints))


def _run_at(
    url: str, asked: Asked, duration: str, level: float, *, labels: str, csv: Path | None, json: bool
) -> None:
    """Run the test against a host that tcplab reaches by a URL."""
    from tcplab.analysis.echo import csv_text, explain, from_tables, statistics
    from tcplab.cli.writing import naming
    from tcplab.present.echo import way
    from tcplab.results.files import write_text

    flow = {
        "kind": "echo",
        "sizes": list(asked.sizes),
        "iterations": asked.iterations,
        "clients": asked.clients,
        "warmup": asked.warmup,
        "interval": f"{asked.interval} ns",
        "timeout": f"{asked.timeout} ns",
        "nagle": not asked.nodelay,
        "busy_poll": asked.busy_poll,
        **({"cc": asked.control} if asked.control else {}),
    }
    with run_between(url, flow, duration, None) as result:
        echoes = statistics(
            from_tables(result.tables["echoes"], result.tables["echo_batches"]),
            clients=asked.clients,
            iterations=asked.iterations,
            warmup=asked.warmup,
            level=level,
        )
        steps = explain(echoes, way(result.plan, result.plan["flows"][0]))
        warnings = list(result.warnings)
    rest = {"server": url, "sockets": [], "asked": asked.to_json(), "errors": [], "warnings": warnings}
    if csv is not None:
        with naming(csv):
            write_text(csv, csv_text(echoes, labels))
    nagle = "off" if asked.nodelay else "on"
    _print(echoes, steps, labels, f"Nagle {nagle}", rest, json=json)
    lacking = asked.iterations * asked.clients * len(asked.sizes) - sum(one.count for one in echoes.whole)
    if lacking:
        raise CommandError(
            f"{lacking} messages were not sent within {duration}",
            Code.FAILED,
            hint="--duration, or fewer --iterations",
        )


def _follow(test: Test, *, quiet: bool, labels: str) -> bool:
    """Run the test and show how it goes; whether it was interrupted."""
    from tcplab.cli.echo_live import display
    from tcplab.echo.agent import EchoAgent, EchoAgentError

    # Whatever ends it, what was measured is kept.
    interrupt_on_signals()
    interrupted = False
    try:
        with (
            EchoAgent("echo-run", test.asked.to_json()) as agent,
            display(test, quiet=quiet, labels=labels) as shown,
        ):
            try:
                for event in agent:
                    test.note(event)
                    shown.update(event)
            except KeyboardInterrupt:
                interrupted = True
                agent.stop()
                for event in agent:
                    test.note(event)
    except EchoAgentError as problem:
        raise CommandError(str(problem), Code.MACHINE, problem.hint) from None
    return interrupted


def _print(
    echoes: Echoes, steps: Sequence[Step], labels: str, mode: str, rest: dict[str, Any], *, json: bool
) -> None:
    from tcplab.analysis.echo import document, tables
    from tcplab.cli.output import say, say_json, width

    if json:
        findings = [{"kind": step.kind, "text": step.text} for step in steps]
        say_json({**document(echoes), "mode": mode, **rest, "findings": findings})
        return
    for table in tables(echoes, labels):
        for line in table.lines(width()):
            say(line)
        say()
    say(f"In ms; bounds of the mean at {echoes.level:.4g}, by Student's t and by batch means. {mode}.")
    for step in steps:
        say(f"- {step.text}")


def _write_report(test: Test, path: Path) -> None:
    from tcplab.analysis.echo import explain
    from tcplab.present.echo_page import write_echo_page

    echoes = test.echoes()
    write_echo_page(
        path,
        echoes,
        explain(echoes, test.path()),
        server=test.asked.addresses[0],
        mode=test.mode(),
        warnings=test.warnings,
        errors=test.errors,
    )


def _cpus(text: str) -> list[int]:
    """`0,1` or `0-3`."""
    numbers: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.partition("-")
        try:
            numbers += range(int(first), int(last or first) + 1)
        except ValueError:
            raise CommandError(f"--cpus {text}: numbers such as 0,1 or 0-3", Code.INPUT) from None
    return numbers


def _described(event: dict[str, Any]) -> str:
    """A server's message, for people."""
    match event["event"]:
        case "listening":
            return f"listening on {', '.join(event['addresses'])}; Ctrl-C ends it"
        case "accepted":
            sizes = event["sizes"]
            spread = (
                f"{len(sizes)} sizes from {min(sizes)} to {max(sizes)} B"
                if len(sizes) > 1
                else f"{sizes[0]} B"
            )
            return (
                f"{event['peer']}: client {event['client'] + 1} of {event['clients']}, {event['iterations']}"
                f" messages each of {spread}"
            )
        case "ended" if event["error"]:
            return f"{event['peer']}: ended after {event['messages']} messages: {event['error']}"
        case "ended":
            return f"{event['peer']}: done, {event['messages']} messages"
        case "unserved" if "peer" in event:
            return f"{event['peer']}: rejected: {event['reason']}"
        case "unserved":
            return f"{event['count']} more connections were rejected"
        case _:
            return "ended"
