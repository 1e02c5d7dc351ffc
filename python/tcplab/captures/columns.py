"""The columns of the flow table, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcplab.captures.flow import Flow, Spread, TcpHalf
from tcplab.captures.flows import Flows
from tcplab.quantities import rate, seconds, size

if TYPE_CHECKING:
    import polars as pl

Value = float | int | str | None


@dataclass(frozen=True)
class Column:
    """One column; `value` sorts, `text` is shown."""

    key: str
    title: str
    about: str
    value: Callable[[Flow], Value]
    show: Callable[[Flow], str]
    rank: int
    """The lower, the longer it stays when a terminal is narrow."""
    by: str = ""
    """The columns of the data frame that `value` is made of: `sender:goodput`; empty: none of them alone."""
    left: bool = False


def _count(value: Callable[[TcpHalf], int]) -> Callable[[Flow], int | None]:
    def count(flow: Flow) -> int | None:
        return None if flow.sender.tcp is None else value(flow.sender.tcp)

    return count


def _answered(value: Callable[[TcpHalf], int]) -> Callable[[Flow], int | None]:
    """Of what the side that receives the data does about it."""

    def count(flow: Flow) -> int | None:
        return None if flow.receiver.tcp is None else value(flow.receiver.tcp)

    return count


def spread_of(flow: Flow) -> Spread | None:
    """The RTT of the data's sender."""
    return None if flow.sender.tcp is None else flow.sender.tcp.rtt


def _rtt(value: Callable[[Spread], float]) -> Callable[[Flow], float | None]:
    def rtt(flow: Flow) -> float | None:
        spread = spread_of(flow)
        return None if spread is None else value(spread)

    return rtt


def number(value: Value) -> str:
    """A count; a dash where there is none."""
    return "-" if value is None else str(value)


def time(value: float | None) -> str:
    """A time in ns."""
    return "-" if value is None else seconds(value / 1e9)


def _goodput(flow: Flow) -> float | None:
    return flow.sender.goodput


def options(flow: Flow) -> str:
    """The options that both sides negotiated."""
    halves = [half.tcp for half in flow.halves if half.tcp is not None and half.tcp.syn]
    if not halves:
        return "-"
    said = [
        name
        for name, has in (
            ("SACK", all(half.sack_permitted for half in halves)),
            ("TS", all(half.timestamps for half in halves)),
            ("WS", all(half.window_scale is not None for half in halves)),
            ("ECN", flow.ecn_negotiated and not flow.accecn_negotiated),
            ("AccECN", flow.accecn_negotiated),
        )
        if has
    ]
    return " ".join(said) or "none"


def pair(flow: Flow, value: Callable[[TcpHalf], int | None]) -> str:
    """A value of both sides, once if they agree."""
    both = [number(value(half.tcp)) for half in flow.halves if half.tcp is not None]
    return "/".join(dict.fromkeys(both)) if both else "-"


def _counted(
    key: str, title: str, about: str, rank: int, by: str, value: Callable[[Flow], int | None]
) -> Column:
    return Column(key, title, about, value, lambda flow: number(value(flow)), rank, by)


def _timed(
    key: str, title: str, about: str, rank: int, by: str, value: Callable[[Flow], float | None]
) -> Column:
    return Column(key, title, about, value, lambda flow: time(value(flow)), rank, by)


COLUMNS: tuple[Column, ...] = (
    _counted("flow", "#", "number of the flow, by its first packet", 0, "flow", lambda f: f.number),
    Column(
        "name",
        "flow",
        "who began it, and where most payload went",
        lambda f: f.name,
        lambda f: f.name,
        1,
        left=True,
    ),
    Column("protocol", "proto", "tcp or udp", lambda f: f.protocol, lambda f: f.protocol, 9, left=True),
    _timed("duration", "time", "from the first to the last packet", 5, "duration", lambda f: f.duration),
    _counted("packets", "packets", "of both directions", 7, "both:packets", lambda f: f.packets),
    Column(
        "bytes",
        "bytes",
        "on the link, of both directions",
        lambda f: f.frame_bytes,
        lambda f: size(f.frame_bytes),
        6,
        "both:frame_bytes",
    ),
    Column(
        "goodput",
        "goodput",
        "payload delivered per second in the main direction",
        _goodput,
        lambda f: "-" if f.sender.goodput is None else rate(f.sender.goodput),
        2,
        "sender:goodput",
    ),
    _counted(
        "retransmissions",
        "retr",
        "packets retransmitted",
        3,
        "sender:retransmissions",
        _count(lambda half: half.retransmissions),
    ),
    _counted(
        "fast",
        "fast",
        "retransmitted after duplicate ACKs or SACKs",
        12,
        "sender:fast",
        _count(lambda half: half.fast),
    ),
    _counted(
        "rto", "rto", "retransmitted after a timeout", 13, "sender:timeout", _count(lambda half: half.timeout)
    ),
    _counted(
        "tlp",
        "tlp",
        "tail loss probes",
        14,
        "sender:probe",
        _count(lambda half: half.probe),
    ),
    _counted(
        "spurious",
        "spur",
        "spurious retransmissions, as a D-SACK showed",
        15,
        "sender:spurious",
        _count(lambda half: half.spurious),
    ),
    _counted(
        "ooo",
        "ooo",
        "out of order, sent once",
        16,
        "sender:out_of_order",
        _count(lambda half: half.out_of_order),
    ),
    _counted(
        "dupacks",
        "dupack",
        "duplicate ACKs of the receiver",
        17,
        "receiver:duplicate_acks",
        _answered(lambda half: half.duplicate_acks),
    ),
    _counted(
        "zero",
        "zwin",
        "segments with a window of 0, of the receiver",
        18,
        "receiver:zero_windows",
        _answered(lambda half: half.zero_windows),
    ),
    _timed(
        "rtt",
        "rtt p50",
        "median RTT of the data's sender",
        4,
        "sender:rtt_p50",
        _rtt(lambda spread: spread.p50),
    ),
    _timed("rtt_min", "min", "minimum RTT", 10, "sender:rtt_min", _rtt(lambda spread: spread.min)),
    _timed("rtt_mean", "mean", "mean RTT", 19, "sender:rtt_mean", _rtt(lambda spread: spread.mean)),
    _timed(
        "rtt_p95", "p95", "95th percentile of the RTT", 11, "sender:rtt_p95", _rtt(lambda spread: spread.p95)
    ),
    _timed(
        "rtt_p99", "p99", "99th percentile of the RTT", 20, "sender:rtt_p99", _rtt(lambda spread: spread.p99)
    ),
    _timed("handshake", "hs rtt", "RTT of the handshake", 21, "handshake_rtt", lambda f: f.handshake_rtt),
    Column(
        "mss",
        "mss",
        "maximum segment size announced",
        lambda f: pair(f, lambda h: h.mss),
        lambda f: pair(f, lambda h: h.mss),
        22,
    ),
    Column(
        "wscale",
        "wscale",
        "window scale of both sides",
        lambda f: pair(f, lambda h: h.window_scale),
        lambda f: pair(f, lambda h: h.window_scale),
        23,
    ),
    _counted(
        "ce",
        "ce",
        "packets marked CE (congestion experienced)",
        24,
        "sender:ce",
        _count(lambda half: half.ce),
    ),
    Column("options", "options", "options both agreed on", options, options, 25, left=True),
    Column("end", "end", "how it ended", lambda f: f.end, lambda f: f.end, 8, left=True),
)

GAP = 2


def widths(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """Characters each column takes."""
    return [
        max([len(column.title), *(len(row[index]) for row in rows)]) for index, column in enumerate(columns)
    ]


def chosen(flows: Sequence[Flow], width: int) -> list[Column]:
    """The columns that fit into `width` characters, the most important first; 0: all of them.

    Columns that say nothing about any of the flows make room for those that do.
    """
    telling = [
        column
        for column in COLUMNS
        if column.rank < 6 or any(column.show(flow) not in ("-", "0") for flow in flows)
    ]
    telling = [
        column for column in telling if column.key != "protocol" or len({f.protocol for f in flows}) > 1
    ]
    if not width:
        return telling
    taken = dict(
        zip(
            (column.key for column in telling),
            widths(telling, [[column.show(flow) for column in telling] for flow in flows]),
            strict=True,
        )
    )
    kept: set[str] = set()
    used = -GAP
    for column in sorted(telling, key=lambda column: column.rank):
        if used + GAP + taken[column.key] > width and column.rank > 2:
            break
        used += GAP + taken[column.key]
        kept.add(column.key)
    return [column for column in telling if column.key in kept]


def named(key: str) -> Column | None:
    """The column that `--sort` calls so; none has that name: None."""
    return next((column for column in COLUMNS if column.key == key), None)


def ordered(flows: Flows, column: Column) -> Flows:
    """Flows with the greatest first; names, numbers of flows and text from A on."""
    if column.by:
        return flows.picked(_order(flows.frame(), column))
    values = [column.value(flow) for flow in flows]
    known = [index for index, value in enumerate(values) if value is not None]
    unknown = [index for index, value in enumerate(values) if value is None]
    return flows.picked(sorted(known, key=lambda index: str(values[index])) + unknown)


def _order(frame: pl.DataFrame, column: Column) -> list[int]:
    """Indexes of the rows by the frame's own columns: a million flows need not be made one by one."""
    import polars as pl

    side, _, name = column.by.rpartition(":")
    forward, backward = pl.col(f"forward_{name}"), pl.col(f"backward_{name}")
    mainly_forward = pl.col("main") == "forward"
    value = {
        "": pl.col(name),
        "both": forward + backward,
        "sender": pl.when(mainly_forward).then(forward).otherwise(backward),
        "receiver": pl.when(mainly_forward).then(backward).otherwise(forward),
    }[side]
    descending = column.key != "flow"
    order = pl.arg_sort_by(value, descending=descending, nulls_last=True, maintain_order=True)
    return frame.select(order).to_series().to_list() if len(frame) else []
