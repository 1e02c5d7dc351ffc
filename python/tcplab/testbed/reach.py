"""Do hosts reach each other? Echo requests (RFC 792) from inside a namespace."""

from __future__ import annotations

import os
import select
import socket
import struct
import time

_ECHO, _REPLY = 8, 0
# How often an address is asked, and for how long an answer is awaited, seconds.
_TRIES, _PATIENCE = 10, 0.2


def unreachable(addresses: list[str]) -> list[str]:
    """Those of the addresses that do not answer, asked from the network namespace this thread is in."""
    waiting = dict.fromkeys(addresses)
    identifier = os.getpid() & 0xFFFF
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.setblocking(False)
        for number in range(_TRIES):
            for address in waiting:
                try:
                    icmp.sendto(_request(identifier, number), (address, 0))
                except OSError:
                    # No route, or no room in the device: asked again below, and reported in the end.
                    continue
            deadline = time.monotonic() + _PATIENCE
            while waiting and (left := deadline - time.monotonic()) > 0:
                if not select.select([icmp], [], [], left)[0]:
                    break
                data, (sender, _) = icmp.recvfrom(2048)
                at = (data[0] & 15) * 4
                if data[at] == _REPLY and struct.unpack_from("!H", data, at + 4)[0] == identifier:
                    waiting.pop(sender, None)
            if not waiting:
                break
    return list(waiting)


def _request(identifier: int, number: int) -> bytes:
    packet = struct.pack("!BBHHH", _ECHO, 0, 0, identifier, number)
    total = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    return packet[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + packet[4:]
