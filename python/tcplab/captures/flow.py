"""A flow of a capture: a TCP connection, or the datagrams between two ports. Times are ns, sizes bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

FORWARD, BACKWARD = 0, 1


@dataclass(frozen=True)
class Spread:
    """How durations are spread, ns. Quantiles of more than 128 values are within 0.8 %."""

    count: int
    min: int
    mean: float
    p50: int
    p95: int
    p99: int
    max: int


@dataclass(frozen=True)
class TcpHalf:
    """One side of a TCP connection: its data, and its options and acknowledgments."""

    data_packets: int
    unique_bytes: int
    acked_bytes: int | None
    missed_bytes: int
    retransmissions: int
    fast: int
    timeout: int
    probe: int
    unknown: int
    timeouts: int
    """How often the retransmission timer ran out; `timeout` counts the packets retransmitted for it."""
    retransmitted_segments: int
    retransmitted_bytes: int
    spurious: int
    out_of_order: int
    duplicates: int
    keep_alives: int
    duplicate_acks: int
    sacks: int
    dsacks: int
    zero_windows: int
    zero_window_time: int
    out_of_window: int
    ect0: int
    ect1: int
    ce: int
    ece: int
    cwr: int
    largest_payload: int
    mss: int | None
    window_scale: int | None
    sack_permitted: bool
    timestamps: bool
    syn: bool
    fin: bool
    rst: bool
    initial_seq: int
    window_min: int | None
    window_max: int | None
    outstanding_max: int
    rtt: Spread | None
    rtt_timestamps: Spread | None
    too_big: int
    path_mtu: int | None


@dataclass(frozen=True)
class Half:
    """One direction of a flow."""

    address: str
    port: int
    packets: int
    frame_bytes: int
    ip_bytes: int
    payload_bytes: int
    fragments: int
    may_fragment: int
    largest_ip: int
    first: int | None
    last: int | None
    goodput: float | None
    """Payload delivered per second, bit/s."""
    interarrival: Spread | None
    tcp: TcpHalf | None

    @property
    def endpoint(self) -> str:
        """Address and port."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True)
class Flow:
    """A flow; its forward half is that of the side that began it."""

    number: int
    first_packet: int
    protocol: str
    """tcp or udp"""
    interface: int
    first: int
    """Its first packet, ns since 1970."""
    last: int
    end: str
    handshake_rtt: int | None
    handshake_server: int | None
    handshake_client: int | None
    ecn_negotiated: bool
    accecn_negotiated: bool
    halves: tuple[Half, Half]

    @property
    def main(self) -> int:
        """The direction that carried more payload."""
        forward, backward = self.halves
        return BACKWARD if backward.payload_bytes > forward.payload_bytes else FORWARD

    @property
    def sender(self) -> Half:
        """The side that sent more payload."""
        return self.halves[self.main]

    @property
    def receiver(self) -> Half:
        """The other side."""
        return self.halves[1 - self.main]

    @property
    def near_receiver(self) -> bool:
        """Whether it was captured nearer to the side that receives the data than to its sender.

        Then its RTT is only that from the capturing point to the receiver and back.
        """
        server, client = self.handshake_server, self.handshake_client
        if server is None or client is None:
            return False
        to_receiver, to_sender = (server, client) if self.main == FORWARD else (client, server)
        return to_receiver < to_sender

    @property
    def duration(self) -> int:
        """From its first to its last packet, ns."""
        return max(self.last - self.first, 0)

    @property
    def packets(self) -> int:
        """Of both directions."""
        return sum(half.packets for half in self.halves)

    @property
    def frame_bytes(self) -> int:
        """Of both directions, on the link."""
        return sum(half.frame_bytes for half in self.halves)

    @property
    def name(self) -> str:
        """Both ends, the one that began it first; the arrow shows where most payload went."""
        forward, backward = self.halves
        arrow = "->" if self.main == FORWARD else "<-"
        return f"{forward.endpoint} {arrow} {backward.endpoint}"


def flow_of(data: Mapping[str, Any]) -> Flow:
    """A flow from what the core says."""
    forward, backward = (_half(half) for half in data["halves"])
    return Flow(**{**_known(Flow, data), "halves": (forward, backward)})


def _half(data: Mapping[str, Any]) -> Half:
    tcp = data["tcp"]
    return Half(
        **{
            **_known(Half, data),
            "interarrival": _spread(data["interarrival"]),
            "tcp": None if tcp is None else _tcp_half(tcp),
        }
    )


def _tcp_half(data: Mapping[str, Any]) -> TcpHalf:
    spreads = {name: _spread(data[name]) for name in ("rtt", "rtt_timestamps")}
    return TcpHalf(**{**_known(TcpHalf, data), **spreads})


def _spread(data: Mapping[str, Any] | None) -> Spread | None:
    return None if data is None else Spread(**data)


def _known(kind: type, data: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: data[field.name] for field in fields(kind)}
