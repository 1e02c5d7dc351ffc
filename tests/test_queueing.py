"""Datagrams of a Poisson process against the theory of queues: M/D/1, without a limit and with one.

Bounds are four standard errors of what is estimated, by the means of 40 batches of some thousand packets
each: see `estimate` in scripts/queueing.py. The seeds are fixed, so that a test which passes always does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import queueing

import tcplab

RATE = 100_000_000
COUNT = 300_000

Simulate = Callable[..., tcplab.Run]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Run a scenario in the simulator."""

    def run(scenario: dict[str, Any], name: str = "run", **options: Any) -> tcplab.Run:
        return tcplab.run(scenario, output=tmp_path / name, **options)

    return run


def test_the_theory_of_a_queue_with_a_limit_has_the_values_known() -> None:
    # Where nothing may wait: the Erlang B formula, which holds for any distribution of service times.
    assert queueing.loss(0.9, 0) == pytest.approx(0.9 / 1.9)
    # Where one may, a departure leaves nothing behind if nothing came during its service.
    assert queueing.loss(1.0, 1) == pytest.approx(1 - 1 / (math.exp(-1) + 1))
    # A queue that is hardly ever empty drops half of twice its rate.
    assert queueing.loss(2.0, 30) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("streams", [1, 100], ids=["one-source", "hundred-sources"])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_the_mean_wait_is_that_of_m_d_1(load: float, streams: int, simulate: Simulate) -> None:
    """Hundred independent sources are a Poisson process together, as one is."""
    run = simulate(queueing.scenario(RATE, load, COUNT, streams=streams))
    wait, error = queueing.estimate(queueing.waits(run, RATE))
    expected = queueing.mean_wait(load)
    assert error < 0.04 * expected
    assert wait == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("queue", [{}, {"queue": {"kind": "fq_codel"}}], ids=["droptail", "fq_codel"])
def test_queueing_of_the_summary_is_the_wait_of_packets(queue: dict[str, Any], simulate: Simulate) -> None:
    """Departures are computed ahead, or step by step for the table of packets."""
    scenario = queueing.scenario(RATE, 0.8, 30_000)
    scenario["network"]["path"] |= queue
    scenario["sample"]["queues"] = "10 ms"
    scenario["omit"] = "0 s"
    stepwise = simulate(scenario, "stepwise")
    scenario["sample"]["packets"] = False
    found = [run.summary().links[0].figures for run in (simulate(scenario, "ahead"), stepwise)]
    delays = [(one["queueing_delay"].value, one["queueing_delay_p95"].value) for one in found]
    assert delays[0] == delays[1]
    waits = queueing.waits(stepwise, RATE, warm_up=0) * queueing.service(RATE)
    assert delays[0][0] == pytest.approx(waits.mean(), rel=1e-3)
    # Means of the packets that began in each period, as often as there are such packets.
    began = np.ceil((queueing.arrivals(stepwise)[: len(waits)] + waits) / 10e6)
    _, period, packets = np.unique(began, return_inverse=True, return_counts=True)
    means = (np.bincount(period, waits) / packets)[period]
    assert delays[0][1] == pytest.approx(np.quantile(means, 0.95, method="inverted_cdf"), rel=1e-3)


@pytest.mark.parametrize(("load", "limit"), [(0.8, 4), (0.9, 9), (1.2, 9)])
def test_a_queue_with_a_limit_drops_what_m_d_1_k_does(load: float, limit: int, simulate: Simulate) -> None:
    run = simulate(queueing.scenario(RATE, load, COUNT, limit=limit))
    share, error = queueing.estimate(queueing.dropped(run))
    expected = queueing.loss(load, limit)
    assert error < 0.04 * expected
    assert share == pytest.approx(expected, abs=4 * error)


def test_equal_intervals_never_wait(simulate: Simulate) -> None:
    even = queueing.scenario(RATE, 0.9, 10_000)
    del even["flows"][0]["spacing"]
    assert np.abs(queueing.waits(simulate(even), RATE)).max() < 1e-4


def test_intervals_are_exponential_and_independent(simulate: Simulate) -> None:
    between = queueing.intervals(simulate(queueing.scenario(RATE, 0.5, 100_000)))
    mean, count = between.mean(), len(between)
    error = 1 / math.sqrt(count)
    assert mean == pytest.approx(2 * queueing.service(RATE), rel=4 * error)
    # The coefficient of variation of n exponential times has a standard error of 1 / sqrt(n).
    assert between.std() / mean == pytest.approx(1, abs=4 * error)
    assert np.corrcoef(between[1:], between[:-1])[0, 1] == pytest.approx(0, abs=4 * error)
    # The distance of Kolmogorov and Smirnov, which is above 1.95 / sqrt(n) once in a thousand times.
    below = 1 - np.exp(-np.sort(between) / (2 * queueing.service(RATE)))
    steps = np.arange(count + 1) / count
    assert max(np.abs(below - steps[1:]).max(), np.abs(below - steps[:-1]).max()) < 1.95 * error


def test_each_repetition_draws_its_own_intervals_and_a_seed_repeats_them(simulate: Simulate) -> None:
    scenario = queueing.scenario(RATE, 0.5, 2000)
    one, same, three = simulate(scenario), simulate(scenario, "same"), simulate(scenario, "three", repeat=3)
    assert one.packets.equals(same.packets)
    sent = three.flows.sort("repetition")["segments_sent"].to_list()
    assert len({*sent}) == 3, sent
    assert sent[0] == one.flows["segments_sent"][0]
