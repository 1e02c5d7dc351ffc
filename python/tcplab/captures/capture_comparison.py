"""A run's captures beside the sockets' own view and the links' truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.captures.errors import CaptureError
from tcplab.captures.flow import Flow, Half, TcpHalf
from tcplab.captures.run_captures import captures_in
from tcplab.captures.summary import Summary, summarise
from tcplab.figures.model import Figure
from tcplab.plan.types import Plan
from tcplab.present.report import CapturePart
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import NONE, Scale, count_scale, time_scale
from tcplab.results.run import Run

# Captures of more repetitions than this are left to `tcplab pcap`, and larger ones too: a report is quick.
_MAX_REPETITIONS, _MAX_BYTES = 3, 2_000_000_000
_MAX_ROWS = 40
# Packets beyond which the figures are left to `tcplab pcap --plot`.
_MAX_DRAWN = 3_000_000
_KINDS = ("throughput", "inflight", "rtt", "sequence")


@dataclass(frozen=True)
class _Row:
    repetition: int
    stream: dict[str, Any]
    """The stream's row of the flows table."""
    flow: Flow
    capture: Path

    @property
    def half(self) -> TcpHalf | None:
        """The data sender's side, as captured."""
        return self.flow.sender.tcp


def capture_part(run: Run) -> CapturePart | None:
    """Compare the captures with the tables; None without captures of TCP flows."""
    if not run.plan.get("capture"):
        return None
    rows: list[_Row] = []
    remarks: list[str] = []
    summaries: dict[Path, Summary] = {}
    addresses = _addresses(run.plan)
    for repetition in run.repetitions[:_MAX_REPETITIONS]:
        paths = _captures(run.run_dirs[repetition])
        for path in paths:
            if path.stat().st_size > _MAX_BYTES:
                remarks.append(f"{path.name} is too large for a report: tcplab pcap {path}")
                continue
            try:
                summaries[path] = summarise(path)
            except CaptureError as problem:
                remarks.append(str(problem))
        streams = [
            _with_rtt(run, row)
            for row in run.flows.to_dicts()
            if row["repetition"] == repetition and _is_tcp(row)
        ]
        made = {path: summaries[path] for path in paths if path in summaries}
        rows += _matched(repetition, streams, made, addresses)
    if not rows:
        return None
    first = rows[0].capture
    drawn = [row.flow for row in rows if row.capture == first]
    return CapturePart(
        grid=_grid(rows, len(run.repetitions) > 1),
        figures=tuple(_figures(summaries[first], drawn)),
        drawn_from=first.name,
        notes=tuple(_notes(run, rows, remarks)),
    )


def _captures(directory: Path) -> list[Path]:
    try:
        return captures_in(directory)
    except OSError:
        return []


def _is_tcp(row: dict[str, Any]) -> bool:
    return row["cc"] is not None


def _with_rtt(run: Run, row: dict[str, Any]) -> dict[str, Any]:
    """A real socket reports no RTT samples, only its smoothed RTT when it is asked."""
    if row["rtt_p50"] is not None:
        return row
    same = [pl.col(name) == row[name] for name in ("repetition", "flow", "stream")]
    smoothed = run.sockets.filter(*same)["srtt"].drop_nulls()
    return row | {f"rtt_p{share}": smoothed.quantile(share / 100) for share in (50, 95)}


def _matched(
    repetition: int,
    streams: Sequence[dict[str, Any]],
    captures: dict[Path, Summary],
    addresses: dict[str, set[IPv4Address | IPv6Address]],
) -> list[_Row]:
    """Each stream with its flow, from the capture made nearest to its sender."""
    found = []
    by_ports: dict[frozenset[int], list[tuple[Path, Flow]]] = defaultdict(list)
    for path, summary in captures.items():
        for flow in summary.flows:
            if flow.protocol == "tcp":
                by_ports[frozenset(half.port for half in flow.halves)].append((path, flow))
    for row in streams:
        same = [
            (_distance(path, row["from"]), -flow.packets, flow.number, path, flow)
            for path, flow in by_ports[frozenset((row["from_port"], row["to_port"]))]
            if _is_of(flow, row, addresses)
        ]
        if same:
            *_, path, flow = min(same, key=lambda candidate: candidate[:3])
            found.append(_Row(repetition, row, flow, path))
    return found


def _is_of(flow: Flow, row: dict[str, Any], addresses: dict[str, set[IPv4Address | IPv6Address]]) -> bool:
    """Whether a captured flow has the addresses and ports of a stream."""

    def is_at(half: Half, end: str) -> bool:
        return half.port == row[f"{end}_port"] and ip_address(half.address) in addresses[row[end]]

    one, other = flow.halves
    return (is_at(one, "from") and is_at(other, "to")) or (is_at(other, "from") and is_at(one, "to"))


def _addresses(plan: Plan) -> dict[str, set[IPv4Address | IPv6Address]]:
    """By node, the addresses of its interfaces; a switch's have none."""
    found: dict[str, set[IPv4Address | IPv6Address]] = {node["name"]: set() for node in plan["nodes"]}
    for link in plan["links"]:
        for kind in ("addresses", "addresses6"):
            for node, address in zip(link["ends"], link[kind] or (), strict=False):
                if address is not None:
                    found[node].add(ip_interface(address).ip)
    return found


def _distance(path: Path, node: str) -> int:
    """Captures of the sender's own node come first."""
    return 0 if path.name.startswith((f"{node}-", f"{node}.")) else 1


def _grid(rows: Sequence[_Row], many: bool) -> Grid:
    shown = rows[:_MAX_ROWS]
    counts = count_scale([])
    rtts = time_scale(
        value
        for row in shown
        for value in (_rtt(row, "p50"), _rtt(row, "p95"), row.stream["rtt_p50"], row.stream["rtt_p95"])
        if value is not None
    )
    headings = (
        *((Heading("Repetition"),) if many else ()),
        Heading("Flow", numeric=False),
        Heading("Stream"),
        Heading("Capture", numeric=False, about="and the flow's number in it, for tcplab pcap --flow"),
        Heading("Retransmitted", "capture", about="Segments retransmitted, as the capture shows"),
        Heading("Retransmitted", "socket", about="Segments the sending socket says it retransmitted"),
        Heading("Lost", "links", about="Packets of the sending direction that the links dropped or lost"),
        Heading("Spurious", "capture", about="Retransmissions that a D-SACK showed to be spurious"),
        Heading("RTT p50", f"capture, {rtts.unit}"),
        Heading("RTT p50", f"socket, {rtts.unit}"),
        Heading("RTT p95", f"capture, {rtts.unit}"),
        Heading("RTT p95", f"socket, {rtts.unit}"),
    )
    return Grid("By flow", headings, tuple(tuple(_cells(row, many, counts, rtts)) for row in shown))


def _cells(row: _Row, many: bool, counts: Scale, rtts: Scale) -> Iterator[str]:
    stream, half = row.stream, row.half
    if many:
        yield str(row.repetition)
    yield stream["flow"]
    yield str(stream["stream"])
    yield f"{row.capture.name}, flow {row.flow.number}"
    yield _cell(counts, None if half is None else half.retransmitted_segments)
    yield _cell(counts, stream["retransmits"])
    yield _cell(counts, stream["losses_true"])
    yield _cell(counts, None if half is None else half.spurious)
    for quantile in ("p50", "p95"):
        yield _cell(rtts, _rtt(row, quantile))
        yield _cell(rtts, stream[f"rtt_{quantile}"])


def _rtt(row: _Row, quantile: str) -> float | None:
    spread = None if row.half is None else row.half.rtt
    return None if spread is None else float(getattr(spread, quantile))


def _cell(scale: Scale, value: float | None) -> str:
    return NONE if value is None else scale.number(float(value))


def _figures(summary: Summary, flows: Sequence[Flow]) -> list[Figure]:
    from tcplab.captures.figures import MAX_FLOWS, figures
    from tcplab.captures.packets import follow

    shown = sorted(flows, key=lambda flow: -flow.frame_bytes)[:MAX_FLOWS]
    shown.sort(key=lambda flow: flow.number)
    if sum(flow.packets for flow in shown) > _MAX_DRAWN:
        return []
    packets, _ = follow(summary.path, [flow.number for flow in shown])
    start = summary.facts["first"] or 0
    return [figure for kind in _KINDS for figure in figures(kind, shown, packets, start)]


def _notes(run: Run, rows: Sequence[_Row], remarks: Sequence[str]) -> Iterator[str]:
    yield from remarks
    yield (
        "Three views of the same losses: retransmissions in the capture, retransmissions that the socket "
        "counted, packets that the links dropped. Where more were retransmitted than lost, some were "
        "spurious. A super-packet counts as the segments it is cut into."
    )
    capture = run.plan.get("capture")
    if capture and capture.get("at") == "wire":
        yield (
            "A capture at the wire sees a packet when it leaves its host's queue. So the capture's RTT lacks "
            "the wait in that queue. It never sees packets that the queue dropped: the SACKs "
            "before their retransmissions give those away."
        )
    if run.engine != "sim":
        yield "The socket's RTT is its smoothed RTT as it was sampled, the capture's every single one."
    if any(row.half is not None and row.half.missed_bytes for row in rows):
        yield "The captures missed packets: retransmissions of what they missed are not counted."
    if len(rows) > _MAX_ROWS:
        yield f"{len(rows) - _MAX_ROWS} more streams: tcplab pcap {run.path}"
    if len(run.repetitions) > _MAX_REPETITIONS:
        yield f"The first {_MAX_REPETITIONS} of {len(run.repetitions)} repetitions."
