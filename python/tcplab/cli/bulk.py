"""`tcplab bulk`: the throughput between this machine and another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tcplab.cli.between import Host, Output
from tcplab.cli.failure import guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab bulk run ssh://server.example.org --streams 4 --duration '30 s'"

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure the throughput to another machine."
)


@app.command("run", epilog=f"\b\nExample:\n  {EXAMPLE}")
@guarded
def run(
    host: Host,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Time to send.")] = "10 s",
    streams: Annotated[
        int, typer.Option("--streams", "-P", min=1, metavar="N", help="TCP connections or UDP sources.")
    ] = 1,
    reverse: Annotated[
        bool, typer.Option("--reverse", "-R", help="Reverse: the other machine sends.")
    ] = False,
    cc: Annotated[
        str, typer.Option("--cc", metavar="NAME", help="Congestion control of the sender.")
    ] = "cubic",
    udp: Annotated[
        str | None,
        typer.Option("--udp", metavar="RATE", help="Send UDP datagrams at this rate instead of TCP."),
    ] = None,
    output: Output = None,
    json: Json = False,
) -> None:
    """Send as fast as the path allows, and print the goodput.

    Both ends run tcplab; over ssh nothing needs to be installed on the other machine.
    """
    from tcplab.cli.between import run_between
    from tcplab.cli.output import say, say_json, show
    from tcplab.cli.service import value_of_option
    from tcplab.present.summary_table import summary as shown

    value_of_option(duration, "positive-time", "--duration")
    if udp is not None:
        value_of_option(udp, "rate", "--udp")
    # A datagram that an Ethernet carries over either version of IP.
    udp_flow = {"kind": "udp", "rate": udp, "payload": "1448 B"}
    flow: dict[str, Any] = {"kind": "tcp", "cc": cc} if udp is None else udp_flow
    flow |= {"streams": streams, "duration": duration}
    if reverse:
        flow |= {"from": "there", "to": "here"}
    with run_between(host, flow, duration, output) as result:
        if json:
            from tcplab.analysis.summaries import summary

            say_json({"warnings": result.warnings, "summary": summary(result).to_json()})
            return
        show(shown(result))
        for path in result.manifest.facts["paths"]:
            say(path_line(path))
        if output is not None:
            say(f"results  {output}")


def path_line(path: dict[str, Any]) -> str:
    """The measured path as a line of text."""
    from tcplab import quantities

    if path["rtt"] is None:
        return "path     UDP, TCP and ICMP are blocked: RTT, MTU and hops are unknown"
    rate = (
        "" if path["bandwidth"] is None else f", about {quantities.rate(path['bandwidth'])} at the bottleneck"
    )
    hops = "" if path["hops"] is None else f", {path['hops']} hop{'' if path['hops'] == 1 else 's'}"
    mtu = "MTU unknown" if path["mtu"] is None else f"MTU {path['mtu']} B"
    return f"path     idle RTT {path['rtt'] / 1e6:.3g} ms, {mtu}{hops}{rate}"
