from typing import Any

import numpy as np

from tcplab.plan.paths import (
    Hop,
    base_rtt,
    bottlenecks,
    links_between,
    mean_rate,
    nominal_rate,
    path,
    queue_limit_packets,
    rate_at,
    trace_bits,
)
from tcplab.plan.types import Trace
from tcplab.results.tests.synthetic import MS, SECOND, direction, host


def chain(rates: list[int | None]) -> Any:
    """Nodes n0, n1, ... in a row; the links' forward rates are given, backward is 1 Gbit/s."""
    count = len(rates) + 1
    nodes = [
        host(f"n{i}", {f"n{j}": f"l{i if j > i else i - 1}" for j in range(count) if j != i})
        for i in range(count)
    ]
    links = [
        {
            "name": f"l{i}",
            "ends": [f"n{i}", f"n{i + 1}"],
            "forward": direction(rate=rate, delay=10 * MS),
            "backward": direction(rate=1_000_000_000, delay=5 * MS),
        }
        for i, rate in enumerate(rates)
    ]
    return {"nodes": nodes, "links": links, "flows": []}


FLOW: Any = {"name": "f", "from": "n0", "to": "n3", "kind": "tcp"}


def test_a_path_names_each_link_with_its_direction() -> None:
    plan = chain([100, 10, 100])
    assert path(plan, "n0", "n3") == [Hop("l0", "forward"), Hop("l1", "forward"), Hop("l2", "forward")]
    assert path(plan, "n3", "n1") == [Hop("l2", "backward"), Hop("l1", "backward")]


def test_without_a_route_there_is_no_path() -> None:
    plan = chain([100])
    assert path(plan, "n0", "elsewhere") == []


def test_routes_that_go_in_circles_end() -> None:
    plan = chain([100, 100])
    plan["nodes"][1]["routes"]["n2"] = "l0"
    assert path(plan, "n0", "n2") == []


def test_packets_may_pass_the_links_of_every_path_of_a_router_with_several() -> None:
    plan = chain([100, 100])
    assert links_between(plan, "n0", "n1") == {"l0"}
    plan["nodes"].append(host("n3", {"n2": "l3"}))
    plan["links"] += [{"name": "l2", "ends": ["n0", "n3"]}, {"name": "l3", "ends": ["n3", "n2"]}]
    assert links_between(plan, "n0", "n2") == {"l0", "l1"}
    plan["nodes"][0]["multipath"] = {"n2": ["l0", "l2"]}
    assert links_between(plan, "n0", "n2") == {"l0", "l1", "l2", "l3"}


def test_the_bottleneck_is_the_slowest_hop() -> None:
    assert bottlenecks(chain([100, 10, 11]), FLOW) == [Hop("l1", "forward")]


def test_a_link_whose_rate_falls_is_the_bottleneck_if_it_is_the_slower_one_by_the_mean() -> None:
    falls = chain([20, 100, 50]) | {"duration": 10 * SECOND}
    changes = [{"at": SECOND, "rate": 5}]
    falls["links"][1]["forward"]["changes"] = changes
    assert bottlenecks(falls, FLOW) == [Hop("l1", "forward")]
    # It is over before that.
    assert bottlenecks(falls, FLOW | {"stop": SECOND}) == [Hop("l0", "forward")]
    changes.append({"at": 2 * SECOND, "rate": 100})
    assert bottlenecks(falls, FLOW) == [Hop("l0", "forward")]
    assert bottlenecks(falls, FLOW | {"start": SECOND, "stop": 2 * SECOND}) == [Hop("l1", "forward")]


def test_the_mean_rate_follows_changes() -> None:
    changes = [{"at": 4 * SECOND, "rate": 30}, {"at": 2 * SECOND, "rate": 10}, {"at": SECOND, "delay": 0}]
    link = direction(rate=20, delay=0) | {"changes": changes}
    starts, ends = np.array([0, 1, 2, 3, 9]) * SECOND, np.array([2, 3, 4, 5, 10]) * SECOND
    found = mean_rate(link, starts, ends)
    assert found is not None
    assert found.tolist() == [20, 15, 10, 20, 30]
    assert mean_rate(direction(rate=None, delay=0), 0, SECOND) is None


def test_links_without_a_rate_are_not_bottlenecks() -> None:
    assert bottlenecks(chain([None, None, None]), FLOW) == []
    assert bottlenecks(chain([None, 50, None]), FLOW) == [Hop("l1", "forward")]


def test_large_responses_are_limited_on_the_way_back() -> None:
    request: Any = {**FLOW, "kind": "request", "request": 100, "response": 100_000}
    assert {hop.direction for hop in bottlenecks(chain([10, 10, 10]), request)} == {"backward"}


def test_the_base_rtt_is_the_delay_both_ways() -> None:
    assert base_rtt(chain([1, 1, 1]), FLOW) == 3 * (10 + 5) * MS


def test_a_rate_follows_its_changes() -> None:
    changing: Any = {
        **direction(rate=100),
        "changes": [{"at": 2 * SECOND, "rate": 20}, {"at": 1 * SECOND, "delay": 5}],
    }
    rates = rate_at(changing, np.array([0, 1.9e9, 2e9, 3e9]))
    assert rates is not None
    assert list(rates) == [100, 100, 20, 20]


def test_a_trace_has_its_mean_rate() -> None:
    # Two opportunities of 1500 bytes in 4 ms.
    traced: Any = {**direction(), "trace": {"opportunities_ms": [1, 4]}}
    assert nominal_rate(traced) == 6_000_000


def test_a_queue_limit_in_time_is_what_drains_in_it() -> None:
    limited = direction(rate=10_000_000, limit={"time": 50 * MS})
    assert queue_limit_packets(limited) == 10e6 * 0.05 / 8 / 1514


def test_a_trace_delivers_what_it_has_by_its_period() -> None:
    trace: Trace = {"opportunities_ms": [1, 1, 5, 10]}
    packet = 1500 * 8
    assert trace_bits(trace, 0, 5e6) == 3 * packet
    assert trace_bits(trace, 5e6, 10e6) == 1 * packet
    assert trace_bits(trace, 0, 35e6) == (3 * 4 + 3) * packet
    assert trace_bits(trace, 11e6, 14e6) == 0
