"""One flow in detail: both directions side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tcplab.captures.columns import number, options, time
from tcplab.captures.flow import Flow, Half, Spread, TcpHalf
from tcplab.captures.listing import wrapped
from tcplab.words import rate, size

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
        heads = ("forward ->", "<- backward")
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
        yield f"{_MARGIN}handshake   not seen whole, or a part of it sent twice"
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
    "forgotten": "idle for so long that it was not followed any further",
}

Show = Callable[[Half], str]


def _rows(flow: Flow) -> Iterator[tuple[str, Show]]:
    yield "packets", lambda half: str(half.packets)
    yield "bytes on the link", lambda half: size(half.frame_bytes)
    yield "payload", lambda half: size(half.payload_bytes)
    yield "goodput", lambda half: rate(half.goodput) if half.goodput else "-"
    yield "longest IP packet", lambda half: size(half.largest_ip) if half.largest_ip else "-"
    yield "IP fragments", lambda half: str(half.fragments)
    yield "without don't-fragment", lambda half: str(half.may_fragment)
    if flow.protocol == "tcp":
        for name, show in _TCP_ROWS:
            yield name, _of_tcp(show)
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

_TCP_ROWS: tuple[tuple[str, Callable[[TcpHalf], str]], ...] = (
    ("packets with data", lambda half: str(half.data_packets)),
    ("acknowledged", lambda half: "-" if half.acked_bytes is None else size(half.acked_bytes)),
    ("missed by the capture", lambda half: size(half.missed_bytes) if half.missed_bytes else "-"),
    ("sent again", lambda half: str(half.retransmissions)),
    ("  fast", lambda half: str(half.fast)),
    ("  after a timeout", lambda half: str(half.timeout)),
    ("  tail loss probe", lambda half: str(half.probe)),
    ("  cause not seen", lambda half: str(half.unknown)),
    ("  in segments", lambda half: str(half.retransmitted_segments)),
    ("  payload", lambda half: size(half.retransmitted_bytes) if half.retransmitted_bytes else "-"),
    ("needless by D-SACK", lambda half: str(half.spurious)),
    ("out of order", lambda half: str(half.out_of_order)),
    ("duplicated by the network", lambda half: str(half.duplicates)),
    ("keep-alives", lambda half: str(half.keep_alives)),
    ("duplicate ACKs", lambda half: str(half.duplicate_acks)),
    ("ACKs with SACK blocks", lambda half: str(half.sacks)),
    ("D-SACK blocks", lambda half: str(half.dsacks)),
    ("zero windows", lambda half: str(half.zero_windows)),
    ("  for", lambda half: time(half.zero_window_time) if half.zero_window_time else "-"),
    ("outside any window", lambda half: str(half.out_of_window)),
    ("MSS told", lambda half: number(half.mss)),
    ("largest payload", lambda half: str(half.largest_payload)),
    ("window scale", lambda half: number(half.window_scale)),
    ("smallest window", lambda half: "-" if half.window_min is None else size(half.window_min)),
    ("largest window", lambda half: "-" if half.window_max is None else size(half.window_max)),
    ("most outstanding", lambda half: size(half.outstanding_max) if half.outstanding_max else "-"),
    ("ECT(0)", lambda half: str(half.ect0)),
    ("ECT(1)", lambda half: str(half.ect1)),
    ("CE marks", lambda half: str(half.ce)),
    ("ECE flags", lambda half: str(half.ece)),
    ("CWR flags", lambda half: str(half.cwr)),
    ("told it was too big", lambda half: str(half.too_big)),
    ("path MTU told", lambda half: number(half.path_mtu)),
)


def _of_tcp(show: Callable[[TcpHalf], str]) -> Show:
    return lambda half: "-" if half.tcp is None else show(half.tcp)


def _of_spread(which: Callable[[TcpHalf], Spread | None], show: Callable[[Spread], str]) -> Show:
    def told(half: Half) -> str:
        spread = None if half.tcp is None else which(half.tcp)
        return "-" if spread is None else show(spread)

    return told


def _between(show: Callable[[Spread], str]) -> Show:
    return lambda half: "-" if half.interarrival is None else show(half.interarrival)
