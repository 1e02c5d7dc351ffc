"""Settings as `topo set` takes them."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, from_data
from tcplab.testbed.link_change import changed, present, present_words, recorded

S = 1_000_000_000


def direction(kind: str) -> Any:
    return {"delay": 5_000_000, "rate": 10_000_000, "queue": {"kind": kind}}


@pytest.mark.parametrize("kind", ["droptail", "codel", "prio"])
def test_values_are_those_of_a_scenario(kind: str) -> None:
    for key, value in (("queue", "{limit: 50 packets}"), ("queue.limit", "50 packets")):
        limit: Any = changed(direction(kind), {key: value})["limit"]
        assert limit == {"packets": 50}
    change: Any = changed(direction(kind), {"rate": "5Mbit/s", "loss": "{rate: 1 %, correlation: 25 %}"})
    assert change["rate"] == 5_000_000
    assert change["loss"]["model"]["chance"]["correlation"] == 250_000_000


def test_the_kind_of_the_queue_that_there_is_decides_over_its_keys() -> None:
    with pytest.raises(ScenarioErrors, match="a `cake` queue has no `limit`"):
        changed(direction("cake"), {"queue.limit": "50 packets"})


def planned(**settings: object) -> Any:
    link = {"ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "5 ms", "queue": "50 packets", **settings}
    flow = {"name": "f", "kind": "ping", "from": "a", "to": "b"}
    data = {"tcplab": 1, "name": "t", "network": {"nodes": ["a", "b"], "links": [link]}, "flows": [flow]}
    return expand(from_data(data))["links"][0]["forward"]


def test_present_settings_are_those_of_the_plan_and_what_has_changed() -> None:
    policed = {"rate": "9 Mbit/s", "burst": "30 kB"}
    impaired = {"loss": "1 %", "jitter": "1 ms", "reorder": "2 %", "overhead": "vlan", "policer": policed}
    direction = planned(**impaired, at={"5 s": {"rate": "1 Mbit/s"}})
    words = present_words(direction, 4 * S)
    assert words == {
        "rate": "10 Mbit/s",
        "delay": "5 ms",
        "queue": "droptail of 50 packets",
        "loss": "1 % lost at random",
        "jitter": "uniform jitter of 1 ms (independent from packet to packet)",
        "reorder": "2 % reordered",
        "up": "on",
    }
    assert present_words(direction, 6 * S)["rate"] == "1 Mbit/s"


def test_changes_by_hand_and_of_the_scenario_hold_in_the_order_in_which_they_come() -> None:
    direction = planned(at={"5 s": {"rate": "1 Mbit/s"}})
    for second, settings in (
        (2, {"rate": "3 Mbit/s", "queue": "{limit: 9 packets, mark_above: 4 packets}"}),
        (3, {"up": "off", "loss": "0 %"}),
    ):
        direction = recorded(direction, changed(present(direction, second * S), settings), second * S)
    assert len(direction["changes"]) == 2
    words = present_words(direction, 4 * S)
    assert (words["rate"], words["up"], words["loss"]) == ("3 Mbit/s", "off", "0 % lost at random")
    assert words["queue"] == "9 packets, marks above 4 packets"
    assert present_words(direction, 5 * S)["rate"] == "1 Mbit/s"


def test_a_limit_in_bdp_is_of_the_present_rate() -> None:
    direction = recorded(planned(), changed(planned(), {"rate": "1 Mbit/s"}), S)
    limit: Any = changed(present(direction, 2 * S), {"queue": "1 BDP"})["limit"]
    whole: Any = changed(planned(), {"queue": "1 BDP"})["limit"]
    assert limit["bytes"] * 10 == whole["bytes"]
