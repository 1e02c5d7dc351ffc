"""Paths from the table of routes: what a packet would meet at that time."""

from typing import Any

import polars as pl

from tcplab.analysis.forwarding import Forwarding

FLOW: Any = {"name": "f", "from": "a", "to": "b", "ip": 4}
# a - r1 - r2 - r3 - b, and r1 - r3.
ENDS = [("a", "r1"), ("r1", "r2"), ("r2", "r3"), ("r3", "b"), ("r1", "r3")]


def plan() -> Any:
    links = [
        {"name": "-".join(ends), "ends": list(ends), "addresses": [f"10.0.{n}.1/24", f"10.0.{n}.2/24"]}
        for n, ends in enumerate(ENDS)
    ]
    nodes = [{"name": name, "routes": {"b": "a-r1"}} for name in ("a", "r1", "r2", "r3", "b")]
    return {"nodes": nodes, "links": links}


def table(*rows: tuple[int, str, str, str | None]) -> pl.DataFrame:
    connected = [
        (0, node, f"10.0.{n}.0/24", f"eth{[one for one in ENDS if node in one].index(ends)}", "kernel")
        for n, ends in enumerate(ENDS)
        for node in ends
        if node.startswith("r")
    ]
    columns = ["time", "node", "prefix", "next_hops", "protocol"]
    return pl.DataFrame([*connected, *((*row, "ospf") for row in rows)], schema=columns, orient="row")


BY_R2 = (0, "r1", "10.0.3.0/24", "10.0.1.2 eth1")
AT_R2 = (0, "r2", "10.0.3.0/24", "10.0.2.2 eth1")


def test_a_path_follows_the_tables_of_its_time() -> None:
    found = Forwarding(plan(), table(BY_R2, AT_R2, (7, "r1", "10.0.3.0/24", "10.0.4.2 eth2")))
    assert found.path(FLOW, 6) == "r1 r2 r3"
    assert found.path(FLOW, 7) == "r1 r3"
    assert found.changes() == [7]


def test_equal_paths_are_all_named() -> None:
    found = Forwarding(plan(), table((0, "r1", "10.0.3.0/24", "10.0.1.2 eth1, 10.0.4.2 eth2"), AT_R2))
    assert found.path(FLOW, 0) == "r1 r3 or r1 r2 r3"


def test_a_path_that_ends_early_says_where() -> None:
    lost = Forwarding(plan(), table(BY_R2, AT_R2, (5, "r2", "10.0.3.0/24", None)))
    assert lost.path(FLOW, 5) == "r1 r2 no route"
    back = Forwarding(plan(), table(BY_R2, (0, "r2", "10.0.3.0/24", "10.0.1.1 eth0")))
    assert back.path(FLOW, 0) == "r1 r2 loop at r1"


def test_the_longest_prefix_counts_and_the_own_network_before_a_protocol_s() -> None:
    wide = Forwarding(plan(), table((0, "r1", "10.0.0.0/8", "10.0.1.2 eth1"), AT_R2))
    assert wide.path(FLOW, 0) == "r1 r2 r3"
    # r3 has b's network at its second interface.
    own = Forwarding(plan(), table(BY_R2, AT_R2, (0, "r3", "10.0.3.0/24", "10.0.4.1 eth2")))
    assert own.path(FLOW, 0) == "r1 r2 r3"
