"""Do hosts reach each other? Echo requests (RFC 792, RFC 4443) from inside a namespace."""

from __future__ import annotations

import os
import select
import socket
import struct
import time

# By address family: the protocol, and the types of a request and of a reply.
_ICMP = {socket.AF_INET: (socket.IPPROTO_ICMP, 8, 0), socket.AF_INET6: (socket.IPPROTO_ICMPV6, 128, 129)}
# How often an address is asked, and for how long an answer is awaited, seconds.
_TRIES, _PATIENCE = 10, 0.2


def unreachable(addresses: list[str]) -> list[str]:
    """Those of the addresses that do not answer, asked from the network namespace this thread is in."""
    families = {socket.AF_INET: [one for one in addresses if ":" not in one]}
    families[socket.AF_INET6] = [one for one in addresses if ":" in one]
    return [one for family, some in families.items() if some for one in _silent(family, some)]


def _silent(family: socket.AddressFamily, addresses: list[str]) -> list[str]:
    waiting = dict.fromkeys(addresses)
    identifier = os.getpid() & 0xFFFF
    protocol, request, reply = _ICMP[family]
    with socket.socket(family, socket.SOCK_RAW, protocol) as icmp:
        icmp.setblocking(False)
        for number in range(_TRIES):
            for address in waiting:
                try:
                    icmp.sendto(_request(request, identifier, number), (address, 0))
                except OSError:
                    # No route, or no room in the device: asked again below, and reported in the end.
                    continue
            deadline = time.monotonic() + _PATIENCE
            while waiting and (left := deadline - time.monotonic()) > 0:
                if not select.select([icmp], [], [], left)[0]:
                    break
                data, sender = icmp.recvfrom(2048)
                # Only IPv4's raw sockets show the IP header.
                at = (data[0] & 15) * 4 if family == socket.AF_INET else 0
                if data[at] == reply and struct.unpack_from("!H", data, at + 4)[0] == identifier:
                    waiting.pop(sender[0], None)
            if not waiting:
                break
    return list(waiting)


def _request(kind: int, identifier: int, number: int) -> bytes:
    # The kernel completes the checksum of ICMPv6.
    packet = struct.pack("!BBHHH", kind, 0, 0, identifier, number)
    total = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    return packet[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + packet[4:]
