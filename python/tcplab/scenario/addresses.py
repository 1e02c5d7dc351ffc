"""Addresses of both families, one subnet of each for each broadcast domain.

Links joined by switches share a subnet. Subnets are handed out in the order of their first link, from
10.0.0.0/24 upwards; one is a /24, or the smallest power of two that holds its interfaces. Interfaces are
numbered from .1 in the order of links, the first end before the second. A switch's ports have none.

The IPv6 subnet of 10.X.Y.0 is the /64 of fd00::/48 (unique local addresses, RFC 4193) with the number
256 X + Y, and the interface has the same number in it: 10.0.1.2/24 is fd00:0:0:1::2/64. A link whose MTU is
below IPv6's least has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address

from .topology import Topology

_ULA = 0xFD00 << 112
# RFC 8200 section 5.
LEAST_IPV6_MTU = 1280

Pair = tuple[str | None, str | None]
"""The first and the second end's, with prefix length; none: a switch's port."""


@dataclass(frozen=True)
class LinkAddresses:
    """The addresses of a link's two ends."""

    v4: Pair
    v6: Pair


class TooManyInterfaces(Exception):  # noqa: N818
    """The network does not fit into 10.0.0.0/8."""


def assign(topology: Topology) -> list[LinkAddresses]:
    """The addresses of each link."""
    switches = {node.name for node in topology.nodes if node.kind == "switch"}
    domain = _domains(topology, switches)
    members: dict[int, list[tuple[int, int]]] = {}
    for index, link in enumerate(topology.links):
        interfaces = members.setdefault(domain[index], [])
        interfaces += [(index, side) for side in (0, 1) if link.ends[side] not in switches]
    v4: list[list[str | None]] = [[None, None] for _ in topology.links]
    v6: list[list[str | None]] = [[None, None] for _ in topology.links]
    base = 0
    for interfaces in members.values():
        # Network and broadcast address are not for interfaces.
        block = max(256, 1 << (len(interfaces) + 1).bit_length())
        base = -(-base // block) * block
        if base + block > 1 << 24:
            raise TooManyInterfaces
        prefix = 33 - block.bit_length()
        for number, (index, side) in enumerate(interfaces, 1):
            host = base + number
            v4[index][side] = f"10.{host >> 16}.{host >> 8 & 255}.{host & 255}/{prefix}"
            if topology.links[index].mtu >= LEAST_IPV6_MTU:
                v6[index][side] = f"{IPv6Address(_ULA | (base >> 8) << 64 | number)}/64"
        base += block
    return [LinkAddresses((a, b), (c, d)) for (a, b), (c, d) in zip(v4, v6, strict=True)]


def _domains(topology: Topology, switches: set[str]) -> list[int]:
    """Per link, the number of the first link of its broadcast domain."""
    parent = list(range(len(topology.links)))

    def find(link: int) -> int:
        while parent[link] != link:
            parent[link] = parent[parent[link]]
            link = parent[link]
        return link

    at: dict[str, int] = {}
    for index, link in enumerate(topology.links):
        for end in link.ends:
            if end in switches:
                first = find(at.setdefault(end, index))
                second = find(index)
                parent[max(first, second)] = min(first, second)
    return [find(index) for index in range(len(topology.links))]
