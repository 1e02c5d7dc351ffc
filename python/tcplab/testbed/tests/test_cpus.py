"""The emulator's own CPU: when it gets one, which, and for how long."""

import os

import pytest

from tcplab.testbed.cpus import Division, divide

FREE: list[dict[str, list[int]]] = [{"cpus": []}, {"cpus": []}]


@pytest.fixture
def cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not CPUs of a machine that runs labs beside this test.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {9001, 9002, 9003})


@pytest.mark.usefixtures("cpus")
def test_the_emulator_has_the_last_cpu_and_the_nodes_the_others() -> None:
    with divide(FREE, emulated=True) as division:
        assert (division.emulator, division.nodes) == ([9003], [9001, 9002])


@pytest.mark.usefixtures("cpus")
def test_labs_side_by_side_take_different_cpus_while_there_are_any() -> None:
    with divide(FREE, emulated=True) as first, divide(FREE, emulated=True) as second:
        with divide(FREE, emulated=True) as third, divide(FREE, emulated=True) as fourth:
            taken = [lab.emulator for lab in (first, second, third, fourth)]
            assert taken == [[9003], [9002], [9001], []]
            assert fourth.nodes == []
        with divide(FREE, emulated=True) as later:
            assert later.emulator == [9001]


@pytest.mark.usefixtures("cpus")
@pytest.mark.parametrize(
    ("nodes", "emulated"), [(FREE, False), ([{"cpus": []}, {"cpus": [9001]}], True)], ids=["veth", "pinned"]
)
def test_without_emulated_links_or_with_pinned_nodes_any_cpu_will_do(
    nodes: list[dict[str, list[int]]], emulated: bool
) -> None:
    assert divide(nodes, emulated=emulated) == Division()


def test_one_cpu_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {9001})
    assert divide(FREE, emulated=True) == Division()
