"""Networks as they are drawn in reports."""

from tcplab.present.network_drawing import draw_network
from tcplab.results.tests.synthetic import plan


def test_parallel_paths_are_drawn_below_each_other() -> None:
    drawing = draw_network(plan({"one": "reno", "two": "cubic"}))
    assert drawing is not None
    places = {node.name: (node.x, node.y) for node in drawing.nodes}
    assert places["one-a"][1] == places["one-b"][1] < places["two-a"][1]
    assert places["one-a"][0] < places["one-b"][0]
    assert [link.above for link in drawing.links] == ["10 Mbit/s · 50 ms"] * 2


def test_a_large_network_is_not_drawn() -> None:
    assert draw_network(plan({f"f{i}": "reno" for i in range(20)})) is None
