"""`tcplab serve`: this machine as a host of other people's runs."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab serve --allow 192.0.2.0/24 --max-rate '1 Gbit/s' --max-duration '60 s'"


@guarded
def serve(
    bind: Annotated[
        str, typer.Option("--bind", metavar="ADDR", help="Address to listen on. [default: all]")
    ] = "",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port to listen on.")] = 5230,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="NETWORK",
            help="Who may come, such as 192.0.2.0/24. Repeatable. [default: all]",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NETWORK",
            help="Whom clients may have traffic sent to besides themselves. Repeatable.",
        ),
    ] = None,
    max_clients: Annotated[
        int, typer.Option("--max-clients", min=1, max=10_000, metavar="N", help="Clients at a time.")
    ] = 64,
    max_streams: Annotated[
        int, typer.Option("--max-streams", min=1, max=100_000, metavar="N", help="Streams of a run.")
    ] = 128,
    max_duration: Annotated[
        str, typer.Option("--max-duration", metavar="TIME", help="Longest run.")
    ] = "10 min",
    max_rate: Annotated[
        str, typer.Option("--max-rate", metavar="RATE", help="Most that a flow sends. [default: unlimited]")
    ] = "",
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Where certificate.pem, key.pem and token are kept; made if missing."
            " [default: ~/.config/tcplab/serve]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Let others use this machine as a host of their runs, until interrupted.

    A client needs the token, and the certificate's SHA-256 where no authority has signed it. Traffic is sent
    only to the client's own address, and to the networks named by --target.
    """
    from tcplab.cli.echo import _addresses, _dumped
    from tcplab.cli.output import say
    from tcplab.echo.agent import EchoAgent, EchoAgentError
    from tcplab.engine.remote.binary import agent_command_of_a_client

    told = {
        "addresses": _addresses(bind or None, port, passive=True),
        "directory": str((state or Path("~/.config/tcplab/serve").expanduser()).absolute()),
        "node": agent_command_of_a_client(),
        "clients": max_clients,
        "allow": allow or [],
        "limits": {
            "duration": _value(max_duration, "positive-time", "--max-duration"),
            "rate": _value(max_rate, "rate", "--max-rate") if max_rate else None,
            "streams": max_streams,
            "targets": target or [],
        },
    }
    # SIGTERM ends it as Ctrl-C does. Either is how a server ends when all is well.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt), EchoAgent("serve", told) as agent:
            try:
                for event in agent:
                    say(_dumped(event) if json else _heard(event))
                    sys.stdout.flush()
            except KeyboardInterrupt:
                agent.stop()
                for event in agent:
                    say(_dumped(event) if json else _heard(event))
    except EchoAgentError as problem:
        raise CommandError(str(problem), Code.MACHINE) from None


def _heard(event: dict[str, Any]) -> str:
    match event["event"]:
        case "listening":
            return (
                f"listening on {', '.join(event['addresses'])}; Ctrl-C ends it\n"
                f"certificate {event['certificate']}\n"
                f"token in {event['directory']}/token"
            )
        case "admitted":
            return f"{event['peer']}: admitted"
        case "ended":
            return f"{event['peer']}: ended" + (f": {event['error']}" if event["error"] else "")
        case "turned_away":
            return f"{event['count']} connections were turned away"
        case _:
            return "ended"


def _value(text: str, kind: str, option: str) -> Any:
    from tcplab.cli.echo import _value as value

    return value(text, kind, option)
