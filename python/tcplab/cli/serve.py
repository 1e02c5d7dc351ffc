"""`tcplab serve`: this machine as a host of other people's runs."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json
from tcplab.cli.service import addresses_of, listen, value_of_option

EXAMPLE = "tcplab serve --allow 192.0.2.0/24 --max-rate 1Gbit/s --max-duration 60s"


@guarded
def serve(
    bind: Annotated[
        str | None, typer.Option("--bind", metavar="ADDR", help="Address to listen on. [default: all]")
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port to listen on.")] = 5230,
    ports: Annotated[
        str | None,
        typer.Option(
            "--ports",
            metavar="FIRST-LAST",
            help="Ports at which flows arrive, to be opened in a firewall, for TCP and UDP."
            " [default: those that the kernel chooses]",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="NETWORK",
            help="Network to admit clients from, such as 192.0.2.0/24. Repeatable. [default: all]",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NETWORK",
            help="Network that clients may send traffic to, besides their own address. Repeatable.",
        ),
    ] = None,
    max_clients: Annotated[
        int,
        typer.Option(
            "--max-clients", min=1, max=10_000, metavar="N", help="Maximum number of clients at a time."
        ),
    ] = 64,
    max_streams: Annotated[
        int,
        typer.Option(
            "--max-streams", min=1, max=100_000, metavar="N", help="Maximum number of streams of a run."
        ),
    ] = 128,
    max_duration: Annotated[
        str, typer.Option("--max-duration", metavar="TIME", help="Maximum duration of a run.")
    ] = "10 min",
    max_rate: Annotated[
        str | None,
        typer.Option("--max-rate", metavar="RATE", help="Maximum rate of a flow. [default: unlimited]"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Directory of certificate.pem, key.pem and token; created if missing."
            " [default: ~/.config/tcplab/serve]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Let others use this machine as a host of their runs, until interrupted.

    A client needs the token, and the SHA-256 of the certificate unless an authority has signed it. Traffic is
    sent only to the client's own address, and to the networks given by --target.
    """
    from tcplab.engine.remote.binary import agent_command_of_a_client

    settings = {
        "addresses": addresses_of(bind, port, passive=True),
        "directory": str((state or Path("~/.config/tcplab/serve").expanduser()).absolute()),
        "node": agent_command_of_a_client(),
        "clients": max_clients,
        "allow": _networks("--allow", allow),
        "ports": None if ports is None else _range(ports),
        "limits": {
            "duration": value_of_option(max_duration, "positive-time", "--max-duration"),
            "rate": None if max_rate is None else value_of_option(max_rate, "rate", "--max-rate"),
            "streams": max_streams,
            "targets": _networks("--target", target),
        },
    }
    listen("serve", settings, _described, json=json)


def _networks(option: str, given: list[str] | None) -> list[str]:
    for text in given or []:
        address, slash, bits = text.partition("/")
        try:
            ipaddress.ip_network(
                (address, int(bits) if slash else 128 if ":" in address else 32), strict=False
            )
        except ValueError:
            raise CommandError(
                f"{option}: {text!r} is not a network such as 192.0.2.0/24", Code.INPUT
            ) from None
    return given or []


def _range(text: str) -> tuple[int, int]:
    from tcplab.engine.remote.place import PlaceError, ports_in

    try:
        found = ports_in(text)
    except PlaceError as problem:
        raise CommandError(f"--ports: {problem}", Code.INPUT) from None
    return found[0], found[-1]


def _described(event: dict[str, Any]) -> str:
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
            return f"{event['count']} connections were rejected"
        case _:
            return "ended"
