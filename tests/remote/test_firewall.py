"""Hosts behind a firewall: which ports are used, who connects, and what is said when nothing passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .hosts import Host, Hosts, wait_for
from .running import Run
from .test_remote import ONE

UDP = """
tcplab: 1
name: datagrams
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: noise, kind: udp, rate: 1 Mbit/s, duration: 2 s}
"""
SEVERAL = """
tcplab: 1
name: several
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: reno, streams: 2, duration: 1 s}
  - {name: noise, kind: udp, rate: 1 Mbit/s, duration: 1 s}
  - {name: asks, kind: request, request: 100 B, response: 1 kB, duration: 1 s}
  - {name: echo, kind: echo, sizes: [1, 1024], iterations: 10}
duration: 3 s
"""


@contextmanager
def firewall(host: Host, *allowed: str) -> Iterator[None]:
    """Drop what comes to a host but for ssh, answers to what it began, and what `allowed` lets in."""
    rules = "; ".join(["tcp dport 22 accept", "ct state established,related accept", *allowed])
    host.run(
        "nft",
        "table inet walled { chain input { type filter hook input priority 0; policy drop;"
        f" iifname lo accept; {rules}; }}; }}",
    )
    try:
        yield
    finally:
        host.run("nft", "delete table inet walled")


def test_a_blocked_data_path_fails_the_run_and_names_what_to_open(hosts: Hosts) -> None:
    with firewall(hosts.all["right"]):
        run = Run(hosts, ONE % "2 s")
        code, said = run.end()
    assert code == 4, said
    assert run.manifest["status"] == "failed"
    message = run.manifest["message"]
    assert "bulk: nothing passed between left and right, 10.77.0.3, TCP port" in message
    assert "?ports=5300-5399" in message
    assert "?initiate=on" in message
    # The control path stood all the while.
    assert "right" in run.manifest["facts"]["clocks"]


def test_datagrams_that_never_arrive_fail_the_run_too(hosts: Hosts) -> None:
    with firewall(hosts.all["right"]):
        code, said = Run(hosts, UDP).end()
    assert code == 4, said
    assert "noise: nothing passed between left and right, 10.77.0.3, UDP port" in said


def test_a_firewall_with_a_hole_for_the_range_of_ports_lets_all_kinds_through(hosts: Hosts) -> None:
    hole = ("tcp dport 5300-5305 accept", "udp dport 5300-5305 accept")
    with firewall(hosts.all["right"], *hole):
        run = Run(hosts, SEVERAL, at={"right": "ssh://10.77.0.3?ports=5300-5305"})
        code, said = run.end()
    assert code == 0, said
    flows = run.table("flows")
    assert (flows["bytes_received"] > 0).all()
    assert flows.filter(flows["flow"] == "bulk").height == 2


HOLES = (
    ("udp", "udp dport 5300-5305 accept"),
    ("tcp", "tcp dport 5300-5305 accept"),
    ("icmp", "icmp type echo-request accept"),
)


@pytest.mark.parametrize(("by", "hole"), HOLES)
def test_the_path_is_measured_by_what_a_firewall_lets_through(hosts: Hosts, by: str, hole: str) -> None:
    with firewall(hosts.all["right"], hole):
        run = Run(hosts, ONE % "2 s", at={"right": "ssh://10.77.0.3?ports=5300-5305"})
        run.end()
    [path] = run.manifest["facts"]["paths"]
    assert (path["by"], path["hops"], path["routers"]) == (by, 1, [])
    assert path["rtt"] > 0
    # Only datagrams find out how large a packet may be.
    assert path["mtu"] == (1500 if by == "udp" else None)


def test_routers_on_the_way_are_named_by_each_protocol(hosts: Hosts) -> None:
    us, left, right = hosts.us, hosts.all["left"], hosts.all["right"]
    # A detour: `us` forwards.
    redirects = [f"net.ipv4.conf.{one}.send_redirects=0" for one in ("all", "eth0")]
    us.run("sysctl", "-qw", "net.ipv4.ip_forward=1", *redirects)
    left.run("ip", "route", "add", "10.77.0.3/32", "via", "10.77.0.1")
    try:
        paths = {}
        for by, hole in HOLES:
            with firewall(right, hole):
                run = Run(hosts, ONE % "2 s", at={"right": "ssh://10.77.0.3?ports=5300-5305"})
                run.end()
            [paths[by]] = run.manifest["facts"]["paths"]
    finally:
        left.run("ip", "route", "delete", "10.77.0.3/32")
    for by, path in paths.items():
        assert (path["by"], path["hops"], path["routers"]) == (by, 2, ["10.77.0.1"])


def test_ports_are_a_key_of_the_scenario_too(hosts: Hosts) -> None:
    places = "hosts_at: {left: ssh://10.77.0.2, right: {ssh: 10.77.0.3, ports: 5300-5301}}"
    text = (ONE % "2 s").replace("network:\n", f"network:\n  {places}\n")
    with firewall(hosts.all["right"], "tcp dport 5300-5301 accept"):
        run = Run(hosts, text, default_places=False)
        code, said = run.end()
    assert code == 0, said
    assert run.table("flows")["to_port"].to_list() == [5300]
    code, said = Run(hosts, text.replace("5300-5301", "80-90"), default_places=False).end()
    assert code == 2, said
    assert "`80-90` is not a range of ports from 1024 to 65535" in said


def test_a_range_with_too_few_ports_is_refused(hosts: Hosts) -> None:
    code, said = Run(hosts, SEVERAL, at={"right": "ssh://10.77.0.3?ports=5300-5302"}).end()
    assert code == 4, said
    assert "right has 3 ports, 5300 to 5302" in said


def test_a_host_that_only_connects_receives_what_it_asks_for(hosts: Hosts) -> None:
    with firewall(hosts.all["right"]):
        run = Run(hosts, ONE % "2 s", at={"right": "ssh://10.77.0.3?initiate=on"})
        code, said = run.end()
    assert code == 0, said
    [flow] = run.table("flows").iter_rows(named=True)
    # Data goes from left to right as ever: only who connects has changed.
    assert (flow["from"], flow["to"]) == ("left", "right")
    assert flow["bytes_received"] > 0
    sockets = run.table("sockets")
    assert sockets["node"].unique().to_list() == ["left"]
    [path] = run.manifest["facts"]["paths"]
    assert (path["from"], path["to"]) == ("right", "left")
    assert path["rtt"] > 0


def test_behind_an_address_translation_the_inner_side_connects(hosts: Hosts) -> None:
    left, right = hosts.all["left"], hosts.all["right"]
    # An address of its own, which nobody else has a route to, translated on the way out.
    right.run("ip", "address", "add", "192.168.9.2/32", "dev", "lo")
    right.run("ip", "route", "add", "10.77.0.2/32", "dev", "eth0", "src", "192.168.9.2")
    right.run(
        "nft",
        "table ip translated { chain out { type nat hook postrouting priority 100;"
        " ip saddr 192.168.9.2 snat to 10.77.0.3; }; }",
    )
    try:
        with firewall(right):
            run = Run(hosts, ONE % "2 s", at={"right": "ssh://10.77.0.3?initiate=on"})
            code, said = run.end()
    finally:
        right.run("nft", "delete table ip translated")
        right.run("ip", "route", "delete", "10.77.0.2/32", "dev", "eth0", "src", "192.168.9.2")
        right.run("ip", "address", "delete", "192.168.9.2/32", "dev", "lo")
    assert code == 0, said
    assert run.table("flows")["bytes_received"].sum() > 0
    wait_for(lambda: left.agents() == [])


def test_what_cannot_begin_at_the_inner_side_is_refused_before_anything_runs(hosts: Hosts) -> None:
    code, said = Run(hosts, UDP, at={"right": "ssh://10.77.0.3?initiate=on"}).end()
    assert code == 3, said
    assert "right initiates, and a flow of udp begins at its source" in said
    both = {"left": "ssh://10.77.0.2?initiate=on", "right": "ssh://10.77.0.3?initiate=on"}
    code, said = Run(hosts, ONE % "1 s", at=both).end()
    assert code == 3, said
    assert "both of its hosts initiate" in said
