"""How data were cut into packets, and what the headers cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tcplab.captures.flow import Flow
from tcplab.captures.listing import wrapped
from tcplab.captures.packets import RETRANSMISSIONS, Packets
from tcplab.quantities import plural, size

IP4_AND_TCP, IP6_AND_TCP = 40, 60
"""Header bytes that the MSS leaves out of the MTU (RFC 9293 section 3.7.1)."""
_MAX_MESSAGES, _MAX_PIECES = 12, 6


@dataclass(frozen=True)
class Message:
    """Messages of one size: data that one side sent before the other answered."""

    size: int
    count: int
    pieces: tuple[int, ...]
    """Payload of each packet, of the first message of this size."""
    packets: float
    """Packets a message, on average."""
    frame_bytes: float
    """Bytes on the link a message, on average."""

    @property
    def efficiency(self) -> float:
        """Payload's share of the bytes on the link."""
        return self.size / self.frame_bytes if self.frame_bytes else 0.0


@dataclass(frozen=True)
class Cut:
    """How one direction of a flow was cut into packets."""

    sender: str
    packets: int
    """Those with payload."""
    payload: int
    frame_bytes: int
    minimum: int
    median: int
    largest: int
    overhead: float
    """Header bytes a packet, on average."""
    mss: int | None
    """As the receiver announced it."""
    mtu: int | None
    """The MTU that its MSS implies, bytes of IP."""
    above: int
    """Packets longer than that MTU."""
    above_bytes: int
    largest_ip: int
    may_fragment: int
    fragments: int
    too_big: int
    path_mtu: int | None
    retransmitted: int
    messages: tuple[Message, ...]

    @property
    def efficiency(self) -> float:
        """Payload's share of the bytes on the link."""
        return self.payload / self.frame_bytes if self.frame_bytes else 0.0


def cuts(flow: Flow, packets: Packets) -> list[Cut]:
    """Both directions that carried payload, forward first."""
    messages = _messages(packets) if flow.protocol == "tcp" else ({}, {})
    found = []
    for direction, half in enumerate(flow.halves):
        sent = packets.sent(direction)
        data = sent.where(sent.payload > 0)
        if not len(data):
            continue
        peer = flow.halves[1 - direction].tcp
        mss = peer.mss if peer is not None else None
        headers = IP6_AND_TCP if ":" in half.address else IP4_AND_TCP
        mtu = None if mss is None else mss + headers
        # A datagram in fragments is a row of their lengths together.
        oversized = mtu is not None and half.largest_ip > mtu
        above = data.ip_len > mtu if oversized else np.zeros(len(data), dtype=bool)
        payload, frames = int(data.payload.sum()), int(data.frame_len.sum())
        found.append(
            Cut(
                sender=half.endpoint,
                packets=len(data),
                payload=payload,
                frame_bytes=frames,
                minimum=int(data.payload.min()),
                median=int(np.median(data.payload)),
                largest=int(data.payload.max()),
                overhead=(frames - payload) / len(data),
                mss=mss,
                mtu=mtu,
                above=int(above.sum()),
                above_bytes=int(data.ip_len[above].sum()),
                largest_ip=half.largest_ip,
                may_fragment=half.may_fragment,
                fragments=half.fragments,
                too_big=0 if half.tcp is None else half.tcp.too_big,
                path_mtu=None if half.tcp is None else half.tcp.path_mtu,
                retransmitted=int(np.isin(data.kind, RETRANSMISSIONS).sum()),
                messages=tuple(messages[direction].values()),
            )
        )
    return found


def _messages(packets: Packets) -> tuple[dict[int, Message], dict[int, Message]]:
    """Messages by direction and size: runs of new data of one side, ended by data of the other.

    Where one side alone sends, there is no telling where a message ends: none.
    """
    data = packets.where(packets.new_bytes > 0)
    empty: tuple[dict[int, Message], dict[int, Message]] = ({}, {})
    if not len(data) or len(np.unique(data.direction)) < 2:
        return empty
    turns = np.flatnonzero(np.diff(data.direction)) + 1
    starts = np.concatenate([[0], turns])
    sizes = np.add.reduceat(data.new_bytes.astype(np.int64), starts)
    frames = np.add.reduceat(data.frame_len.astype(np.int64), starts)
    counts = np.diff(np.append(starts, len(data)))
    directions = data.direction[starts]
    for direction, found in enumerate(empty):
        for length in np.unique(sizes[directions == direction]):
            alike = np.flatnonzero((directions == direction) & (sizes == length))
            first = alike[0]
            pieces = data.new_bytes[starts[first] : starts[first] + counts[first]]
            found[int(length)] = Message(
                size=int(length),
                count=len(alike),
                pieces=tuple(int(piece) for piece in pieces),
                packets=float(counts[alike].mean()),
                frame_bytes=float(frames[alike].mean()),
            )
    return empty


def lines(flow: Flow, found: list[Cut], width: int) -> Iterator[str]:
    """Payload sizes of a flow's packets, and the conclusions from them."""
    yield f"flow {flow.number}: {flow.protocol.upper()} {flow.name}"
    if not found:
        yield "  no packet carried payload"
    for cut in found:
        yield f"  sent by {cut.sender}: {size(cut.payload)} of payload in {plural(cut.packets, 'packet')}"
        yield from wrapped(
            "    ", f"payload per packet {cut.minimum} to {cut.largest} bytes, median {cut.median}", width
        )
        yield from wrapped(
            "    ",
            f"headers {cut.overhead:.1f} bytes per packet, so {100 * cut.efficiency:.1f} % of "
            f"{size(cut.frame_bytes)} on the link is payload",
            width,
        )
        for text in _verdicts(flow, cut):
            yield from wrapped("    ", text, width)
        yield from _message_lines(cut)


def _message_lines(cut: Cut) -> Iterator[str]:
    if not cut.messages:
        return
    yield ""
    yield f"    {'message':>8}  {'count':>6}  {'packets':>7}  {'on link':>8}  {'payload':>7}  cut into"
    for message in cut.messages[:_MAX_MESSAGES]:
        yield (
            f"    {message.size:>8}  {message.count:>6}  {message.packets:>7.4g}  "
            f"{message.frame_bytes:>8.0f}  {100 * message.efficiency:>5.1f} %  {pieces_words(message.pieces)}"
        )
    if len(cut.messages) > _MAX_MESSAGES:
        yield f"    and {len(cut.messages) - _MAX_MESSAGES} more sizes"


def pieces_words(pieces: tuple[int, ...]) -> str:
    """`1448 + 600`, `45 x 1448 + 376`."""
    said: list[str] = []
    place = 0
    while place < len(pieces):
        alike = 1
        while place + alike < len(pieces) and pieces[place + alike] == pieces[place]:
            alike += 1
        said.append(str(pieces[place]) if alike == 1 else f"{alike} x {pieces[place]}")
        place += alike
    if len(said) > _MAX_PIECES:
        return f"{' + '.join(said[:_MAX_PIECES])} + {len(said) - _MAX_PIECES} more"
    return " + ".join(said)


def _verdicts(flow: Flow, cut: Cut) -> Iterator[str]:
    if cut.mtu is not None:
        yield f"MSS {cut.mss}, so the receiver's MTU is {cut.mtu}; longest IP packet {cut.largest_ip}"
    else:
        yield f"longest IP packet {cut.largest_ip}"
    if cut.above and cut.mtu is not None:
        here = "the sender" if _near_sender(flow, cut) else "the receiver"
        off = "tso off gso off" if here == "the sender" else "gro off lro off"
        cause = (
            "captured above a network card that cuts them (TSO, GSO)"
            if here == "the sender"
            else "captured below one that has merged them (GRO, LRO)"
        )
        cut_into = cut.above_bytes / cut.mtu
        yield (
            f"{plural(cut.above, 'packet')} above the MTU, the longest {cut.largest_ip} bytes: they were not "
            f"on the wire so, but about {cut_into:.0f} packets were. Captured at {here}: {cause}. "
            f"To see wire packets: ethtool -K DEVICE {off}"
        )
    if cut.may_fragment:
        yield f"{plural(cut.may_fragment, 'packet')} without don't-fragment: routers may cut them"
    elif ":" not in flow.halves[0].address:
        yield "every packet forbids fragmentation (DF), so path MTU discovery is at work (RFC 1191)"
    if cut.fragments:
        yield f"{plural(cut.fragments, 'IP fragment')}: the fragments of a datagram count as one packet here"
    if cut.too_big:
        mtu = "" if cut.path_mtu is None else f" (MTU {cut.path_mtu})"
        yield f"{plural(cut.too_big, 'ICMP message')} said that a packet was too big for a link{mtu}"
    elif cut.mtu is not None and cut.largest and cut.largest_ip < cut.mtu and cut.packets > 20:
        yield f"no packet used the whole MTU: {cut.mtu - cut.largest_ip} bytes were left at least"


def _near_sender(flow: Flow, cut: Cut) -> bool:
    """Whether the capture was made at the side that sends these packets."""
    sends_most = cut.sender == flow.sender.endpoint
    return flow.near_receiver != sends_most


def to_json(flow: Flow, found: list[Cut]) -> dict[str, object]:
    """For a program."""
    from dataclasses import asdict

    return {
        "flow": flow.number,
        "name": flow.name,
        "directions": [
            {
                **asdict(cut),
                "efficiency": cut.efficiency,
                "messages": [{**asdict(m), "efficiency": m.efficiency} for m in cut.messages],
            }
            for cut in found
        ],
    }
