"""Files of MiniEdit and containerlab become scenarios; what cannot be said is named."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tcplab.scenario import expand, from_data
from tcplab.testbed import exported
from tcplab.topologies import UnreadableError, read

MINIEDIT = {
    "application": {"ipBase": "10.0.0.0/8"},
    "controllers": [{"opts": {"hostname": "c0"}}],
    "hosts": [
        {"number": "1", "opts": {"hostname": "h1", "sched": "host", "defaultRoute": "10.0.0.254"}},
        {"number": "2", "opts": {"hostname": "h2", "sched": "host"}},
    ],
    "switches": [
        {"number": "1", "opts": {"hostname": "s1", "switchType": "ovs"}},
        {"number": "2", "opts": {"hostname": "r2", "switchType": "legacyRouter"}},
    ],
    "links": [
        {"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "5ms", "loss": 1, "max_queue_size": 100}},
        {"src": "s1", "dest": "r2", "opts": {"delay": "250", "speedup": 2}},
        {"src": "r2", "dest": "h2", "opts": {}},
    ],
    "version": "2",
}
CONTAINERLAB = """\
name: two as
topology:
  kinds: {linux: {image: alpine}}
  nodes:
    h1: {kind: linux, exec: [ip addr add 10.0.0.1/24 dev eth1]}
    h2: {kind: linux}
    sw: {kind: bridge}
    r1:
      kind: linux
      image: quay.io/frrouting/frr:9.1.0
      binds: ["r1/frr.conf:/etc/frr/frr.conf:ro"]
  links:
    - endpoints: ["h1:eth1", "r1:eth1"]
      mtu: 9000
    - {type: veth, endpoints: [{node: r1, interface: eth2}, {node: sw, interface: p1}]}
    - endpoints: ["sw:p2", "h2:eth1"]
"""


def plan(scenario: dict[str, Any]) -> Any:
    return expand(from_data(scenario))


def test_every_option_that_miniedit_saves_is_taken_over_or_named(tmp_path: Path) -> None:
    host = {
        "hostname": "h1",
        "nodeNum": 1,
        "sched": "host",
        "ip": "10.0.1.2/24",
        "cores": "0",
        "startCommand": "iperf -s",
        "stopCommand": "sync",
        "privateDirectory": [["/etc", "/tmp/h1"]],
    }
    switch = {
        "hostname": "s1",
        "nodeNum": 1,
        "switchType": "default",
        "controllers": ["c0"],
        "dpid": "1",
        "switchIP": "",
        "netflow": "0",
        "sflow": "1",
        "startCommand": "ovs-vsctl show",
    }
    link = {"bw": 10, "delay": "20", "jitter": "2ms", "loss": 1, "max_queue_size": 4, "speedup": 20}
    saved = {
        "application": {"ipBase": "10.0.0.0/8", "switchType": "ovs"},
        "controllers": [],
        "hosts": [{"opts": host}, {"opts": {"hostname": "h2", "nodeNum": 2, "sched": "host"}}],
        "switches": [{"number": "1", "opts": switch, "x": "1.0", "y": "2.0"}],
        "links": [{"src": "h1", "dest": "s1", "opts": link}, {"src": "h2", "dest": "s1", "opts": {}}],
        "version": "2",
    }
    path = tmp_path / "saved.mn"
    path.write_text(json.dumps(saved), encoding="utf-8")
    found = read(path)
    assert found.left_out == [
        "h1: ip",
        "h1: cores",
        "h1: startCommand",
        "h1: stopCommand",
        "h1: privateDirectory",
        "s1: dpid",
        "s1: sflow",
        "s1: startCommand",
        "link h1-s1: speedup",
    ]
    assert found.notes == ["link h1-s1: delay 20 has no unit: taken as 20 us"]
    first = plan(found.scenario())["links"][0]["forward"]
    assert (first["rate"], first["queue"]["limit"]) == (10**7, {"packets": 4})


def test_miniedit(tmp_path: Path) -> None:
    path = tmp_path / "published.mn"
    path.write_text(json.dumps(MINIEDIT), encoding="utf-8")
    found = read(path)
    made = plan(found.scenario())
    assert {node["name"]: node["kind"] for node in made["nodes"]} == {
        "h1": "host",
        "h2": "host",
        "s1": "switch",
        "r2": "router",
    }
    first, second, third = (link["forward"] for link in made["links"])
    assert (first["rate"], first["delay"], first["queue"]["limit"]) == (10**7, 5 * 10**6, {"packets": 100})
    # tc(8) takes a number without a unit for microseconds.
    assert second["delay"] == 250_000
    assert third["rate"] is None
    assert found.left_out == [
        "h1: defaultRoute",
        "link s1-r2: speedup",
        "controllers: switches learn by themselves",
    ]
    assert not any("no link has a delay" in note for note in found.notes)


def test_containerlab(tmp_path: Path) -> None:
    path = tmp_path / "two.clab.yml"
    path.write_text(CONTAINERLAB, encoding="utf-8")
    found = read(path)
    scenario = found.scenario()
    assert scenario["name"] == "two-as"
    assert scenario["network"]["nodes"] == [
        {"name": "h1", "kind": "host"},
        {"name": "h2", "kind": "host"},
        {"name": "sw", "kind": "switch"},
        {"name": "r1", "kind": "router", "frr": "r1/frr.conf"},
    ]
    links = [(link["ends"], link.get("mtu")) for link in scenario["network"]["links"]]
    assert links == [(["h1", "r1"], "9000 B"), (["r1", "sw"], None), (["sw", "h2"], None)]
    assert found.left_out == ["h1: exec"]
    assert found.notes == ["no link has a delay: set `delay`, or round trips take next to no time"]


def test_links_out_of_a_containerlab_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "two.clab.yml"
    outside = """\
    - endpoints: ["h2:eth2", "host:h2-eth2"]
    - {type: mgmt-net, endpoint: {node: h2, interface: eth3}, host-interface: h2-eth3}
"""
    path.write_text(CONTAINERLAB + outside, encoding="utf-8")
    found = read(path)
    assert [link["ends"] for link in found.links] == [["h1", "r1"], ["r1", "sw"], ["sw", "h2"]]
    # The other links make no router of it.
    assert {"name": "h2", "kind": "host"} in found.nodes
    assert found.left_out[1:] == [
        "link h2:eth2-host:h2-eth2: it leaves the topology",
        "link h2:eth3-mgmt-net:h2-eth3: it leaves the topology",
    ]


def test_the_probe_is_between_hosts_with_links(tmp_path: Path) -> None:
    path = tmp_path / "two.clab.yml"
    path.write_text(CONTAINERLAB.replace("    sw:", "    spare: {kind: linux}\n    sw:"), encoding="utf-8")
    (probe,) = read(path).scenario()["flows"]
    assert (probe["from"], probe["to"]) == ("h1", "h2")


@pytest.mark.parametrize(
    ("command", "forward"),
    [
        ("tc qdisc add dev eth1 root netem delay 5ms", {"delay": "5 ms"}),
        (
            "tc qdisc replace dev eth1 root handle 1: netem delay 250 loss random 0.5%",
            {"delay": "250 us", "loss": "0.5 %"},
        ),
        (
            "tc qdisc add dev eth1 root netem rate 10Mbit delay 5ms 1ms limit 50",
            {"rate": "10 Mbit/s", "delay": "5 ms", "jitter": "1 ms", "queue": "50 packets"},
        ),
        ("tc qdisc add dev eth1 root netem loss 1% 25%", None),
        ("tc qdisc add dev eth1 root netem delay 5ms 1ms distribution normal", None),
        ("tc qdisc add dev eth1 root netem loss gemodel 1%", None),
        ("tc qdisc add dev eth9 root netem delay 5ms", None),
        ("tc qdisc add dev eth1 root fq_codel", None),
        ("ip link set eth1 up", None),
    ],
)
def test_containerlabs_netem_commands(tmp_path: Path, command: str, forward: dict[str, str] | None) -> None:
    path = tmp_path / "two.clab.yml"
    path.write_text(
        CONTAINERLAB.replace("ip addr add 10.0.0.1/24 dev eth1", json.dumps(command)), encoding="utf-8"
    )
    found = read(path)
    first = found.scenario()["network"]["links"][0]
    assert first.get("forward") == forward
    # Settings that are left out are listed.
    assert bool(found.left_out) == (forward is None)
    expand(
        from_data(
            found.scenario()
            | {
                "network": {"nodes": ["h1", "r1"], "links": [first]},
                "flows": [{"name": "p", "kind": "ping", "from": "h1", "to": "r1"}],
            }
        )
    )


@pytest.mark.parametrize("name", ["x.mn", "x.clab.yml", "x.yaml"])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"hosts": 3}', "name: x\ntopology: {nodes: [1]}"])
def test_other_files_than_topologies_are_rejected(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableError):
        read(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 20_000, "nested too deep"),
        ("[]", "a value has not the type that such a file has there"),
        ('{"hosts": [1]}', "a value has not the type that such a file has there"),
    ],
)
def test_why_a_file_is_rejected_is_given_in_words_of_the_file(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "x.mn").write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableError, match=f"^not a MiniEdit file: {why}$"):
        read(tmp_path / "x.mn")


LOT: Any = {
    "tcplab": 1,
    "name": "lot",
    "network": {
        "topology": {
            "kind": "dumbbell",
            "hosts": 1,
            "core": {"rate": "10 Mbit/s", "delay": "5 ms", "loss": "1 %", "queue": "20 packets"},
        },
        "nodes": [{"name": "sw", "kind": "switch"}, "extra"],
        "links": [
            {"ends": ["sw", "r1"], "queue": "fq_codel", "rate": "1 Mbit/s"},
            {"ends": ["extra", "sw"]},
        ],
    },
    "flows": [{"name": "p", "kind": "ping", "from": "left1", "to": "right1"}],
}


class Recorded:
    """Stands for Mininet: notes what a script asks of it."""

    def __init__(self, **_: Any) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **more: self.asked.append((name, args, more))

    def __getitem__(self, node: str) -> Any:
        return type("Node", (), {"cmd": lambda _, said: self.asked.append(("cmd", (node, said), {}))})()


def test_mininet_builds_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    made = exported.mininet(plan(LOT))
    net = Recorded()
    for name in ("cli", "link", "net", "node"):
        module = ModuleType(f"mininet.{name}")
        for what in ("CLI", "TCIntf", "TCLink", "OVSBridge"):
            setattr(module, what, lambda *_: None)
        vars(module)["Mininet"] = lambda **_: net
        monkeypatch.setitem(sys.modules, f"mininet.{name}", module)
    exec(compile(made.text, "lot.py", "exec"), {})
    nodes = {args[0] for name, args, _ in net.asked if name in ("addHost", "addSwitch")}
    assert nodes == {"r1", "r2", "left1", "right1", "sw", "extra"}
    links = {args: more for name, args, more in net.asked if name == "addLink"}
    options = links["r1", "r2"]["params1"]
    assert options == {"bw": 10.0, "delay": "5ms", "loss": 1.0, "max_queue_size": 20}
    said = [args for name, args, _ in net.asked if name == "cmd"]
    assert ("r1", "sysctl -w net.ipv4.ip_forward=1") in said
    assert any(node == "left1" and "ip route replace 0.0.0.0/0 via" in text for node, text in said)
    assert made.left_out == [
        "link sw-r1 forward: the queue fq_codel",
        "link sw-r1 reverse: the queue fq_codel",
    ]


def test_an_export_has_the_mtu_and_names_what_it_leaves_out() -> None:
    two: Any = {
        "tcplab": 1,
        "name": "two",
        "network": {
            "nodes": [
                {"name": "a", "nic": "1 Gbit/s", "sysctls": {"net.ipv4.tcp_sack": 0}},
                {"name": "r1", "kind": "router", "ecmp": True},
                {"name": "r2", "kind": "router"},
                "b",
            ],
            "media": ["wifi"],
            "links": [
                {"ends": ["a", "r1"], "mtu": "1400 B", "rate": "1 Mbit/s", "overhead": "ethernet"},
                {"ends": ["r1", "r2"], "name": "one", "jitter": {"amount": "1 ms", "distribution": "normal"}},
                {"ends": ["r1", "r2"], "name": "two", "up": False},
                {"ends": ["r2", "b"], "medium": "wifi", "rate": "1 Mbit/s", "mtu": "576 B"},
            ],
        },
        "flows": [{"name": "p", "kind": "ping", "from": "a", "to": "b"}],
    }
    both = ("forward", "reverse")
    left_out = [
        *(f"link a-r1 {way}: overhead" for way in both),
        *(f"link one {way}: the distribution of jitter" for way in both),
        *(f"link r2-b {way}: overhead" for way in both),
        *("a: nic", "a: sysctls", "r1: ecmp", "link r2-b: its medium"),
        *(f"link two {way}: it is down" for way in both),
    ]
    made = exported.mininet(plan(two))
    assert sorted(made.left_out) == sorted(left_out)
    for node, port, mtu in (("a", 0, 1400), ("r1", 0, 1400), ("r2", 2, 576), ("b", 0, 576)):
        assert f"net['{node}'].cmd('ip link set {node}-eth{port} mtu {mtu}')\n" in made.text
    assert made.text.count(" mtu ") == 4
    again = exported.containerlab(plan(two))
    assert sorted(one for one in again.left_out if "queue" not in one) == sorted(left_out)


def test_containerlab_reads_its_own_export(tmp_path: Path) -> None:
    made = exported.containerlab(plan(LOT))
    path = tmp_path / "lot.clab.yml"
    path.write_text(made.text, encoding="utf-8")
    again = plan(read(path).scenario())
    kinds = {node["name"]: node["kind"] for node in again["nodes"]}
    assert kinds == {node["name"]: node["kind"] for node in plan(LOT)["nodes"]}
    assert [link["ends"] for link in again["links"]] == [link["ends"] for link in plan(LOT)["links"]]
    assert (
        "# containerlab tools netem set -n clab-lot-r1 -i eth1 --rate 10000 --delay 5ms --loss 1.0"
        in made.text
    )
    for link, was in zip(again["links"], plan(LOT)["links"], strict=True):
        for way in ("forward", "backward"):
            for key in ("rate", "delay", "loss"):
                assert link[way].get(key) == was[way].get(key), (link["name"], way, key)


@pytest.mark.parametrize(
    ("rate", "delay", "words"),
    [
        ("1 Gbit/s", "100 us", "--rate 1000000 --delay 0.1ms"),
        ("1234567 kbit/s", "10 ns", "--rate 1234567 --delay 0.00001ms"),
        ("400 bit/s", "1234.567891 ms", "--rate 1 --delay 1234.567891ms"),
    ],
)
def test_numbers_of_an_export_have_no_exponent(tmp_path: Path, rate: str, delay: str, words: str) -> None:
    two: Any = {
        "tcplab": 1,
        "name": "two",
        "network": {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], "rate": rate, "delay": delay}]},
        "flows": [{"name": "p", "kind": "ping", "from": "a", "to": "b"}],
    }
    made = exported.containerlab(plan(two))
    assert f"set -n clab-two-a -i eth1 {words}\n" in made.text
    path = tmp_path / "two.clab.yml"
    path.write_text(made.text, encoding="utf-8")
    (link,), (was,) = (plan(each)["links"] for each in (read(path).scenario(), two))
    assert link["forward"]["delay"] == was["forward"]["delay"]
    assert abs(link["forward"]["rate"] - was["forward"]["rate"]) < 1000
