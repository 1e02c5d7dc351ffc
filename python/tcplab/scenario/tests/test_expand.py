"""Plans: what shorthands and defaults become, and what holds for every plan."""

import ipaddress
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from tcplab.plan.yaml_text import dump_plan_yaml, load_plan_yaml
from tcplab.scenario import ScenarioErrors, expand, from_data, load, warnings
from tcplab.scenario.tests.generate import scenarios

HEAD = "tcplab: 1\nname: test\n"
PATH = "network:\n  path: {rate: 10 Mbit/s, rtt: 40 ms}\n"
BULK = "flows:\n  - {name: bulk, kind: tcp}\n"


def plan(text: str, *sets: str) -> Any:
    return expand(load(HEAD + text, sets))


def path_plan(settings: str, flows: str = "{name: bulk, kind: tcp}") -> Any:
    return plan(f"network:\n  path: {{rate: 10 Mbit/s, rtt: 40 ms, {settings}}}\nflows: [{flows}]\n")


def link(settings: str) -> Any:
    made: Any = path_plan(settings)["links"][0]
    return made


def test_a_path_is_two_hosts_and_a_link() -> None:
    made = plan(PATH + BULK)
    assert [(node["name"], node["kind"]) for node in made["nodes"]] == [("left", "host"), ("right", "host")]
    assert made["nodes"][0]["routes"] == {"right": "path"}
    assert made["links"][0]["ends"] == ["left", "right"]
    assert made["links"][0]["addresses"] == ["10.0.0.1/24", "10.0.0.2/24"]
    assert (made["flows"][0]["from"], made["flows"][0]["to"]) == ("left", "right")


def test_the_rtt_is_halved_and_the_way_back_is_as_the_way_there_without_loss() -> None:
    made = link("loss: 1 %, jitter: 1 ms")
    assert made["forward"]["delay"] == made["backward"]["delay"] == 20_000_000
    assert made["forward"]["rate"] == made["backward"]["rate"] == 10_000_000
    assert made["forward"]["loss"] is not None
    assert made["backward"]["loss"] is None
    assert made["backward"]["jitter"] is None
    assert made["backward"]["queue"]["limit"] == {"packets": 10_000}


def test_jitter_forgets_itself_within_100_ms_or_10_amounts_or_as_set() -> None:
    def memory(jitter: str) -> int:
        return int(link(f"jitter: {jitter}")["forward"]["jitter"]["correlation_time"])

    assert memory("2 ms") == 100_000_000
    assert memory("{amount: 15 ms, distribution: normal}") == 150_000_000
    assert memory("{amount: 15 ms, correlation_time: 1 s}") == 1_000_000_000
    assert memory("{amount: 1 us, correlation_time: 100 us}") == 100_000


def test_a_flow_over_ipv6_has_room_for_20_bytes_less() -> None:
    flows = "{name: t, kind: tcp, ip: 6}, {name: u, kind: udp, rate: 1 Mbit/s, ip: 6}, {name: o, kind: tcp}"
    tcp, udp, over4 = path_plan("left: {mss: 1460 B}", flows)["flows"]
    assert [flow["ip"] for flow in (tcp, udp, over4)] == [6, 6, 4]
    assert (tcp["sender"]["mss"], tcp["receiver"]["mss"], over4["sender"]["mss"]) == (1440, 1440, 1460)
    assert udp["payload"] == 1452


@pytest.mark.parametrize(
    "flow",
    [
        "{name: f, kind: tcp, ip: 6, mss: 1441 B}",
        "{name: f, kind: ping, ip: 6, payload: 1453 B}",
        "{name: f, kind: tcp, ip: 5}",
    ],
)
def test_what_does_not_fit_behind_the_longer_header_is_refused(flow: str) -> None:
    with pytest.raises(ScenarioErrors, match=r"do not fit|does not fit|not a version of IP"):
        path_plan("queue: 1 BDP", flow)


def test_a_link_too_narrow_for_ipv6_has_no_such_address_and_carries_no_such_flow() -> None:
    assert path_plan("mtu: 1280 B")["links"][0]["addresses6"] == ["fd00::1/64", "fd00::2/64"]
    assert path_plan("mtu: 1279 B")["links"][0]["addresses6"] == [None, None]
    with pytest.raises(ScenarioErrors, match="IPv6 needs an MTU of 1280 B"):
        path_plan("mtu: 1279 B", "{name: f, kind: tcp, ip: 6}")


def test_an_odd_rtt_loses_no_nanosecond() -> None:
    made = plan("network:\n  path: {rate: 1 Gbit/s, rtt: 3 ns, queue: 5 packets}\n" + BULK)["links"][0]
    assert made["forward"]["delay"] + made["backward"]["delay"] == 3


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("50 ms", {"time": 50_000_000}),
        ("{kind: droptail, limit: 200 kB}", {"bytes": 200_000}),
        ("625 packets", {"packets": 625}),
        ("1.5 BDP", {"bytes": 75_000}),
        ("unlimited", None),
    ],
)
def test_a_queue_limit_in_each_unit(written: str, limit: dict[str, int] | None) -> None:
    assert link(f"queue: {written}")["forward"]["queue"] == {"kind": "droptail", "limit": limit}


@pytest.mark.parametrize(
    ("written", "threshold"),
    [
        ("65 packets", {"packets": 65}),
        ("0 packets", {"packets": 0}),
        ("100 kB", {"bytes": 100_000}),
        ("5 ms", {"time": 5_000_000}),
        ("0.5 BDP", {"bytes": 25_000}),
    ],
)
def test_a_marking_threshold_in_each_unit(written: str, threshold: dict[str, int]) -> None:
    queue = link(f"queue: {{limit: 1 MB, mark_above: {written}}}")["forward"]["queue"]
    assert queue == {"kind": "droptail", "limit": {"bytes": 1_000_000}, "mark_above": threshold}


def test_a_marking_threshold_changes_with_the_queue_and_stays_unless_named() -> None:
    at = "at: {1 s: {queue: {limit: 2 MB, mark_above: 30 packets}}, 2 s: {queue: 1 MB}}"
    changes = link(f"queue: {{limit: 1 MB, mark_above: 65 packets}}, {at}")["forward"]["changes"]
    assert changes == [
        {"at": 1_000_000_000, "limit": {"bytes": 2_000_000}, "mark_above": {"packets": 30}},
        {"at": 2_000_000_000, "limit": {"bytes": 1_000_000}},
    ]


def test_a_default_queue_is_one_bdp_but_holds_an_initial_window() -> None:
    assert link("mtu: 1500 B")["forward"]["queue"]["limit"] == {"bytes": 50_000}
    short = plan("network:\n  path: {rate: 10 Mbit/s, rtt: 1 ms}\n" + BULK)["links"][0]
    assert short["forward"]["queue"]["limit"] == {"bytes": 15_140}


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("0.5 %", {"kind": "random", "chance": {"rate": 5_000_000, "correlation": 0}}),
        (
            "{rate: 0.5 %, correlation: 25 %, model: netem}",
            {"kind": "netem", "chance": {"rate": 5_000_000, "correlation": 250_000_000}},
        ),
        (
            "{gilbert_elliott: {p: 1 %, r: 25 %}}",
            {"kind": "gilbert_elliott", "p": 10_000_000, "r": 250_000_000, "bad": 1_000_000_000, "good": 0},
        ),
        ("{packets: [7, 3]}", {"kind": "list", "packets": [3, 7]}),
        ("{every: 1000 packets}", {"kind": "every", "packets": 1000, "first": 1000}),
        ("{every: 1000 packets, first: 10}", {"kind": "every", "packets": 1000, "first": 10}),
    ],
)
def test_each_loss_process(written: str, model: dict[str, Any]) -> None:
    assert link(f"loss: {written}")["forward"]["loss"] == {"model": model, "before_queue": False}


def test_no_loss_is_none() -> None:
    assert link("loss: 0 %")["forward"]["loss"] is None


def test_loss_before_the_queue() -> None:
    assert link("loss: {rate: 1 %, before_queue: on}")["forward"]["loss"]["before_queue"] is True


def test_changes_of_the_path_reach_the_way_back_where_it_follows() -> None:
    made = link("at: {20 s: {rate: 5 Mbit/s, rtt: 80 ms, loss: 1 %}, 10 s: {up: off}}")
    assert [change["at"] for change in made["forward"]["changes"]] == [10_000_000_000, 20_000_000_000]
    assert made["forward"]["changes"][1]["loss"]["model"]["chance"]["rate"] == 10_000_000
    assert made["backward"]["changes"] == [
        {"at": 10_000_000_000, "up": False},
        {"at": 20_000_000_000, "rate": 5_000_000, "delay": 40_000_000},
    ]


def test_a_way_back_with_its_own_rate_keeps_it() -> None:
    made = link("reverse: {rate: 1 Mbit/s}, at: {20 s: {rate: 5 Mbit/s}}")
    assert made["backward"]["rate"] == 1_000_000
    assert made["backward"]["changes"] == []


def test_a_loss_that_ends_is_a_change_to_zero() -> None:
    made = link("loss: 1 %, at: {5 s: {loss: 0 %}}")
    assert made["forward"]["changes"][0]["loss"]["model"]["chance"]["rate"] == 0


def test_a_bdp_after_a_change_uses_what_holds_then() -> None:
    made = link("queue: 1 BDP, at: {5 s: {rate: 20 Mbit/s, rtt: 80 ms, queue: 1 BDP}}")
    assert made["forward"]["queue"]["limit"] == {"bytes": 50_000}
    assert made["forward"]["changes"][0]["limit"] == {"bytes": 200_000}


def test_each_flow_can_have_a_path_of_its_own() -> None:
    made = path_plan("per_flow: on", "{name: one, kind: tcp}, {name: two, kind: ping, from: right}")
    assert [node["name"] for node in made["nodes"]] == ["left-one", "right-one", "left-two", "right-two"]
    assert [link["name"] for link in made["links"]] == ["path-one", "path-two"]
    assert (made["flows"][1]["from"], made["flows"][1]["to"]) == ("right-two", "left-two")


def test_common_settings_of_a_link_hold_unless_a_direction_says_otherwise() -> None:
    made = plan(
        """
network:
  nodes: [a, b]
  links:
    - ends: [a, b]
      rate: 10 Mbit/s
      delay: 5 ms
      loss: 1 %
      reverse: {rate: 1 Mbit/s, loss: 0 %}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}
"""
    )["links"][0]
    assert made["name"] == "a-b"
    assert (made["forward"]["rate"], made["backward"]["rate"]) == (10_000_000, 1_000_000)
    assert made["forward"]["delay"] == made["backward"]["delay"] == 5_000_000
    assert made["forward"]["loss"] is not None
    assert made["backward"]["loss"] is None
    assert made["forward"]["queue"]["limit"] == {"packets": 1000}


def test_a_link_without_settings_is_a_cable() -> None:
    made = plan(
        "network:\n  nodes: [a, b]\n  links: [{ends: [a, b]}]\n"
        "flows: [{name: bulk, kind: tcp, from: a, to: b, bytes: 1 MB}]\n"
    )["links"][0]
    assert made["forward"]["rate"] is None
    assert made["forward"]["queue"]["limit"] is None


def test_bbr_without_a_version_is_the_first() -> None:
    made = path_plan(
        "mtu: 1500 B", "{name: a, kind: tcp, cc: bbr}, {name: b, kind: tcp, cc: {name: cubic, beta: 0.8}}"
    )
    assert made["flows"][0]["cc"] == {"name": "bbr1", "params": {}}
    assert made["flows"][1]["cc"] == {"name": "cubic", "params": {"beta": 0.8}}


def test_a_flow_sets_its_sockets_over_its_hosts() -> None:
    made = path_plan(
        "left: {window: 1 MB, nagle: off}, right: {ecn: on}",
        "{name: a, kind: tcp, window: 64 KiB, mss: 1000 B}, {name: b, kind: tcp}",
    )
    first, second = made["flows"]
    assert first["sender"]["send_buffer"] == first["receiver"]["receive_buffer"] == 65_536
    assert first["sender"]["mss"] == 1000
    assert second["sender"]["send_buffer"] == 1_000_000
    assert second["sender"]["nagle"] is False
    assert second["receiver"]["send_buffer"] is None
    assert second["receiver"]["ecn"] == "on"


def test_settings_of_all_hosts_hold_unless_a_host_says_otherwise() -> None:
    made = plan(
        "network:\n  hosts: {sack: off, sysctls: {a.b: 1}}\n"
        "  path: {rate: 1 Mbit/s, rtt: 1 ms, left: {sack: on, sysctls: {c.d: 2 3}}}\n" + BULK
    )
    assert [node["tcp"]["sack"] for node in made["nodes"]] == [True, False]
    assert made["nodes"][0]["sysctls"] == {"a.b": "1", "c.d": "2 3"}


def test_bursts_need_one_of_tso_and_gso() -> None:
    made = path_plan("left: {tso: off}, right: {tso: off, gso: off}")
    assert [node["tcp"]["tso"] for node in made["nodes"]] == [True, False]


def test_the_segment_size_follows_the_least_mtu_of_the_way() -> None:
    made = plan(
        """
network:
  nodes: [a, b, {name: r, kind: router}]
  links:
    - {ends: [a, r], rate: 10 Mbit/s, mtu: 9000 B}
    - {ends: [r, b], rate: 10 Mbit/s, mtu: 1400 B}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}
  - {name: noise, kind: udp, rate: 1 Mbit/s, from: a, to: b}
"""
    )
    assert made["nodes"][0]["tcp"]["mss"] == 8960
    assert made["flows"][0]["sender"]["mss"] == made["flows"][0]["receiver"]["mss"] == 1360
    assert made["flows"][1]["payload"] == 1372


def test_a_window_in_bdp_is_the_flows_own() -> None:
    made = path_plan("queue: 50 ms", "{name: a, kind: tcp, window: 2 BDP}")
    assert made["flows"][0]["sender"]["send_buffer"] == 100_000


@pytest.mark.parametrize(
    ("flows", "more", "stops", "duration"),
    [
        ("{name: a, kind: tcp}", "", [30], 30),
        ("{name: a, kind: tcp}", "duration: 10 s", [10], 10),
        ("{name: a, kind: tcp, duration: 60 s}, {name: b, kind: ping}", "", [60, 60], 60),
        ("{name: a, kind: tcp, start: 5 s, stop: 12 s}", "", [12], 12),
        ("{name: a, kind: tcp, bytes: 1 MB}", "", [None], 600),
        ("{name: a, kind: tcp, bytes: 1 MB}", "timeout: 1 min", [None], 60),
        ("{name: a, kind: tcp, bytes: 1 MB}, {name: b, kind: ping}", "duration: 20 s", [None, 20], 20),
        ("{name: a, kind: ping, count: 5, duration: 3 s}", "", [3], 3),
    ],
)
def test_when_flows_stop_and_the_run_ends(
    flows: str, more: str, stops: list[int | None], duration: int
) -> None:
    made = plan(f"{PATH}flows: [{flows}]\n{more}\n")
    second = 1_000_000_000
    assert [flow["stop"] for flow in made["flows"]] == [None if s is None else s * second for s in stops]
    assert made["duration"] == duration * second


def test_capture_is_of_all_hosts_unless_said() -> None:
    assert plan(PATH + BULK)["capture"] is None
    assert plan(PATH + BULK + "capture: headers\n")["capture"] == {
        "what": "headers",
        "at": "wire",
        "nodes": ["left", "right"],
    }


def test_sampling_can_be_off() -> None:
    sample = plan(PATH + BULK + "sample: {sockets: off, flows: 1 s}\n")["sample"]
    assert sample["sockets"] is None
    assert sample["flows"] == 1_000_000_000
    assert sample["queues"] == 10_000_000


valid = hypothesis_settings(max_examples=40)


@valid
@given(scenarios())
def test_every_valid_scenario_has_a_plan(data: dict[str, Any]) -> None:
    made = expand(from_data(data))
    names = {node["name"] for node in made["nodes"]}
    links = {link["name"]: link for link in made["links"]}
    for flow in made["flows"]:
        assert {flow["from"], flow["to"]} <= names
        assert flow["stop"] is None or flow["stop"] > flow["start"]
        node, visited = flow["from"], set()
        while node != flow["to"]:
            visited.add(node)
            routes = next(n["routes"] for n in made["nodes"] if n["name"] == node)
            ends = links[routes[flow["to"]]]["ends"]
            node = ends[1] if ends[0] == node else ends[0]
            assert node not in visited
    json.dumps(made, allow_nan=False)
    warnings(made)


@valid
@given(scenarios())
def test_a_plan_survives_yaml(data: dict[str, Any]) -> None:
    made = expand(from_data(data))
    read = load_plan_yaml(dump_plan_yaml(made))
    assert json.dumps(read) == json.dumps(made)


@valid
@given(scenarios())
def test_expanding_twice_gives_the_same_bytes(data: dict[str, Any]) -> None:
    assert json.dumps(expand(from_data(data))) == json.dumps(expand(from_data(data)))


@valid
@given(scenarios())
def test_addresses_are_unique_and_subnets_do_not_overlap(data: dict[str, Any]) -> None:
    made = expand(from_data(data))
    switches = {node["name"] for node in made["nodes"] if node["kind"] == "switch"}
    interfaces = []
    for link in made["links"]:
        for end, address in zip(link["ends"], link["addresses"], strict=True):
            assert (address is None) == (end in switches)
            if address is not None:
                interfaces.append(ipaddress.IPv4Interface(address))
    assert len({interface.ip for interface in interfaces}) == len(interfaces)
    networks = sorted({interface.network for interface in interfaces})
    assert all(not a.overlaps(b) for a, b in itertools.pairwise(networks))
    assert all(interface.ip in ipaddress.IPv4Network("10.0.0.0/8") for interface in interfaces)
