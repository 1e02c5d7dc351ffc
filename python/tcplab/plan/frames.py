"""Payload of a full packet, as a share of the bytes that a link's rate counts."""

from __future__ import annotations

from tcplab.plan.types import Direction, Flow

_ETHERNET = 14
_IP = {4: 20, 6: 40}
_UDP = 8
_TCP = 20
# RFC 7323, appendix A: the option takes 12 bytes of each segment.
_TIMESTAMPS = 12
# An ATM cell and what it carries (ITU-T I.361).
_CELL, _CELL_PAYLOAD = 53, 48


def payload_share(flow: Flow, direction: Direction) -> float:
    """Payload of a full packet over the bytes that the link direction's rate counts, 0 to 1.

    These are the frame's and those of its framing, or the IP packet's where a delivery trace is the rate.
    What else a shared medium takes for an access is not included.
    """
    payload = flow.get("payload")
    if payload is not None:
        packet = payload + _UDP
    else:
        ends = flow.get("sender") or {}, flow.get("receiver") or {}
        packet = min(int(end.get("mss", 1460)) for end in ends) + _TCP
        payload = packet - _TCP - _TIMESTAMPS * all(end.get("timestamps", True) for end in ends)
    packet += _IP[flow.get("ip", 4)]
    return payload / (packet if direction.get("trace") else _on_wire(packet + _ETHERNET, direction))


def _on_wire(frame: int, direction: Direction) -> int:
    overhead = direction.get("overhead") or {}
    length = max(frame + int(overhead.get("bytes", 0)), int(overhead.get("minimum", 0)))
    return -(-length // _CELL_PAYLOAD) * _CELL if overhead.get("atm") else length
