"""`tcplab pcap`: what happened on the wire."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from tcplab.cli import pcap_views
from tcplab.cli.command import DefaultGroup
from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.old_spellings import deprecated
from tcplab.cli.options import Json
from tcplab.cli.output import JSON_VERSION, warn
from tcplab.cli.pcap_reading import (
    captures_of,
    only_flow,
    print_lines,
    print_remarks,
    print_wrapped,
    summary_of,
    width,
)
from tcplab.cli.pcap_views import Plots

if TYPE_CHECKING:
    from tcplab.captures.flows import Flows
    from tcplab.captures.summary import Summary

MAX_SHOWN = 1000
"""Rows of the table, unless `--limit` is given: nobody reads a million."""

_EXAMPLES = """tcplab pcap capture.pcapng
  tcplab pcap plot capture.pcapng --flow 1 --output flow1.html
  tcplab pcap ladder capture.pcapng --flow 1 --limit 40
  tcplab pcap packets capture.pcapng --filter 'port 5201 and host 10.0.0.1'
  tcpdump -i eth0 -w - | tcplab pcap -"""

# The views as options, as they were spelled before, and their commands.
_VIEWS = {
    "--plot": "plot",
    "--ladder": "ladder",
    "--packets": "packets",
    "-p": "packets",
    "--packet": "packets",
    "--segmentation": "segmentation",
    "--with": "match",
}


class _Group(DefaultGroup):
    default = "flows"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            args = _with_command(args)
        return super().parse_args(ctx, args)


def _with_command(args: list[str]) -> list[str]:
    """The command line with the view as a command, where it is given as an option."""
    given = [word.partition("=")[0] for word in args]
    view = "--with" if "--with" in given else next((word for word in given if word in _VIEWS), None)
    if view is None:
        return args
    command = _VIEWS[view]
    warn(f"tcplab: warning: {deprecated(f'pcap {view}', f'pcap {command}')}")
    rest = [
        word
        for each in args
        for word in (each.split("=", 1) if each.startswith(("--plot=", "--with=")) else [each])
    ]
    if command == "match":
        # The other capture is the second argument, --plot a flag.
        at = rest.index("--with")
        rest = rest[:at] + rest[at + 2 :] + rest[at + 1 : at + 2]
        if "--plot" in rest:
            at = rest.index("--plot")
            rest = [*rest[: at + 1], *rest[at + 2 :]]
    elif view == "--plot":
        rest[rest.index("--plot")] = "--kind"
    elif view != "--packet":
        rest.remove(view)
    return [command, *rest]


app = typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode=None)


@app.callback(epilog=f"\b\nExample:\n  {_EXAMPLES}")
def group() -> None:
    """Analyze captures: flows, losses, round-trip times, packets.

    `tcplab pcap FILE...` is short for `tcplab pcap flows FILE...`, whose options `tcplab pcap flows --help`
    lists.
    """


_HELP = "Captures (pcap, pcapng, also gzip or zstd), - for standard input, or result directories."
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help=_HELP, show_default=False)]
FlowNumber = Annotated[int | None, typer.Option("--flow", min=1, metavar="N", help="Only this flow.")]
Filter = Annotated[
    str | None,
    typer.Option("--filter", metavar="EXPR", help="Filter, such as 'port 5201 and host 10.0.0.1'."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, metavar="N", help="Maximum number of rows; 0: all.")
]
Wide = Annotated[bool, typer.Option("--wide", "-w", help="All columns and whole lines, however wide.")]
Drawing = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", help="File (.html .svg .png .pdf) or directory."),
]


def _example(text: str) -> str:
    return f"\b\nExample:\n  {text}"


@app.command("flows", epilog=_example("tcplab pcap flows capture.pcapng --sort goodput --limit 10"))
@guarded
def flows(
    files: Files,
    flow: Annotated[
        int | None, typer.Option("--flow", min=1, metavar="N", help="Only this flow, in detail.")
    ] = None,
    filter_text: Filter = None,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="KEY", help="Order of the flows, such as goodput or rtt.")
    ] = None,
    wide: Wide = False,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, metavar="N", help="Maximum number of flows; 0: all. [default: 1000]"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write the flows as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Also write the flows as Parquet.")
    ] = None,
    json: Json = False,
) -> None:
    """List the flows, with losses and round-trip times.

    Filters: host, net, port, src, dst, tcp, udp, icmp, ip, ip6, flow N; joined by and, or, not, parentheses.
    """
    _flows(captures_of(files), flow, filter_text, sort, wide, limit, csv, parquet, json)


@app.command("packets", epilog=_example("tcplab pcap packets capture.pcapng --flow 1 --limit 20"))
@guarded
def packets(
    files: Files,
    packet: Annotated[
        int | None, typer.Option("--packet", min=1, metavar="N", help="This packet, field by field.")
    ] = None,
    flow: FlowNumber = None,
    filter_text: Filter = None,
    limit: Limit = None,
    wide: Wide = False,
    json: Json = False,
) -> None:
    """List the packets, or show one field by field."""
    pcap_views.packets(captures_of(files), packet, flow, filter_text, limit or 0, wide, json)


@app.command("plot", epilog=_example("tcplab pcap plot capture.pcapng --kind rtt --output rtt.svg"))
@guarded
def plot(
    files: Files,
    kind: Annotated[
        Plots, typer.Option("--kind", metavar="KIND", help=f"Figures to draw: {', '.join(get_args(Plots))}.")
    ] = "all",
    flow: FlowNumber = None,
    filter_text: Filter = None,
    output: Drawing = None,
    json: Json = False,
) -> None:
    """Draw flows: throughput, RTT, window and others."""
    pcap_views.plot(captures_of(files), kind, flow, filter_text, output, json)


@app.command("ladder", epilog=_example("tcplab pcap ladder capture.pcapng --flow 1 --output flow1.svg"))
@guarded
def ladder(
    files: Files,
    flow: FlowNumber = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=0,
            metavar="N",
            help="Maximum number of rows; 0: all. [default: all as text, 200 as SVG]",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Draw it as SVG instead.")
    ] = None,
    json: Json = False,
) -> None:
    """Draw the flow graph of a flow: a row per packet."""
    pcap_views.ladder(captures_of(files), flow, limit, output, json)


@app.command("segmentation", epilog=_example("tcplab pcap segmentation capture.pcapng"))
@guarded
def segmentation(
    files: Files,
    flow: FlowNumber = None,
    filter_text: Filter = None,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Show the segmentation of data, and the header overhead."""
    pcap_views.segmentation(captures_of(files), flow, filter_text, limit, json)


@app.command("match", epilog=_example("tcplab pcap match left.pcapng right.pcapng"))
@guarded
def match(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capture.", show_default=False)],
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="The capture at the other end.", show_default=False)
    ],
    plot: Annotated[bool, typer.Option("--plot", help="Draw the one-way delay.")] = False,
    same_clock: Annotated[
        bool | None,
        typer.Option(
            "--same-clock/--other-clock",
            help="The captures have one clock, or two. [default: one within a run]",
        ),
    ] = None,
    output: Drawing = None,
    json: Json = False,
) -> None:
    """Match captures of both ends: one-way delay, losses."""
    if output is not None and not plot:
        raise CommandError("--output is where --plot draws", Code.INPUT, "add --plot")
    pcap_views.ends(captures_of([file]), other, same_clock, plot, output, json)


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
        raise CommandError("- (standard input) cannot be combined with files", Code.INPUT)
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
    maximum = MAX_SHOWN if limit is None else limit
    for index, (summary, flows) in enumerate(summaries):
        if index:
            say()
        if number is None:
            _print_table(summary, flows, wide, maximum, several=len(summaries) > 1)
        else:
            from tcplab.captures import details

            print_lines(details.lines(flows[0], width()))
            flows = flows[:0]
        shown = flows[:maximum] if maximum else flows
        print_remarks(summary.facts, [flow.number for flow in shown if flow.near_receiver])


def _sorted(flows: Flows, sort: str | None) -> Flows:
    if sort is None:
        return flows
    from tcplab.captures.columns import COLUMNS, named, ordered

    column = named(sort)
    if column is None:
        keys = ", ".join(column.key for column in COLUMNS)
        raise CommandError(f"--sort: unknown column {sort!r}", Code.INPUT, f"columns: {keys}")
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
        notes.append(
            f"too narrow for {', '.join(left_out)} (--wide shows them, --flow N shows all of one flow)"
        )
    if notes:
        say()
    for note in notes:
        print_wrapped(note)


def _write_json(summaries: list[tuple[Summary, Flows]], limit: int) -> None:
    """An object per capture; a flow per line, written one by one."""
    sys.stdout.write(f'{{"version": {JSON_VERSION}, "captures": [\n')
    for index, (summary, flows) in enumerate(summaries):
        sys.stdout.write(",\n" if index else "")
        _write_capture(summary, flows[:limit] if limit else flows)
    sys.stdout.write("\n]}\n")


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
