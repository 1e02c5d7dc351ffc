"""Contents of each namespace follow from the plan alone."""

from __future__ import annotations

from typing import Any

from tcplab.scenario import expand, from_data
from tcplab.testbed.layout import Namespace, lay_out


def plan(network: Any, flow: Any | None = None, **more: Any) -> Any:
    flows = [{"name": "f", "kind": "tcp", **(flow or {})}]
    return expand(from_data({"tcplab": 1, "name": "t", "network": network, "flows": flows, **more}))


def space(plan_: Any, node: str) -> Namespace:
    return next(one for one in lay_out(plan_).namespaces if one.node == node)


CHAIN = {
    "nodes": ["a", {"name": "r", "kind": "router"}, "b"],
    "links": [{"ends": ["a", "r"]}, {"ends": ["r", "b"], "delay": "5 ms"}],
}
TREE = {
    "nodes": ["a", "b", "c", {"name": "s1", "kind": "switch"}, {"name": "s2", "kind": "switch"}],
    "links": [{"ends": ["a", "s1"]}, {"ends": ["s1", "s2"]}, {"ends": ["s2", "b"]}, {"ends": ["s2", "c"]}],
}
AB = {"from": "a", "to": "b"}


def test_only_links_that_do_something_are_emulated() -> None:
    wires = lay_out(plan(CHAIN, AB)).wires
    assert [(wire.name, wire.emulated) for wire in wires] == [("a-r", False), ("r-b", True)]


def test_a_link_that_is_down_or_will_be_is_not_a_cable() -> None:
    down = plan({"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], "up": "off"}]}, AB)
    later = plan({"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], "at": {"1 s": {"up": "off"}}}]}, AB)
    assert lay_out(down).wires[0].emulated
    assert lay_out(later).wires[0].emulated


def test_recording_packets_takes_the_emulator_for_every_link() -> None:
    wires = lay_out(plan(CHAIN, AB, sample={"packets": "on"})).wires
    assert all(wire.emulated for wire in wires)


def test_a_capture_on_the_wire_takes_the_emulator_for_every_link() -> None:
    wires = lay_out(plan(CHAIN, AB, capture={"what": "headers", "at": "wire"})).wires
    assert all(wire.emulated for wire in wires)


def test_segments_leave_one_by_one_where_both_offloads_are_off() -> None:
    """TCP makes bursts whatever the device can; only the interface's `gso_max_segs` stops it."""

    def singly(**settings: str) -> list[bool]:
        laid = lay_out(plan({"path": {"rate": "10 Mbit/s", "rtt": "10 ms", "left": settings}}))
        return [one.singly for one in laid.namespaces[0].interfaces]

    assert singly() == [False]
    assert singly(tso="off") == [False]
    assert singly(tso="off", gso="off") == [True]


def test_the_way_through_a_router_names_it_as_gateway() -> None:
    routes = {route.to: route.gateway for route in space(plan(CHAIN, AB), "a").routes}
    four = {"10.0.0.2/32": None, "0.0.0.0/0": "10.0.0.2"}
    six = {"fd00::2/128": None, "::/0": "fd00::2"}
    assert routes == four | six


def test_a_router_with_ecmp_has_routes_with_several_gateways() -> None:
    network = {
        "nodes": ["a", "b", {"name": "r", "kind": "router", "ecmp": "on"}]
        + [{"name": name, "kind": "router"} for name in "st"],
        "links": [{"ends": ends} for ends in (["a", "r"], ["r", "s"], ["r", "t"], ["s", "b"], ["t", "b"])],
    }
    found = space(plan(network, AB), "r")
    shared = {route.to: (route.gateway, route.others) for route in found.routes if route.others}
    via = ("10.0.1.2", [["10.0.2.2", "eth2"]]), ("fd00:0:0:1::2", [["fd00:0:0:2::2", "eth2"]])
    four, six = (["10.0.3.2/32", "10.0.4.2/32"], ["fd00:0:0:3::2/128", "fd00:0:0:4::2/128"])
    assert shared == dict.fromkeys(four, via[0]) | dict.fromkeys(six, via[1])
    assert found.sysctls["net.ipv4.fib_multipath_hash_policy"] == "1"
    assert "net.ipv4.fib_multipath_hash_policy" not in space(plan(network, AB), "s").sysctls


def test_an_interface_with_a_rate_has_a_bucket_and_a_queue() -> None:
    made = plan({"path": {"rate": "1 Gbit/s", "rtt": "1 ms", "left": {"nic": "100 Mbit/s"}}})
    shaper, queue = (" ".join(words) for words in space(made, "left").interfaces[0].qdiscs)
    assert "tbf rate 100000000bit burst 12500" in shaper
    assert queue.endswith("parent 1:1 pfifo limit 1000")
    assert space(made, "right").interfaces[0].qdiscs == []


def test_a_neighbour_is_known_beforehand_with_the_mac_of_its_address() -> None:
    mac = "02:00:0a:00:00:02"
    assert space(plan(CHAIN, AB), "a").neighbours == [["10.0.0.2", mac, "eth0"], ["fd00::2", mac, "eth0"]]


def test_behind_switches_hosts_are_neighbours() -> None:
    found = space(plan(TREE, AB), "a")
    hosts = ["10.0.0.2", "fd00::2", "10.0.0.3", "fd00::3"]
    to = ["10.0.0.2/32", "fd00::2/128", "10.0.0.3/32", "fd00::3/128"]
    assert [(route.to, route.gateway) for route in found.routes] == [(host, None) for host in to]
    assert [address for address, _, _ in found.neighbours] == hosts


def test_a_switch_knows_the_port_of_every_host() -> None:
    found = space(plan(TREE, AB), "s1")
    ports = {mac[-2:]: port for mac, port in found.forwarding}
    assert ports == {"01": "eth0", "02": "eth1", "03": "eth1"}


def test_a_router_forwards_and_a_host_does_not() -> None:
    chain = plan(CHAIN, AB)
    for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        assert space(chain, "r").sysctls[name] == "1"
        assert name not in space(chain, "a").sysctls


def test_settings_of_a_host_become_sysctls_and_route_attributes() -> None:
    hosts = {
        "ecn": "on",
        "sack": "off",
        "receive_buffer_max": "12 MB",
        "initial_window": "4 packets",
        "rto_min": "50 ms",
        "delayed_ack": "off",
        "sysctls": {"net.ipv4.tcp_reordering": 9},
    }
    found = space(plan({**CHAIN, "hosts": hosts}, AB), "a")
    assert found.sysctls["net.ipv4.tcp_ecn"] == "1"
    assert found.sysctls["net.ipv4.tcp_sack"] == "0"
    assert found.sysctls["net.ipv4.tcp_rmem"] == "4096 131072 12000000"
    assert found.sysctls["net.ipv4.tcp_reordering"] == "9"
    assert (found.initcwnd, found.rto_min, found.quickack) == (4, 50, True)


def test_what_is_as_linux_has_it_sets_no_route_attribute() -> None:
    found = space(plan(CHAIN, AB), "a")
    assert (found.initcwnd, found.rto_min, found.quickack) == (None, None, False)


def test_packets_arrive_at_the_last_interface_of_their_way() -> None:
    assert lay_out(plan(CHAIN, AB)).arrival("a", "b").address == "10.0.1.2/24"


def test_links_in_the_subnets_of_routing_protocols_are_not_silent() -> None:
    """The protocols find their neighbours by multicast, and resolve their addresses."""
    nodes: list[Any] = [
        "a",
        "b",
        {"name": "s", "kind": "switch"},
        {"name": "r1", "kind": "router", "routing": {"ospf": {}}},
        {"name": "r2", "kind": "router"},
    ]
    links = [["a", "s"], ["s", "r1"], ["r1", "r2"], ["r2", "b"]]
    routed = plan({"nodes": nodes, "links": [{"ends": ends} for ends in links]}, AB)
    assert [wire.routed for wire in lay_out(routed).wires] == [True, True, True, False]
    router = space(routed, "r1")
    assert (router.routes, router.neighbours) == ((), [])
    assert router.sysctls["net.ipv6.conf.eth0.addr_gen_mode"] == "0"
    assert space(routed, "b").sysctls["net.ipv6.conf.eth0.addr_gen_mode"] == "1"
