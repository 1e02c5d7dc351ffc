"""One-way delays between hosts, each with a clock of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tcplab.captures.two_point import lines, match_ends

from .emulated import Reached, reached
from .hosts import obstacle
from .running import Run

SCENARIO = {
    "tcplab": 1,
    "name": "asymmetric",
    "network": {
        "nodes": ["left", "right"],
        "links": [
            {
                "ends": ["left", "right"],
                "forward": {"rate": "10 Mbit/s", "delay": "40 ms"},
                "reverse": {"rate": "10 Mbit/s", "delay": "5 ms"},
            }
        ],
    },
    "flows": [{"name": "few", "from": "left", "to": "right", "kind": "tcp", "bytes": "200 kB"}],
    "capture": "headers",
    "duration": "2 s",
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Both ends of a path of 40 ms forward and 5 ms back."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    network = {key: value for key, value in SCENARIO.items() if key != "capture"}
    with reached(tmp_path_factory.mktemp("asymmetric"), network) as found:
        yield found


def test_delays_of_a_path_whose_directions_differ_are_right_within_their_bound(hosts: Reached) -> None:
    run = Run(hosts.hosts, json.dumps(SCENARIO), at=hosts.places, default_places=False)
    code, said = run.end()
    assert code == 0, said
    directory = run.out / "run-1"
    captures = [next(directory.glob(f"{name}-*.pcapng")) for name in ("left", "right")]
    ends = match_ends(*captures)
    [(_, (forward, reverse))] = ends.flows
    assert ends.exchanged
    assert ends.bound is not None
    assert forward.delay is not None
    assert reverse.delay is not None
    # The emulator may deliver late: that is not an error of the clocks.
    late = 40e6
    assert 40e6 - ends.bound <= forward.delay.min <= 40e6 + ends.bound + late
    assert 5e6 - ends.bound <= reverse.delay.min <= 5e6 + ends.bound + late
    # The packets alone would call both directions equal.
    assert forward.delay.min - reverse.delay.min > 35e6 - 2 * ends.bound
    [unaware] = [way for _, ways in match_ends(*captures, same_clock=False).flows for way in ways[:1]]
    assert unaware.delay is not None
    assert unaware.delay.min < 40e6 - 10e6
    assert any("one-way delays are within" in line for line in lines(ends, 0))
