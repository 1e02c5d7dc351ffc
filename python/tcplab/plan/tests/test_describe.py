"""Rust's tests (`crates/plan/src/describe/tests.rs`) hold the words; these hold the way to them."""

from typing import Any, cast

import pytest

from tcplab.plan.describe import describe_direction, describe_flow, describe_plan, limit_words
from tcplab.plan.types import Direction
from tcplab.results.tests.synthetic import MS, SECOND, direction, plan


def test_a_direction_in_words() -> None:
    changing = direction(limit={"bytes": 200_000})
    changing["changes"] = [{"at": 20 * SECOND, "rate": 20_000_000, "up": True}]
    words = describe_direction(changing)
    assert (words.rate, words.delay, words.queue) == ("10 Mbit/s", "50 ms", "droptail of 200 kB")
    assert (words.impairments, words.changes) == ([], ["from 20 s: rate 20 Mbit/s, up"])
    assert words.line == "10 Mbit/s, 50 ms delay, droptail of 200 kB, from 20 s: rate 20 Mbit/s, up"


def test_flows_in_words() -> None:
    ends: Any = {"name": "f", "from": "a", "to": "b", "start": 0, "stop": None, "streams": 1}
    udp: Any = {**ends, "kind": "udp", "rate": 20_000_000, "payload": 1472, "bytes": None, "pattern": None}
    assert describe_flow(udp).traffic == "udp at 20 Mbit/s, 1472 B datagrams"
    cc = {"name": "cubic", "params": {"beta": 0.8}}
    sizes = {"request": 100, "response": 10_000, "think": 0, "count": 5}
    asking: Any = {**ends, "kind": "request", "cc": cc, **sizes, "sender": {}, "receiver": {}}
    request = describe_flow(asking)
    assert request.traffic == "requests of 100 B, responses of 10 kB, 5 times"
    assert (request.control, request.time) == ("cubic (beta 0.8)", "from 0 s")
    ping: Any = {**ends, "kind": "ping", "interval": 10 * MS, "payload": 56, "count": 3}
    assert describe_flow(ping).traffic == "ping every 10 ms, 56 B, 3 times"


def test_a_plan_in_words() -> None:
    lines = describe_plan(plan({"one": "reno"}))
    assert lines[0] == "network: 2 hosts, 1 link"
    assert "  one: tcp with reno, one-a to one-b, 0 s to 20 s" in lines


def test_limits_in_words() -> None:
    assert [limit_words(limit) for limit in ({"packets": 1}, {"time": 50 * MS})] == ["1 packet", "50 ms"]


def test_what_is_not_a_direction_is_refused() -> None:
    with pytest.raises(ValueError, match="missing field"):
        describe_direction(cast("Direction", {"rate": 1}))
