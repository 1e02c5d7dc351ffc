"""Settings as `topo set` takes them."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors
from tcplab.testbed.link_change import changed


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
