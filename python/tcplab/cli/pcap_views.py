"""The views of `tcplab pcap` beside the table of flows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tcplab.cli.failure import Code, CommandError
from tcplab.cli.output import JSON_VERSION
from tcplab.cli.pcap_reading import (
    flow_of,
    followed,
    interruptible,
    only,
    only_flow,
    print_lines,
    print_remarks,
    print_wrapped,
    seekable,
    summary_of,
    width,
)

if TYPE_CHECKING:
    from tcplab.captures.flows import Flows

MAX_CUT = 100
"""Flows that `segmentation` shows, unless `--limit` is given."""

Plots = Literal[
    "all", "throughput", "inflight", "rtt", "window", "sequence", "retransmissions", "interarrival"
]


def packets(
    captures: list[Path],
    number: int | None,
    flow: int | None,
    filter_text: str | None,
    limit: int,
    wide: bool,
    json: bool,
) -> None:
    """The packet list, or one packet field by field."""
    from tcplab.captures.errors import CaptureError
    from tcplab.captures.listing import lines, open_list, rows
    from tcplab.safe_text import visible

    path = only(captures, "packets")
    try:
        found = open_list(path, flow, filter_text, 0 if wide else width())
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    if number is not None:
        _print_packet(found, path, number, json)
        return
    if json:
        _stream_json(rows(found, limit))
    else:
        sys.stdout.write(found.heading() + "\n")
        for text in lines(found, limit):
            sys.stdout.write(visible(text, lines=True))
            sys.stdout.flush()
        facts = found.facts()
        if facts["ending"] not in (None, "complete"):
            from tcplab.cli.output import warn

            warn(f"the capture is {facts['ending']}")


def _print_packet(found: Any, path: Path, number: int, json: bool) -> None:
    from tcplab.captures.listing import dissection, packet_json

    details = found.details(number)
    if details is None:
        count = found.facts()["packets"]
        raise CommandError(f"{path}: there is no packet {number}: the capture has {count}", Code.INPUT)
    if json:
        from tcplab.cli.output import say_json

        say_json(packet_json(details))
    else:
        print_lines(dissection(details, width()))


def _stream_json(rows: Iterable[dict[str, Any]]) -> None:
    """A packet per line, written while the capture is read."""
    from json import dumps

    sys.stdout.write(f'{{"version": {JSON_VERSION}, "packets": [')
    lead = ""
    for row in rows:
        sys.stdout.write(f"{lead}\n{dumps(row)}")
        lead = ","
    sys.stdout.write("\n]}\n")


def plot(
    captures: list[Path],
    kind: str,
    flow: int | None,
    filter_text: str | None,
    output: Path | None,
    json: bool,
) -> None:
    """Figures of flows, as a page or as images."""
    from tcplab.captures.figures import MAX_FLOWS, figures
    from tcplab.quantities import plural

    named = only(captures, "plot")
    path = seekable(named)
    summary = summary_of(path, filter_text, named)
    flows = summary.flows if flow is None else only_flow(summary, flow)
    if not flows:
        raise CommandError(f"{named}: there is no flow to draw", Code.INPUT)
    shown = sorted(_largest(flows, MAX_FLOWS), key=lambda one: one.number)
    packets = followed(path, [one.number for one in shown])
    start = shown[0].first if len(shown) == 1 else summary.facts["first"]
    made = figures(kind, shown, packets, start)
    if not made:
        raise CommandError(f"{named}: there is nothing to draw for {kind}", Code.INPUT)
    lead = shown[0].name if len(shown) == 1 else plural(len(shown), "flow")
    if len(shown) < len(flows):
        lead += f", those with most bytes of {len(flows)}"
    _write_figures(made, named, lead, summary.facts, kind, output, json)


def _largest(flows: Flows, maximum: int) -> Flows:
    """Those with most bytes."""
    from tcplab.captures.columns import named, ordered

    by_bytes = named("bytes")
    return flows if len(flows) <= maximum or by_bytes is None else ordered(flows, by_bytes)[:maximum]


def _write_figures(
    made: list[Any], path: Path, lead: str, facts: dict[str, Any], kind: str, output: Path | None, json: bool
) -> None:
    from tcplab.captures.page import IMAGES, write_image, write_page
    from tcplab.captures.warnings import remarks
    from tcplab.cli.output import say_files
    from tcplab.cli.writing import naming

    title = "standard input" if str(path) == "-" else path.name
    target = (
        output if output is not None else Path(f"{'capture' if str(path) == '-' else path.stem}-{kind}.html")
    )
    written = []
    with naming(target):
        if target.suffix == ".html":
            write_page(target, title, lead, made, list(remarks(facts)))
            written = [target]
        elif target.suffix in IMAGES:
            for figure in made:
                several = len(made) > 1
                file = target.with_name(f"{target.stem}-{figure.name}{target.suffix}") if several else target
                write_image(file, figure)
                written.append(file)
        elif target.suffix and not target.is_dir():
            raise CommandError(
                f"--output: .html, {', '.join(IMAGES)} or a directory, not {target.name}", Code.INPUT
            )
        else:
            from tcplab.figures.images import write_images

            written = write_images(made, target)
            page = target / f"{kind}.html"
            write_page(page, title, lead, made, list(remarks(facts)))
            written.append(page)
    say_files(written, json=json)


def ladder(
    captures: list[Path], flow: int | None, limit: int | None, output: Path | None, json: bool
) -> None:
    """The flow graph, as text, JSON or SVG."""
    from tcplab.captures.ladder import ladder, text_lines, to_json
    from tcplab.cli.output import colored, say_colored, say_files, say_json

    named = only(captures, "ladder")
    path = seekable(named)
    summary = summary_of(path, None, named)
    if flow is None and len(summary.flows) != 1:
        raise CommandError(f"ladder needs --flow N: the capture has {len(summary.flows)} flows", Code.INPUT)
    chosen = summary.flows[0] if flow is None else flow_of(summary, flow)
    if output is not None:
        from tcplab.captures.ladder_svg import svg
        from tcplab.cli.writing import write

        if output.suffix != ".svg":
            raise CommandError(f"--output: the flow graph is drawn as .svg, not as {output.name}", Code.INPUT)
        write(output, svg(ladder(chosen, followed(path, [chosen.number]), 200 if limit is None else limit)))
        say_files([output], json=json)
        return
    rungs = ladder(chosen, followed(path, [chosen.number]), limit or 0)
    if json:
        say_json(to_json(rungs))
        return
    for line in text_lines(rungs, width(), color=colored()):
        say_colored(line)


def segmentation(
    captures: list[Path], flow: int | None, filter_text: str | None, limit: int | None, json: bool
) -> None:
    """How data were cut into packets, of the flows with most bytes."""
    from tcplab.captures.segmentation import cuts, lines, to_json
    from tcplab.cli.output import say, say_json
    from tcplab.quantities import plural

    named = only(captures, "segmentation")
    path = seekable(named)
    summary = summary_of(path, filter_text, named)
    flows = summary.flows if flow is None else only_flow(summary, flow)
    maximum = (len(flows) if json else MAX_CUT) if limit is None else limit or len(flows)
    shown = sorted(_largest(flows, maximum), key=lambda one: one.number)
    packets = followed(path, [one.number for one in shown]).by_flow()
    found = [(one, cuts(one, packets[one.number])) for one in shown]
    if json:
        say_json({"flows": [to_json(one, cut) for one, cut in found]})
        return
    for index, (one, cut) in enumerate(found):
        if index:
            say()
        print_lines(lines(one, cut, width()))
    if not flows:
        say("no flows")
    if len(shown) < len(flows):
        say()
        print_wrapped(f"{plural(len(flows) - len(shown), 'flow')} with fewer bytes (--limit 0 shows all)")
    print_remarks(summary.facts)


def ends(
    captures: list[Path],
    other: Path,
    same_clock: bool | None,
    plot: bool,
    output: Path | None,
    json: bool,
) -> None:
    """Both ends of a path, matched."""
    from tcplab.captures.errors import CaptureError
    from tcplab.captures.two_point import delay_figure, lines, match_ends, to_json
    from tcplab.cli.output import say_json

    path = only(captures, "match")
    if "-" in (str(path), str(other)):
        raise CommandError("match needs two files, not standard input: they are read twice", Code.INPUT)
    try:
        with interruptible():
            ends = match_ends(path, other, same_clock=same_clock)
    except CaptureError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    if plot:
        figure = delay_figure(ends)
        if not figure.panels:
            raise CommandError("the two captures have no packet in common", Code.INPUT)
        _write_figures(
            [figure], path, f"{path.name} and {other.name}", ends.raw["read"][0], "delay", output, json
        )
    elif json:
        say_json(to_json(ends))
    else:
        print_lines(lines(ends, width()))
        for facts in ends.raw["read"]:
            print_remarks(facts)
