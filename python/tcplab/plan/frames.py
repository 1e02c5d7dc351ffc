"""Payload of a full packet, as a share of the bytes that a link's rate counts."""

from __future__ import annotations

import json

from tcplab import _core
from tcplab.plan.types import Direction, Flow

_ETHERNET = 14
_IP = {4: 20, 6: 40}
_UDP = 8
_TCP = 20
# RFC 7323, appendix A: the option takes 12 bytes of each segment.
_TIMESTAMPS = 12


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
    if direction.get("trace"):
        return payload / packet
    overhead = direction.get("overhead")
    frame = packet + _ETHERNET
    return payload / (_core.len_on_wire(json.dumps(overhead), frame) if overhead else frame)
