"""Datagrams of a Poisson process on real sockets."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import queueing

from tcplab.results import Run

RATE = 10_000_000


def asked(**settings: object) -> dict[str, object]:
    """A scenario of some 6000 datagrams in 10 s, without what the fixture `run` adds."""
    scenario = queueing.scenario(RATE, 0.5, 6000)
    scenario["flows"][0] |= settings
    return {key: value for key, value in scenario.items() if key not in ("tcplab", "name")}


def test_intervals_have_the_mean_and_the_distribution_of_exponential_times(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    between = queueing.intervals(undisturbed(lambda: run(**asked())))
    error = 1 / math.sqrt(len(between))
    assert between.mean() == pytest.approx(2 * queueing.service(RATE), rel=4 * error)
    # The Kolmogorov-Smirnov distance, which exceeds this once in 1000 times. A sender that had no CPU for
    # 50 ms, and then sends 30 datagrams at once, adds half a percent to it; to the variance it adds 15 %.
    below = 1 - np.exp(-np.sort(between) / between.mean())
    places = np.arange(len(between) + 1) / len(between)
    assert max((below - places[:-1]).max(), (places[1:] - below).max()) < 1.95 * error


def test_streams_are_independent_and_a_number_of_bytes_ends_them(run: Callable[..., Run]) -> None:
    done = run(**asked(streams=3, bytes="100 kB", rate="1 Mbit/s"))
    flows = done.flows.sort("stream")
    assert flows["bytes_sent"].to_list() == [100_000] * 3
    assert flows["complete"].all()
    # A sum of 100 intervals; two streams would end together if their intervals were the same.
    ends = flows["end"].to_list()
    assert min(abs(a - b) for a, b in zip(ends, ends[1:] + ends[:1], strict=True)) > 1_000_000
