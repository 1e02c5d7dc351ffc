"""Configuring interfaces over rtnetlink, many requests in one system call.

Written on `struct` alone, because the process that uses it must be up at once: importing pyroute2 takes as
long as a whole two-host network may take to come up (measured: 0.45 s). Sources: rtnetlink(7), netlink(7)
and the kernel's uapi headers named below.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address
from typing import Self

# linux/netlink.h
_REQUEST, _ACK, _REPLACE, _CREATE, _EXCL, _DUMP = 0x1, 0x4, 0x100, 0x400, 0x200, 0x300
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_CAPPED, _ACK_TLVS = 0x100, 0x200
# linux/rtnetlink.h
_NEWLINK, _GETLINK, _NEWADDR, _NEWROUTE, _NEWNEIGH, _NEWQDISC = 16, 18, 20, 24, 28, 36
_RT_TABLE_MAIN, _PROT_STATIC, _SCOPE_UNIVERSE, _SCOPE_LINK, _UNICAST = 254, 4, 0, 253, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC, _RTA_METRICS = 1, 4, 5, 7, 8
_RTAX_INITCWND, _RTAX_RTO_MIN, _RTAX_QUICKACK = 11, 13, 15
# linux/if_link.h, linux/if_addr.h, linux/veth.h
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_QDISC, _IFLA_MASTER = 1, 3, 4, 6, 10
_IFLA_TXQLEN, _IFLA_LINKINFO, _IFLA_NET_NS_PID, _IFLA_GSO_MAX_SEGS = 13, 18, 19, 40
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_BR_FORWARD_DELAY, _BR_STP_STATE, _BR_MCAST_SNOOPING = 1, 5, 23
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
# linux/pkt_sched.h
_TCA_KIND, _TCA_OPTIONS, _TC_H_ROOT = 1, 2, 0xFFFFFFFF
# linux/neighbour.h
_NDA_DST, _NDA_LLADDR, _NTF_MASTER, _NUD_PERMANENT, _NUD_NOARP = 1, 2, 0x4, 0x80, 0x40
_IFF_UP, _IFF_NOARP, _IFF_MULTICAST = 0x1, 0x80, 0x1000
_IFA_F_NODAD = 0x02
# Answers that the default receive buffer of a socket holds with a wide margin.
_AT_ONCE = 100


class NetlinkError(OSError):
    """The kernel refused a request."""

    def __init__(self, what: str, number: int, said: str) -> None:
        super().__init__(number, f"cannot {what}: {said or os.strerror(number)}")
        self.what = what


@dataclass(frozen=True)
class Request:
    """One request to the kernel, and what it does in words."""

    what: str
    kind: int
    flags: int
    body: bytes


def veth(name: str, mac: str, mtu: int, peer_process: int, peer_name: str, peer_mac: str) -> Request:
    """Make a cable between this namespace and that of a process."""
    peer = _link_header() + _name(peer_name) + _link_settings(peer_mac, mtu)
    peer += _attribute(_IFLA_NET_NS_PID, struct.pack("=I", peer_process))
    body = _link_header() + _name(name) + _link_settings(mac, mtu)
    body += _link_info("veth", _attribute(_VETH_INFO_PEER, peer))
    return Request(f"make the veth pair {name}-{peer_name}", _NEWLINK, _CREATE | _EXCL, body)


def bridge(name: str) -> Request:
    """Make a bridge that forwards at once: no spanning tree, no multicast snooping."""
    data = _attribute(_BR_FORWARD_DELAY, struct.pack("=I", 0))
    data += _attribute(_BR_STP_STATE, struct.pack("=I", 0))
    data += _attribute(_BR_MCAST_SNOOPING, struct.pack("=B", 0))
    body = _link_header() + _name(name) + _link_info("bridge", data)
    return Request(f"make the bridge {name}", _NEWLINK, _CREATE | _EXCL, body)


def silence(name: str, index: int) -> Request:
    """Let an interface take no part in multicast and resolve no addresses.

    Else IPv6 would report the groups of all routers and of solicited nodes (`dev_forward_change`,
    `addrconf_join_solict`). The neighbours an interface has are named.
    """
    flags, mask = _IFF_NOARP, _IFF_NOARP | _IFF_MULTICAST
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, mask)
    return Request(f"silence {name}", _NEWLINK, 0, body)


def one_by_one(name: str, index: int) -> Request:
    """Let TCP hand packets to an interface one by one.

    Without offloads it still makes bursts, which are cut behind the queue discipline (`sk_setup_caps` counts
    GSO among any device's abilities).
    """
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, 0)
    body += _attribute(_IFLA_GSO_MAX_SEGS, struct.pack("=I", 1))
    return Request(f"send packets one by one through {name}", _NEWLINK, 0, body)


def up(name: str, index: int, master: int | None = None, queue: int | None = None) -> Request:
    """Set an interface up, make it a port of a bridge, and let so many packets wait in it."""
    body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, _IFF_UP, _IFF_UP)
    if master is not None:
        body += _attribute(_IFLA_MASTER, struct.pack("=I", master))
    if queue is not None:
        body += _attribute(_IFLA_TXQLEN, struct.pack("=I", queue))
    return Request(f"set {name} up", _NEWLINK, 0, body)


def address(name: str, index: int, interface: IPv4Interface | IPv6Interface) -> Request:
    """Give an interface an address."""
    packed = interface.ip.packed
    flags = _IFA_F_NODAD if interface.version == 6 else 0
    family, bits = _family(packed), interface.network.prefixlen
    body = struct.pack("=BBBBi", family, bits, flags, _SCOPE_UNIVERSE, index)
    body += _attribute(_IFA_LOCAL, packed) + _attribute(_IFA_ADDRESS, packed)
    return Request(f"give {name} the address {interface}", _NEWADDR, _CREATE | _REPLACE, body)


@dataclass(frozen=True)
class RouteSettings:
    """What the kernel keeps by route, ip-route(8)."""

    initcwnd: int | None = None
    """Initial congestion window, segments."""
    rto_min: int | None = None
    """Least retransmission timeout, ms."""
    quickack: bool = False
    """Acknowledge every segment at once."""

    def encode(self) -> bytes:
        """As nested attribute; empty when nothing is set."""
        values = ((_RTAX_INITCWND, self.initcwnd), (_RTAX_RTO_MIN, self.rto_min))
        inner = b"".join(_attribute(key, struct.pack("=I", value)) for key, value in values if value)
        if self.quickack:
            inner += _attribute(_RTAX_QUICKACK, struct.pack("=I", 1))
        return _attribute(_RTA_METRICS, inner) if inner else b""


def route(
    destination: bytes, gateway: bytes | None, index: int, source: bytes | None, settings: RouteSettings
) -> Request:
    """Send packets to one address by an interface, through a gateway or directly."""
    scope = _SCOPE_UNIVERSE if gateway else _SCOPE_LINK
    family, bits = _family(destination), 8 * len(destination)
    body = struct.pack("=BBBBBBBBI", family, bits, 0, 0, _RT_TABLE_MAIN, _PROT_STATIC, scope, _UNICAST, 0)
    body += _attribute(_RTA_DST, destination) + _attribute(_RTA_OIF, struct.pack("=i", index))
    if gateway:
        body += _attribute(_RTA_GATEWAY, gateway)
    if source:
        body += _attribute(_RTA_PREFSRC, source)
    body += settings.encode()
    return Request(f"route {ip_address(destination)}", _NEWROUTE, _CREATE | _REPLACE, body)


def neighbour(host: bytes, mac: str, index: int) -> Request:
    """Know the MAC of a neighbour for good, so that nobody is ever asked for it."""
    body = struct.pack("=BxxxiHBB", _family(host), index, _NUD_PERMANENT, 0, _UNICAST)
    body += _attribute(_NDA_DST, host) + _attribute(_NDA_LLADDR, _mac(mac))
    return Request(f"name the neighbour {ip_address(host)}", _NEWNEIGH, _CREATE | _REPLACE, body)


def forwarding(mac: str, index: int) -> Request:
    """Tell a bridge behind which port a MAC is, so that no frame is flooded."""
    body = struct.pack("=BxxxiHBB", socket.AF_BRIDGE, index, _NUD_NOARP, _NTF_MASTER, 0)
    body += _attribute(_NDA_LLADDR, _mac(mac))
    return Request(f"place {mac} behind a port", _NEWNEIGH, _CREATE | _REPLACE, body)


def netem(name: str, index: int) -> Request:
    """Make netem an interface's queue discipline, one that changes nothing: to see whether it can be had."""
    # struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
    options = struct.pack("=6I", 0, 1000, 0, 0, 0, 0)
    body = struct.pack("=BxxxiIII", socket.AF_UNSPEC, index, 0, _TC_H_ROOT, 0)
    body += _attribute(_TCA_KIND, b"netem\0") + _attribute(_TCA_OPTIONS, options)
    return Request(f"shape {name} with netem", _NEWQDISC, _CREATE | _EXCL, body)


class Netlink:
    """A socket of the namespace this thread is in, wherever the thread goes afterwards."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
        )
        self._socket.setsockopt(_SOL_NETLINK, _CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _EXT_ACK, 1)
        self._socket.bind((0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def carry_out(self, requests: Sequence[Request]) -> None:
        """Have all requests done, in order; raises NetlinkError for the first that is refused."""
        for first in range(0, len(requests), _AT_ONCE):
            self._together(requests[first : first + _AT_ONCE])

    def qdiscs(self) -> dict[str, str]:
        """The queue discipline of each interface."""
        self._socket.send(struct.pack("=IHHII", 32, _GETLINK, _REQUEST | _DUMP, 0, 0) + _link_header())
        found: dict[str, str] = {}
        while True:
            data = self._socket.recv(1 << 18)
            at = 0
            while at + 16 <= len(data):
                length, kind = struct.unpack_from("=IH", data, at)
                if kind in (_NLMSG_DONE, _NLMSG_ERROR):
                    return found
                values = dict(_attributes(data[at + 32 : at + length]))
                name = values.get(_IFLA_IFNAME, b"").rstrip(b"\0").decode()
                found[name] = values.get(_IFLA_QDISC, b"").rstrip(b"\0").decode()
                at += (length + 3) & ~3

    def _together(self, requests: Sequence[Request]) -> None:
        text = bytearray()
        for number, one in enumerate(requests):
            flags = _REQUEST | _ACK | one.flags
            text += struct.pack("=IHHII", 16 + len(one.body), one.kind, flags, number, 0) + one.body
        self._socket.send(text)
        refused: NetlinkError | None = None
        waiting = len(requests)
        while waiting:
            data = self._socket.recv(1 << 16)
            at = 0
            while at + 16 <= len(data):
                length, kind, flags, number = struct.unpack_from("=IHHI", data, at)
                if kind == _NLMSG_ERROR:
                    waiting -= 1
                    (code,) = struct.unpack_from("=i", data, at + 16)
                    if code and refused is None:
                        said = _said(data[at : at + length], flags)
                        refused = NetlinkError(requests[number].what, -code, said)
                at += (length + 3) & ~3
        if refused:
            raise refused


def _said(message: bytes, flags: int) -> str:
    """The kernel's own words in an answer, if it has any (extended acknowledgment)."""
    if not flags & _ACK_TLVS:
        return ""
    # The answer repeats the request: its header alone when capped, else all of it.
    (length,) = struct.unpack_from("=I", message, 20)
    at = 20 + (16 if flags & _CAPPED else (length + 3) & ~3)
    return dict(_attributes(message[at:])).get(1, b"").rstrip(b"\0").decode(errors="replace")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + size]
        at += (size + 3) & ~3


def _attribute(kind: int, value: bytes) -> bytes:
    size = 4 + len(value)
    return struct.pack("=HH", size, kind) + value + b"\0" * (-size % 4)


def _link_header() -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 0, 0, 0)


def _name(name: str) -> bytes:
    return _attribute(_IFLA_IFNAME, name.encode() + b"\0")


def _link_settings(mac: str, mtu: int) -> bytes:
    return _attribute(_IFLA_ADDRESS, _mac(mac)) + _attribute(_IFLA_MTU, struct.pack("=I", mtu))


def _link_info(kind: str, data: bytes) -> bytes:
    inner = _attribute(_INFO_KIND, kind.encode()) + _attribute(_INFO_DATA, data)
    return _attribute(_IFLA_LINKINFO, inner)


def _family(packed: bytes) -> int:
    return socket.AF_INET6 if len(packed) == 16 else socket.AF_INET


def _mac(text: str) -> bytes:
    return bytes(int(part, 16) for part in text.split(":"))


def missing(problem: OSError) -> bool:
    """Whether the kernel lacks what was asked for."""
    return problem.errno in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENODEV)
