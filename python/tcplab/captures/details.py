"""One flow in detail: both directions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tcplab.captures.columns import number, options, time
from tcplab.captures.flow import Flow, Half, Spread, TcpHalf
from tcplab.captures.listing import wrapped
from tcplab.quantities import rate, size

_MARGIN = "  "


def lines(flow: Flow, width: int) -> Iterator[str]:
    """The flow's facts, and a table of what each side sent; narrow terminals get shorter names."""
    forward, backward = flow.halves
    yield f"flow {flow.number}: {flow.protocol.upper()} {forward.endpoint} <-> {backward.endpoint}"
    for text in _facts(flow):
        lead = text[:14]
        yield from wrapped(lead, text[14:], width)
    yield ""
    rows = [(name, show(forward), show(backward)) for name, show in _rows(flow)]
    rows = [row for row in rows if any(cell not in ("-", "0") for cell in row[1:])]
    heads = (f"{forward.endpoint} ->", f"{backward.endpoint} ->")
    if width and 28 + sum(max(len(head), 14) + 2 for head in heads) > width:
        heads = ("forward ->", "<- reverse")
    first = max(len(row[0]) for row in rows)
    one = max(len(heads[0]), *(len(row[1]) for row in rows))
    two = max(len(heads[1]), *(len(row[2]) for row in rows))
    yield f"{'sent by':<{first}}  {heads[0]:>{one}}  {heads[1]:>{two}}"
    for name, left, right in rows:
        yield f"{name:<{first}}  {left:>{one}}  {right:>{two}}".rstrip()


def _facts(flow: Flow) -> Iterator[str]:
    yield f"{_MARGIN}time        {time(flow.duration)}, first packet is number {flow.first_packet}"
    if flow.protocol != "tcp":
        return
    if flow.handshake_rtt is None:
        yield f"{_MARGIN}handshake   incomplete in the capture, or partly retransmitted"
    else:
        parts = ""
        if flow.handshake_server is not None and flow.handshake_client is not None:
            parts = (
                f": {time(flow.handshake_server)} between here and the server, "
                f"{time(flow.handshake_client)} between here and the client"
            )
        yield f"{_MARGIN}handshake   RTT {time(flow.handshake_rtt)}{parts}"
    yield f"{_MARGIN}options     {options(flow)}"
    yield f"{_MARGIN}end         {END_WORDS.get(flow.end, flow.end)}"
    if flow.near_receiver:
        yield f"{_MARGIN}captured    near the receiver of the data: RTT is only that from here to it"


END_WORDS = {
    "closed": "closed: both sides sent FIN and had it acknowledged",
    "half closed": "half closed: a FIN or its acknowledgment was not seen",
    "reset": "reset by RST",
    "open": "open when the capture ended",
    "ports used again": "open when a new connection between the same ports began",
    "forgotten": "idle for so long that tracking ended",
}

Show = Callable[[Half], str]


def _rows(flow: Flow) -> Iterator[tuple[str, Show]]:
    yield "packets", lambda half: str(half.packets)
    yield "bytes on the link", lambda half: size(half.frame_bytes)
    yield "payload", lambda half: size(half.payload_bytes)
    yield "goodput", lambda half: rate(half.goodput) if half.goodput else "-"
    yield "longest IP packet", lambda half: f"{half.largest_ip} B" if half.largest_ip else "-"
    yield "IP fragments", lambda half: str(half.fragments)
    yield "without don't-fragment", lambda half: str(half.may_fragment)
    if flow.protocol == "tcp":
        for name, figure, show in _TCP_ROWS:
            yield name, _of_tcp(figure, show)
        yield "RTT samples", _of_spread(lambda half: half.rtt, lambda spread: str(spread.count))
        for name, value in _QUANTILES:
            yield f"RTT {name}", _of_spread(lambda half: half.rtt, value)
        for name, value in _QUANTILES:
            yield f"RTT by timestamps {name}", _of_spread(lambda half: half.rtt_timestamps, value)
    else:
        for name, value in _QUANTILES:
            yield f"between packets {name}", _between(value)


_QUANTILES: tuple[tuple[str, Callable[[Spread], str]], ...] = (
    ("min", lambda spread: time(spread.min)),
    ("mean", lambda spread: time(spread.mean)),
    ("p50", lambda spread: time(spread.p50)),
    ("p95", lambda spread: time(spread.p95)),
    ("p99", lambda spread: time(spread.p99)),
    ("max", lambda spread: time(spread.max)),
)


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)


def _some(value: int | None) -> str:
    """Bytes, empty where there are none."""
    return size(value) if value else "-"


# Label, attribute of a `TcpHalf`, and its format.
_TCP_ROWS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("packets with data", "data_packets", number),
    ("acknowledged", "acked_bytes", _size),
    ("missed by the capture", "missed_bytes", _some),
    ("retransmitted", "retransmissions", number),
    ("  fast", "fast", number),
    ("  after a timeout", "timeout", number),
    ("  tail loss probe", "probe", number),
    ("  cause not seen", "unknown", number),
    ("  in segments", "retransmitted_segments", number),
    ("  payload", "retransmitted_bytes", _some),
    ("timeouts", "timeouts", number),
    ("needless by D-SACK", "spurious", number),
    ("out of order", "out_of_order", number),
    ("duplicated by the network", "duplicates", number),
    ("keep-alives, window probes", "keep_alives", number),
    ("duplicate ACKs", "duplicate_acks", number),
    ("ACKs with SACK blocks", "sacks", number),
    ("D-SACK blocks", "dsacks", number),
    ("zero windows", "zero_windows", number),
    ("  for", "zero_window_time", lambda value: time(value or None)),
    ("outside any window", "out_of_window", number),
    ("MSS announced", "mss", number),
    ("largest payload", "largest_payload", number),
    ("window scale", "window_scale", number),
    ("smallest window", "window_min", _size),
    ("largest window", "window_max", _size),
    ("maximum outstanding", "outstanding_max", _some),
    ("ECT(0)", "ect0", number),
    ("ECT(1)", "ect1", number),
    ("CE marks", "ce", number),
    ("ECE flags", "ece", number),
    ("CWR flags", "cwr", number),
    ("reported as too big", "too_big", number),
    ("path MTU reported", "path_mtu", number),
)


def _of_tcp(figure: str, show: Callable[[Any], str]) -> Show:
    return lambda half: "-" if half.tcp is None else show(getattr(half.tcp, figure))


def _of_spread(which: Callable[[TcpHalf], Spread | None], show: Callable[[Spread], str]) -> Show:
    def described(half: Half) -> str:
        spread = None if half.tcp is None else which(half.tcp)
        return "-" if spread is None else show(spread)

    return described


def _between(show: Callable[[Spread], str]) -> Show:
    return lambda half: "-" if half.interarrival is None else show(half.interarrival)
