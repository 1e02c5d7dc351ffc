"""The way that packets take by the routers' tables, at any time of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Literal

import polars as pl

from tcplab.plan.types import Flow, Link, Node, Plan

Network = IPv4Network | IPv6Network
_Key = Literal["addresses", "addresses6"]
_KEYS: tuple[_Key, ...] = ("addresses", "addresses6")

# Of equal-cost paths no more than this are distinguished.
_MAX = 4


@dataclass
class Forwarding:
    """The tables of one repetition: routers as their table `routes` has them, other nodes as planned."""

    plan: Plan
    routes: pl.DataFrame
    """The table `routes`, by time."""
    _links: dict[str, list[Link]] = field(init=False)
    """Of each node, in the order of its interfaces."""
    _nodes: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        self._nodes = {node["name"]: node for node in self.plan["nodes"]}
        self._links = {name: [] for name in self._nodes}
        for link in self.plan["links"]:
            for end in link["ends"]:
                self._links[end].append(link)

    def changes(self) -> list[int]:
        """When any table changed."""
        return sorted(set(self.routes.filter(pl.col("time") > 0)["time"].to_list()))

    def path(self, flow: Flow, time: int) -> str:
        """The nodes between a flow's ends at a time, `r1 r2 r3`.

        Paths of equal cost are joined by `or`; a path that ends early says where.
        """
        key: _Key = "addresses6" if flow.get("ip") == 6 else "addresses"
        address = self._address(flow["to"], key)
        if address is None:
            return ""
        tables = self._tables(time)
        found: list[list[str]] = []
        waiting = [[flow["from"]]]
        while waiting and len(found) < _MAX:
            path = waiting.pop(0)
            if path[-1] == flow["to"]:
                found.append(path[1:-1])
            elif path[-1] in path[:-1]:
                found.append([*path[1:-1], f"loop at {path[-1]}"])
            else:
                onward = self._next(path[-1], flow["to"], address, tables)
                waiting += [[*path, node] for node in onward]
                if not onward:
                    found.append([*path[1:], "no route"])
        return " or ".join(dict.fromkeys(" ".join(path) for path in found))

    def _address(self, node: str, key: _Key) -> str | None:
        for link in self._links[node]:
            address = _own(link, key, node)
            if address is not None:
                return address.split("/")[0]
        return None

    def _tables(self, time: int) -> dict[str, dict[Network, list[str]]]:
        """Of each router: networks with the interfaces that lead there."""
        rows = self.routes.filter(pl.col("time") <= time)
        tables: dict[str, dict[Network, list[str]]] = {}
        for node, prefix, hops, protocol in rows.select(
            "node", "prefix", "next_hops", "protocol"
        ).iter_rows():
            table = tables.setdefault(node, {})
            network = ip_network(prefix)
            if network.is_link_local:
                continue
            if hops is None:
                table.pop(network, None)
            elif protocol == "kernel" or network not in self._connected(node):
                # Linux prefers its own network, of metric 0, even where its interface has no carrier.
                table[network] = [hop.split()[-1] for hop in hops.split(", ")]
        return tables

    def _connected(self, node: str) -> set[Network]:
        own = [address for link in self._links[node] for key in _KEYS if (address := _own(link, key, node))]
        return {ip_network(address, strict=False) for address in own}

    def _next(
        self, node: str, to: str, address: str, tables: Mapping[str, Mapping[Network, list[str]]]
    ) -> list[str]:
        links = self._links[node]
        if node not in tables:
            name = self._nodes[node]["routes"].get(to)
            return [_far(link, node) for link in links if link["name"] == name]
        target = ip_address(address)
        fitting = [network for network in tables[node] if target in network]
        if not fitting:
            return []
        best = max(fitting, key=lambda network: network.prefixlen)
        numbers = [int(name.removeprefix("eth")) for name in tables[node][best] if name.startswith("eth")]
        return [_far(links[number], node) for number in numbers if number < len(links)]


def _own(link: Link, key: _Key, node: str) -> str | None:
    """A node's address at a link, with the prefix length."""
    addresses = link.get(key)
    return addresses[link["ends"].index(node)] if addresses else None


def _far(link: Link, node: str) -> str:
    first, second = link["ends"]
    return str(second if first == node else first)
