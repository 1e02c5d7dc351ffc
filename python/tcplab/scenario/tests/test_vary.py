"""Differences between repetitions: the phases of flows."""

from typing import Any

import pytest

from tcplab.results.manifest import plan_digest
from tcplab.scenario import expand, load, repetition, with_phases

MS = 1_000_000
SCENARIO = """
tcplab: 1
name: two
network:
  nodes:
    - {name: a, kind: host}
    - {name: b, kind: host}
    - {name: c, kind: host}
    - {name: r, kind: router}
  links:
    - {ends: [a, r], rate: 10 Mbit/s, delay: 5 ms}
    - {ends: [b, r], rate: 10 Mbit/s, delay: 45 ms}
    - {ends: [r, c], rate: 10 Mbit/s, delay: 5 ms}
flows:
  - {name: short, kind: tcp, from: a, to: c, start: 1 s, stop: 4 s}
  - {name: long, kind: udp, from: b, to: c, rate: 1 Mbit/s}
  - {name: some, kind: tcp, from: a, to: c, bytes: 1 MB}
duration: 5 s
"""
RTT = {"short": 20 * MS, "long": 100 * MS, "some": 20 * MS}


@pytest.fixture
def plan() -> Any:
    return expand(load(SCENARIO))


def test_the_first_repetition_is_exact(plan: Any) -> None:
    assert repetition(plan, 1) == plan
    assert with_phases(plan) == plan


def test_from_the_second_on_each_flow_has_a_phase_below_its_base_rtt(plan: Any) -> None:
    drawn: dict[str, list[float]] = {name: [] for name in RTT}
    for number in range(2, 202):
        own = repetition(plan, number)
        assert own["seed"] == plan["seed"] + number - 1
        assert own["phases"].keys() == RTT.keys()
        for name, phase in own["phases"].items():
            assert 0 <= phase < RTT[name]
            drawn[name].append(phase / RTT[name])
    for shares in drawn.values():
        # Of 200 uniform values the mean stays within five standard errors, 0.29 / sqrt(200) each.
        assert sum(shares) / 200 == pytest.approx(0.5, abs=0.1)
        assert min(shares) < 0.1
        assert max(shares) > 0.9
    assert all(a != b for a, b in zip(drawn["short"], drawn["some"], strict=True))


def test_a_phase_depends_on_seed_and_name_alone(plan: Any) -> None:
    fewer: Any = {**plan, "flows": plan["flows"][1:]}
    assert repetition(fewer, 3)["phases"]["long"] == repetition(plan, 3)["phases"]["long"]
    later: Any = {**plan, "seed": plan["seed"] + 1}
    assert repetition(later, 2)["phases"] == repetition(plan, 3)["phases"]


def test_no_flow_is_cut_short(plan: Any) -> None:
    own = repetition(plan, 2)
    run: Any = with_phases(own)
    phases = own["phases"]
    assert run["duration"] == plan["duration"] + max(phases.values())
    for before, after in zip(plan["flows"], run["flows"], strict=True):
        assert after["start"] == before["start"] + phases[before["name"]]
        if before["stop"] is None:
            assert after["stop"] is None
        else:
            assert after["stop"] - after["start"] == before["stop"] - before["start"]
            assert after["stop"] <= run["duration"]


def test_repetitions_have_one_digest(plan: Any) -> None:
    assert {plan_digest(repetition(plan, number)) for number in (1, 2, 3)} == {plan_digest(plan)}


def test_vary_off_and_a_path_without_delay_have_no_phases() -> None:
    off = expand(load(SCENARIO + "vary: off\n"))
    assert "phases" not in repetition(off, 2)
    short = SCENARIO.replace("delay: 5 ms", "delay: 0 s").replace("delay: 45 ms", "delay: 0 s")
    assert "phases" not in repetition(expand(load(short)), 2)
