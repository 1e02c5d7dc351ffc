"""`tcplab ping`: round-trip times to another machine."""

from __future__ import annotations

from typing import Annotated

import typer

from tcplab.cli.between import Host, Output
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

EXAMPLE = "tcplab ping ssh://server.example.org --count 20 --interval '100 ms'"


@guarded
def ping(
    host: Host,
    count: Annotated[
        int, typer.Option("--count", min=1, max=1_000_000, metavar="N", help="Number of probes.")
    ] = 10,
    interval: Annotated[
        str, typer.Option("--interval", "-i", metavar="TIME", help="Time between probes.")
    ] = "200 ms",
    output: Output = None,
    json: Json = False,
) -> None:
    """Measure round-trip times to another machine.

    Sends ICMP echo requests. Also prints the path's MTU and number of hops.
    """
    from statistics import median

    from tcplab.cli.between import run_between
    from tcplab.cli.bulk import path_line
    from tcplab.cli.output import say, say_json
    from tcplab.cli.service import value_of_option

    seconds = count * value_of_option(interval, "positive-time", "--interval") / 1e9 + 2
    flow = {"kind": "ping", "interval": interval, "count": count}
    with run_between(host, flow, f"{seconds:.3f} s", output) as result:
        probes = result.pings
        rtts: list[int] = probes["rtt"].drop_nulls().to_list()
        times = {"min": min(rtts), "median": median(rtts), "max": max(rtts)} if rtts else {}
        found = {"sent": probes.height, "lost": int(probes["lost"].sum())}
        # The path to a host without tcplab is not measured.
        path = next(iter(result.manifest.facts["paths"]), None)
        if json:
            say_json({**found, "rtt": times, "path": path})
        else:
            say(f"{found['sent']} probes, {found['lost']} lost")
            if times:
                say("RTT      " + ", ".join(f"{name} {rtt / 1e6:.3f} ms" for name, rtt in times.items()))
            if path is not None:
                say(path_line(path))
    if not found["sent"] or found["lost"] == found["sent"]:
        raise CommandError("no reply", Code.FAILED)
