"""Routes and addresses of networks small enough to check by hand."""

from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, load


def plan(nodes: str, links: str) -> Any:
    text = f"tcplab: 1\nname: test\nnetwork:\n  nodes: [{nodes}]\n  links: [{links}]\n"
    return expand(load(text + "flows: [{name: bulk, kind: tcp, from: a, to: b}]\n"))


def routes(made: Any, node: str) -> dict[str, str]:
    found: dict[str, str] = next(n["routes"] for n in made["nodes"] if n["name"] == node)
    return found


ROUTERS = "{name: r, kind: router}, {name: s, kind: router}, {name: t, kind: router}"


def test_the_way_with_fewest_links_wins() -> None:
    made = plan(
        f"a, b, {ROUTERS}",
        "{ends: [a, r]}, {ends: [r, s]}, {ends: [s, t]}, {ends: [t, b]}, {name: short, ends: [r, t]}",
    )
    assert routes(made, "r")["b"] == "short"
    assert routes(made, "b") == {"a": "t-b", "r": "t-b", "s": "t-b", "t": "t-b"}


def test_of_equal_ways_the_one_declared_first_wins() -> None:
    made = plan(
        f"a, b, {ROUTERS}",
        "{ends: [a, r]}, {name: one, ends: [r, t]}, {ends: [r, s]}, {ends: [s, b]}, {ends: [t, b]}",
    )
    assert routes(made, "r")["b"] == "one"


def test_a_router_with_ecmp_uses_all_equal_ways() -> None:
    made = plan(
        "a, b, {name: r, kind: router, ecmp: on}, {name: s, kind: router}, {name: t, kind: router}",
        "{ends: [a, r]}, {name: x, ends: [r, t]}, {name: y, ends: [r, s]}, {ends: [s, b]}, {ends: [t, b]}",
    )
    shared = {node["name"]: node.get("multipath") for node in made["nodes"]}
    assert shared == {"a": None, "b": None, "r": {"b": ["x", "y"]}, "s": None, "t": None}
    assert routes(made, "r")["b"] == "x"


def test_the_largest_segment_fits_all_ways() -> None:
    made = plan(
        "a, b, {name: r, kind: router, ecmp: on}, {name: s, kind: router}, {name: t, kind: router}",
        "{ends: [a, r]}, {ends: [r, t]}, {ends: [r, s], mtu: 1000 B}, {ends: [s, b]}, {ends: [t, b]}",
    )
    assert made["flows"][0]["sender"]["mss"] == 960


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("{name: r, ecmp: on}", "`ecmp` is for routers, and `r` is a host"),
        ("{name: r, kind: switch, ecmp: on}", "`ecmp` is for routers, and `r` is a switch"),
        (
            "{name: r, kind: router, ecmp: on, routing: {ospf: {}}}",
            "the routing protocols of `r` choose its paths",
        ),
        (
            "{name: r, kind: router, ecmp: on, accelerate: {}}",
            "`ecmp` could lead connections past the accelerator of `r`",
        ),
        (
            "{name: r, kind: router, ecmp: on, cache: {}}",
            "`ecmp` of `r` could lead connections past the cache",
        ),
    ],
)
def test_ecmp_is_refused_where_it_cannot_be(nodes: str, message: str) -> None:
    with pytest.raises(ScenarioErrors) as refused:
        plan(f"a, b, {nodes}", "{ends: [a, r]}, {ends: [r, b]}, {ends: [a, b]}")
    assert message in str(refused.value)


def test_an_accelerator_is_for_routers_and_its_rules_name_hosts_and_ports() -> None:
    for node, message in (
        ("{name: r, accelerate: {}}", "`accelerate` is for routers, and `r` is a host"),
        ("{name: r, kind: router, accelerate: {hosts: [c]}}", "accelerate.hosts.c: unknown host `c`"),
        (
            "{name: r, kind: router, accelerate: {hosts: [r]}}",
            "hosts.r: `r` is a router, not a host",
        ),
        ("{name: r, kind: router, accelerate: {ports: [70000]}}", "`70000` must be at most 65535"),
        ("{name: r, kind: router, accelerate: {ports: []}}", "accelerate.ports"),
    ):
        with pytest.raises(ScenarioErrors) as refused:
            plan(f"a, b, {node}", "{ends: [a, r]}, {ends: [r, b]}")
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("flows", "message"),
    [
        ("{name: f, kind: ping, port: 80}", "flows.f.port: ping has no ports"),
        ("{name: f, kind: tcp, port: 65535, streams: 2}", "flows.f.port: 2 streams need ports up to 65536"),
        (
            "{name: f, kind: tcp, port: 79, streams: 2}, {name: g, kind: tcp, port: 80}",
            "flows.g.port: flow `f` has this port at `right`",
        ),
    ],
)
def test_each_stream_has_a_port_of_its_own(flows: str, message: str) -> None:
    with pytest.raises(ScenarioErrors) as refused:
        load(f"tcplab: 1\nname: x\nnetwork: {{path: {{rate: 1 Mbit/s, rtt: 10 ms}}}}\nflows: [{flows}]\n")
    assert message in str(refused.value)


def test_a_cache_is_for_routers_and_has_a_size() -> None:
    for node, message in (
        ("{name: r, kind: switch, cache: {}}", "`cache` is for routers, and `r` is a switch"),
        ("{name: r, kind: router, cache: {size: 10}}", "network.nodes.r.cache.size: `10` has no unit"),
        ("{name: r, kind: router, cache: {sise: 10 MB}}", "unknown key `sise`"),
    ):
        with pytest.raises(ScenarioErrors) as refused:
            plan(f"a, b, {node}", "{ends: [a, r]}, {ends: [r, b]}")
        assert message in str(refused.value)


def test_parallel_links_between_two_nodes_use_the_first() -> None:
    made = plan("a, b", "{name: one, ends: [a, b]}, {name: two, ends: [b, a]}")
    assert routes(made, "a") == {"b": "one"}
    assert routes(made, "b") == {"a": "one"}


def test_hosts_pass_nothing_on() -> None:
    made = plan(
        f"a, b, c, {ROUTERS}",
        "{ends: [a, c]}, {ends: [c, b]}, {ends: [a, r]}, {ends: [r, s]}, {ends: [s, t]}, {ends: [t, b]}",
    )
    assert routes(made, "a")["b"] == "a-r"


def test_switches_are_not_destinations_but_know_the_way() -> None:
    made = plan("a, b, {name: w, kind: switch}", "{ends: [a, w]}, {ends: [w, b]}")
    assert routes(made, "a") == {"b": "a-w"}
    assert routes(made, "w") == {"a": "a-w", "b": "w-b"}


def test_links_joined_by_switches_share_a_subnet() -> None:
    made = plan(
        "a, b, c, {name: w, kind: switch}, {name: v, kind: switch}, {name: r, kind: router}",
        "{ends: [a, w]}, {ends: [w, v]}, {ends: [v, r]}, {ends: [r, b]}, {ends: [c, w]}",
    )
    assert [link["addresses"] for link in made["links"]] == [
        ["10.0.0.1/24", None],
        [None, None],
        [None, "10.0.0.2/24"],
        ["10.0.1.1/24", "10.0.1.2/24"],
        ["10.0.0.3/24", None],
    ]


def test_the_ipv6_subnet_has_the_number_of_the_ipv4_subnet() -> None:
    made = plan(
        "a, b, {name: r, kind: router}, {name: w, kind: switch}",
        "{ends: [a, w]}, {ends: [w, r]}, {ends: [r, b]}",
    )
    assert [link["addresses6"] for link in made["links"]] == [
        ["fd00::1/64", None],
        [None, "fd00::2/64"],
        ["fd00:0:0:1::1/64", "fd00:0:0:1::2/64"],
    ]


def test_a_large_domain_gets_a_larger_subnet() -> None:
    hosts = [f"h{number}" for number in range(300)]
    links = ", ".join(f"{{ends: [{host}, w]}}" for host in hosts)
    made = plan(f"a, b, {{name: w, kind: switch}}, {', '.join(hosts)}", f"{{ends: [a, b]}}, {links}")
    assert made["links"][0]["addresses"] == ["10.0.0.1/24", "10.0.0.2/24"]
    assert made["links"][1]["addresses"] == ["10.0.2.1/23", None]
    assert made["links"][300]["addresses"] == ["10.0.3.44/23", None]
    assert made["links"][300]["addresses6"] == ["fd00:0:0:2::12c/64", None]
