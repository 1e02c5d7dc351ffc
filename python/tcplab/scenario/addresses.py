"""IPv4 addresses, one subnet of 10.0.0.0/8 for each broadcast domain.

Links joined by switches share a subnet. Subnets are handed out in the order of their first link, from
10.0.0.0/24 upwards; one is a /24, or the smallest power of two that holds its interfaces. Interfaces are
numbered from .1 in the order of links, the first end before the second. A switch's ports have none.
"""

from __future__ import annotations

from .topology import Topology


class TooManyInterfaces(Exception):  # noqa: N818
    """The network does not fit into 10.0.0.0/8."""


def assign(topology: Topology) -> list[tuple[str | None, str | None]]:
    """Per link, the address with prefix length of its first and second end."""
    switches = {node.name for node in topology.nodes if node.kind == "switch"}
    domain = _domains(topology, switches)
    members: dict[int, list[tuple[int, int]]] = {}
    for index, link in enumerate(topology.links):
        interfaces = members.setdefault(domain[index], [])
        interfaces += [(index, side) for side in (0, 1) if link.ends[side] not in switches]
    addresses: list[list[str | None]] = [[None, None] for _ in topology.links]
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
            addresses[index][side] = f"10.{host >> 16}.{host >> 8 & 255}.{host & 255}/{prefix}"
        base += block
    return [(first, second) for first, second in addresses]


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
