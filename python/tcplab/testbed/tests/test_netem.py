"""The commands of tc for a link direction, and its settings that netem cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.plan.types import Direction
from tcplab.scenario import expand, from_data
from tcplab.testbed.layout import lay_out
from tcplab.testbed.netem import unlike

FLOW = {"name": "f", "kind": "tcp", "from": "a", "to": "b"}


def planned(**settings: Any) -> Any:
    network = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], **settings}]}
    given = {"tcplab": 1, "name": "t", "network": network, "flows": [FLOW], "emulator": "netem"}
    return expand(from_data(given))


def direction(**settings: Any) -> Direction:
    made: Direction = planned(**settings)["links"][0]["forward"]
    return made


def commands(**settings: Any) -> list[str]:
    return [
        " ".join(words).removeprefix("qdisc add dev eth0 ")
        for words in lay_out(planned(**settings)).wires[0].ends[0].qdiscs
    ]


def test_a_direction_without_settings_needs_no_discipline() -> None:
    assert commands() == []


def test_the_way_holds_the_queue_with_its_rate() -> None:
    assert commands(rate="10 Mbit/s", queue="50 packets", delay="5 ms", loss="1 %") == [
        "root handle 1: netem delay 5000.000us loss random 1.0000000% limit 1000000",
        "parent 1:1 netem rate 10000000bit limit 51",
    ]


def test_without_a_rate_one_discipline_does() -> None:
    assert commands(delay="1.5 us") == ["root handle 1: netem delay 1.500us limit 1000000"]


def test_a_queue_is_never_the_outer_discipline_whose_drops_tcp_would_hear_of() -> None:
    assert commands(rate="1 Gbit/s", queue="unlimited") == [
        "root handle 1: netem limit 1000000",
        "parent 1:1 netem rate 1000000000bit limit 1000000",
    ]


@pytest.mark.parametrize(("limit", "packets"), [("151.4 kB", 100), ("100 ms", 82), ("1 B", 1)])
def test_a_limit_in_bytes_or_time_is_that_of_full_packets(limit: str, packets: int) -> None:
    assert (
        commands(rate="10 Mbit/s", queue=limit)[1] == f"parent 1:1 netem rate 10000000bit limit {packets + 1}"
    )


def test_every_impairment_has_its_word() -> None:
    chance = {"rate": "0.1 %", "correlation": "25 %"}
    assert commands(
        delay="10 ms",
        jitter={"amount": "2 ms", "distribution": "normal"},
        loss={"gilbert_elliott": {"p": "1 %", "r": "20 %", "bad": "90 %", "good": "0.5 %"}},
        corrupt="0.2 %",
        duplicate="0.3 %",
        reorder=chance,
    ) == [
        "root handle 1: netem delay 10000.000us 2000.000us distribution normal"
        " loss gemodel 1.0000000% 20.0000000% 90.0000000% 0.5000000%"
        " corrupt 0.2000000% duplicate 0.3000000%"
        " reorder 0.1000000% 25.0000000% limit 1000000"
    ]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"up": "off"}, "up"),
        ({"at": {"1 s": {"delay": "1 ms"}}}, "at"),
        ({"rate": "1 Mbit/s", "duplicate": "1 %"}, "duplicate"),
        ({"delay": "9 ms", "reorder": {"rate": "1 %", "by": "5 ms"}}, "reorder.by"),
        ({"reorder": "1 %"}, "reorder"),
        ({"delay": "9 ms", "jitter": {"amount": "1 ms", "distribution": "pareto"}}, "jitter.distribution"),
        ({"loss": {"packets": [3]}}, "loss"),
        ({"loss": {"every": "100 packets"}}, "loss"),
        ({"rate": "1 Mbit/s", "queue": {"limit": "9 packets", "mark_above": "5 packets"}}, "queue"),
    ],
)
def test_what_netem_cannot_do_is_refused_by_name(settings: dict[str, Any], key: str) -> None:
    assert [one.key for one in unlike(1500, direction(**settings)) if one.refused] == [key]


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"delay": "9 ms", "jitter": "1 ms"}, "jitter"),
        ({"loss": {"rate": "1 %", "correlation": "25 %"}}, "loss.correlation"),
        ({"rate": "1 Mbit/s", "queue": "30 kB"}, "queue.limit"),
    ],
)
def test_what_netem_does_in_another_way_is_a_warning(settings: dict[str, Any], key: str) -> None:
    assert [(one.key, one.refused) for one in unlike(1500, direction(**settings))] == [(key, False)]


def test_each_end_sends_into_its_own_direction_and_no_burst_passes_as_one_packet() -> None:
    link = {"ends": ["a", "b"], "delay": "5 ms", "reverse": {"delay": "7 ms"}}
    network = {"nodes": ["a", "b"], "links": [link]}
    given = {"tcplab": 1, "name": "t", "network": network, "flows": [FLOW], "emulator": "netem"}
    layout = lay_out(expand(from_data(given)))
    assert layout.emulated == []
    ends = layout.wires[0].ends
    assert [end.qdiscs[0][end.qdiscs[0].index("delay") + 1] for end in ends] == ["5000.000us", "7000.000us"]
    assert all(end.offloads == {"tso": False, "gso": False, "gro": False} for end in ends)
    assert all(end.singly for end in ends)


def test_framing_and_policers_are_the_emulators() -> None:
    own: Direction = {
        **direction(rate="10 Mbit/s"),
        "overhead": {"bytes": 24},
        "policer": {"rate": 1, "burst": 1},
    }
    assert [one.key for one in unlike(1500, own) if one.refused] == ["overhead", "policer"]
