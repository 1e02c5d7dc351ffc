"""Static routes: shortest paths by number of links, ties by the order in which links are declared."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from .topology import LinkSpec, Topology


@dataclass(frozen=True)
class Hop:
    """One link of a route, left at its end `to`."""

    link: LinkSpec
    to: str


class Routes:
    """For every node, the link by which each host and router is reached."""

    def __init__(self, topology: Topology) -> None:
        self.forwards = {node.name: node.kind != "host" for node in topology.nodes}
        self.links: dict[str, list[LinkSpec]] = {node.name: [] for node in topology.nodes}
        for link in topology.links:
            for end in dict.fromkeys(link.ends):
                if end in self.links:
                    self.links[end].append(link)
        self.tables: dict[str, dict[str, str]] = {node.name: {} for node in topology.nodes}
        self._by_name = {link.name: link for link in topology.links}
        for node in topology.nodes:
            if node.kind != "switch":
                self._towards(node.name)

    def _towards(self, destination: str) -> None:
        """Breadth first from the destination; only switches and routers pass packets on."""
        distance = {destination: 0}
        waiting = deque([destination])
        while waiting:
            node = waiting.popleft()
            if node != destination and not self.forwards[node]:
                continue
            for link in self.links[node]:
                neighbour = link.other(node)
                if neighbour in self.links and neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    waiting.append(neighbour)
        for node, away in distance.items():
            for link in self.links[node] if away else ():
                neighbour = link.other(node)
                passes = neighbour == destination or self.forwards.get(neighbour, False)
                if passes and distance.get(neighbour, away) == away - 1:
                    self.tables[node][destination] = link.name
                    break

    def route(self, source: str, destination: str) -> list[Hop] | None:
        """The links from one node to another in order; none if there is no way."""
        hops: list[Hop] = []
        node = source
        while node != destination:
            name = self.tables.get(node, {}).get(destination)
            if name is None:
                return None
            link = self._by_name[name]
            node = link.other(node)
            hops.append(Hop(link, node))
        return hops
