"""`tcplab pcap`: what happened on the wire."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli import pcap_views
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.pcap_reading import (
    captures_of,
    only_flow,
    print_lines,
    print_remarks,
    print_wrapped,
    summary_of,
    width,
)
from tcplab.cli.pcap_views import PLOTS

if TYPE_CHECKING:
    from tcplab.captures.flows import Flows
    from tcplab.captures.summary import Summary

MOST_SHOWN = 1000
"""Rows of the table, unless told: nobody reads a million."""

EXAMPLE = """tcplab pcap capture.pcapng
  tcplab pcap capture.pcapng --flow 1 --plot all --output flow1.html
  tcplab pcap capture.pcapng --ladder --flow 1 --limit 40
  tcplab pcap capture.pcapng --packets --filter 'tcp port 5201 and not src host 10.0.0.1'
  tcpdump -i eth0 -w - | tcplab pcap -"""


@guarded
def pcap(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Captures (pcap, pcapng, also gzip or zstd), - for standard input, or result directories.",
            show_default=False,
        ),
    ],
    flow: Annotated[
        int | None, typer.Option("--flow", "-f", min=1, metavar="N", help="Only this flow, in detail.")
    ] = None,
    filter_text: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="EXPR", help="Only what is meant, as 'port 5201 and host 10.0.0.1'."
        ),
    ] = None,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="KEY", help="Order of the flows, as goodput or rtt.")
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="All columns and whole lines, however wide.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="KIND", help=f"Draw: {', '.join(PLOTS)}, all; with --with: delay."),
    ] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help="The flow graph: a row per packet.")] = False,
    packets: Annotated[bool, typer.Option("--packets", "-p", help="The packet list.")] = False,
    packet: Annotated[
        int | None, typer.Option("--packet", min=1, metavar="N", help="This packet field by field.")
    ] = None,
    segmentation: Annotated[
        bool, typer.Option("--segmentation", help="How data are cut into packets, and what headers cost.")
    ] = False,
    other: Annotated[
        Path | None,
        typer.Option("--with", metavar="FILE", help="The other end's capture: one-way delay, true losses."),
    ] = None,
    same_clock: Annotated[
        bool | None,
        typer.Option(
            "--same-clock/--other-clock", help="--with: whether one clock timed both. [default: within a run]"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-l",
            min=0,
            metavar="N",
            help="Flows or packets at most; 0: all. [default: 1000 flows in a table, else all]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="File (.html .svg .png .pdf) or directory."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the flows as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Also write the flows as Parquet.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write JSON to standard output and nothing else.")
    ] = False,
) -> None:
    """Explain captures: flows, losses, round-trip times, packets.

    Filters: host, net, port, src, dst, tcp, udp, icmp, ip, ip6, flow N; joined by and, or, not, parentheses.
    """
    asked = [
        name
        for name, given in (
            ("--plot", plot is not None),
            ("--ladder", ladder),
            ("--packets", packets),
            ("--packet", packet is not None),
            ("--segmentation", segmentation),
            ("--with", other is not None),
        )
        if given
    ]
    if len(asked) > 1 and asked != ["--plot", "--with"]:
        raise CommandError(f"{' and '.join(asked)} are different views: ask for one at a time", Code.INPUT)
    view = asked[0] if asked else ""
    if json and view in ("--plot", "--ladder"):
        raise CommandError(f"{view} draws; --json goes with the other views", Code.INPUT)
    if view and (csv or parquet):
        raise CommandError(f"--csv and --parquet write the flows; {view} is another view", Code.INPUT)
    if output is not None and not (plot or ladder):
        raise CommandError("--output is where --plot or --ladder is drawn", Code.INPUT)
    captures = captures_of(files)
    if packets or packet is not None:
        pcap_views.packets(captures, packet, flow, filter_text, limit or 0, wide, json)
    elif other is not None:
        pcap_views.ends(captures, other, same_clock, plot, output, json)
    elif plot is not None:
        pcap_views.plot(captures, plot, flow, filter_text, output)
    elif ladder:
        pcap_views.ladder(captures, flow, limit or 0, output)
    elif segmentation:
        pcap_views.segmentation(captures, flow, filter_text, limit, json)
    else:
        _flows(captures, flow, filter_text, sort, wide, limit, csv, parquet, json)


def _flows(
    captures: list[Path],
    number: int | None,
    filter_text: str | None,
    sort: str | None,
    wide: bool,
    limit: int | None,
    csv: Path | None,
    parquet: Path | None,
    json: bool,
) -> None:
    from tcplab.cli.output import say

    if "-" in map(str, captures) and len(captures) > 1:
        raise CommandError("- (standard input) stands alone", Code.INPUT)
    summaries: list[tuple[Summary, Flows]] = []
    for path in captures:
        summary = summary_of(path, filter_text)
        flows = summary.flows if number is None else only_flow(summary, number)
        summaries.append((summary, _sorted(flows, sort)))
    for target in (csv, parquet):
        if target is not None:
            _write(target, summaries)
    if json:
        _write_json(summaries, limit or 0)
        return
    most = MOST_SHOWN if limit is None else limit
    for index, (summary, flows) in enumerate(summaries):
        if index:
            say()
        if number is None:
            _print_table(summary, flows, wide, most, several=len(summaries) > 1)
        else:
            from tcplab.captures import details

            print_lines(details.lines(flows[0], width()))
            flows = flows[:0]
        shown = flows[:most] if most else flows
        print_remarks(summary.facts, [flow.number for flow in shown if flow.near_receiver])


def _sorted(flows: Flows, sort: str | None) -> Flows:
    if sort is None:
        return flows
    from tcplab.captures.columns import COLUMNS, named, ordered

    column = named(sort)
    if column is None:
        keys = ", ".join(column.key for column in COLUMNS)
        raise CommandError(f"--sort: no column is called {sort!r}: there is {keys}", Code.INPUT)
    return ordered(flows, column)


def _print_table(summary: Summary, flows: Flows, wide: bool, limit: int, *, several: bool) -> None:
    from tcplab.cli.output import say
    from tcplab.quantities import plural, seconds, size

    facts = summary.facts
    span = (facts["last"] - facts["first"]) / 1e9 if facts["packets"] else 0.0
    head = f"{summary.path}: " if several else ""
    total = f"{plural(facts['packets'], 'packet')} of {size(facts['frame_bytes'])} in {seconds(span)}"
    say(f"{head}{total}, {plural(len(flows), 'flow')}")
    sys.stdout.flush()
    shown = flows[:limit] if limit else flows
    if not shown:
        return
    from tcplab.captures import columns, table

    say()
    telling = columns.chosen(shown, 0)
    picked = columns.COLUMNS if wide else columns.chosen(shown, width())
    for line in table.lines(picked, shown):
        say(line)
    left_out = [column.title for column in telling if column not in picked]
    notes = []
    if len(shown) < len(flows):
        notes.append(f"{plural(len(flows) - len(shown), 'more flow')} (--limit 0 shows all)")
    if left_out:
        notes.append(f"too narrow for {', '.join(left_out)} (--wide shows them, --flow N tells all)")
    if notes:
        say()
    for note in notes:
        print_wrapped(note)


def _write_json(summaries: list[tuple[Summary, Flows]], limit: int) -> None:
    """An object a capture, in an array if there are several; a flow a line, written one by one."""
    several = len(summaries) > 1
    for index, (summary, flows) in enumerate(summaries):
        sys.stdout.write("[\n" if several and not index else ",\n" if index else "")
        _write_capture(summary, flows[:limit] if limit else flows)
    sys.stdout.write("\n]\n" if several else "\n")


def _write_capture(summary: Summary, flows: Flows) -> None:
    from json import dumps

    sys.stdout.write(
        f'{{"capture": {dumps(str(summary.path))},\n "read": {dumps(summary.facts)},\n "flows": ['
    )
    for index in range(len(flows)):
        sys.stdout.write(f"{',' if index else ''}\n  {dumps(flows.raw(index))}")
    sys.stdout.write("]}")


def _write(target: Path, summaries: list[tuple[Summary, Flows]]) -> None:
    from tcplab.captures.frames import write_flows
    from tcplab.cli.writing import naming

    with naming(target):
        write_flows(target, [(summary.path, flows) for summary, flows in summaries])
