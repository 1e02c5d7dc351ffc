from typing import Any

import pytest

from tcplab.plan.describe import change_words, impairment_words, loss_words, queue_words, traffic_words
from tcplab.present.network_drawing import draw_network
from tcplab.results.tests.synthetic import MS, SECOND, direction, plan


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            {"kind": "random", "chance": {"rate": 5_000_000, "correlation": 250_000_000}},
            "0.5 % (correlation 25 %) lost at random",
        ),
        ({"kind": "every", "packets": 1000, "first": 1}, "every 1000th packet lost, from number 1 on"),
        ({"kind": "every", "packets": 2, "first": 1}, "every 2nd packet lost, from number 1 on"),
        ({"kind": "every", "packets": 113, "first": 1}, "every 113th packet lost, from number 1 on"),
        ({"kind": "list", "packets": [3, 9]}, "packets 3, 9 lost"),
        ({"kind": "list", "packets": [1, 2, 3, 4, 5, 6, 7, 8]}, "packets 1, 2, 3, 4, 5, 6, 7, 8 lost"),
        (
            {"kind": "list", "packets": [1, 2, 3, 4, 5, 6, 7, 8, 9]},
            "packets 1, 2, 3, 4, 5, 6, 7, 8 and more lost",
        ),
        (
            {"kind": "gilbert_elliott", "p": 1_000_000, "r": 500_000_000, "bad": 10**9, "good": 0},
            "Gilbert-Elliott loss (p 0.1 %, r 50 %, bad 100 %, good 0 %)",
        ),
    ],
)
def test_loss_in_words(model: dict[str, Any], expected: str) -> None:
    assert loss_words({"model": model, "before_queue": False}) == expected


def test_queue_limits_in_words() -> None:
    assert queue_words(direction(limit={"packets": 100})) == "droptail, 100 packets"
    assert queue_words(direction(limit={"bytes": 200_000})) == "droptail, 200 kB"
    assert queue_words(direction()) == "droptail, no limit"
    marking = direction(limit={"bytes": 1_000_000})
    marking["queue"]["mark_above"] = {"packets": 65}
    assert queue_words(marking) == "droptail, 1 MB, marks above 65 packets"


def test_impairments_stand_in_the_order_in_which_they_strike() -> None:
    everything = {
        **direction(),
        "loss": {"model": {"kind": "list", "packets": [1]}, "before_queue": True},
        "corrupt": {"rate": 10**7, "correlation": 0},
        "duplicate": {"rate": 10**7, "correlation": 0},
        "jitter": {"distribution": "normal", "amount": 2 * MS, "correlation_time": 100 * MS},
        "reorder": {"chance": {"rate": 10**8, "correlation": 0}, "by": None},
    }
    assert impairment_words(everything) == [
        "packets 1 lost, before the queue",
        "1 % corrupted",
        "1 % duplicated",
        "jitter 2 ms (normal)",
        "10 % sent ahead",
    ]


def test_changes_in_words() -> None:
    changing = {**direction(), "changes": [{"at": 20 * SECOND, "rate": 20_000_000, "up": True}]}
    assert change_words(changing) == ["from 20 s: rate 20 Mbit/s, up"]


def test_traffic_in_words() -> None:
    udp = {"kind": "udp", "rate": 20_000_000, "payload": 1472, "bytes": None, "pattern": None}
    assert traffic_words(udp) == "UDP at 20 Mbit/s, 1472 B datagrams"
    request = {"kind": "request", "request": 100, "response": 10_000, "think": 0, "count": 5}
    assert traffic_words(request) == "requests of 100 B, responses of 10 kB, 5 times"


def test_parallel_paths_are_drawn_below_each_other() -> None:
    drawing = draw_network(plan({"one": "reno", "two": "cubic"}))
    assert drawing is not None
    places = {node.name: (node.x, node.y) for node in drawing.nodes}
    assert places["one-a"][1] == places["one-b"][1] < places["two-a"][1]
    assert places["one-a"][0] < places["one-b"][0]
    assert [link.above for link in drawing.links] == ["10 Mbit/s · 50 ms"] * 2


def test_a_large_network_is_not_drawn() -> None:
    assert draw_network(plan({f"f{i}": "reno" for i in range(20)})) is None
