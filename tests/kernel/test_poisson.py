"""Datagrams of a Poisson process on real sockets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import queueing

from tcplab.results import Run

MS = 1_000_000
RATE = 10_000_000


def asked(**settings: object) -> dict[str, object]:
    """A scenario of some 6000 datagrams in 10 s, without what the fixture `run` adds."""
    scenario = queueing.scenario(RATE, 0.5, 6000)
    scenario["flows"][0] |= settings
    return {key: value for key, value in scenario.items() if key not in ("tcplab", "name")}


def test_datagrams_leave_when_those_of_the_simulator_do(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    """Whose intervals are those of a Poisson process: see `queueing`."""
    due = queueing.arrivals(run(engine="sim", **asked()))
    left = queueing.arrivals(undisturbed(lambda: run(**asked())))
    # One that is due as the run ends may miss it.
    assert len(due) - 1 <= len(left) <= len(due)
    late = left - due[: len(left)]
    assert late.min() >= 0
    # A sender that had no CPU for a while sends at once what was due meanwhile.
    assert np.median(late) < 0.5 * MS


def test_streams_are_independent_and_a_number_of_bytes_ends_them(run: Callable[..., Run]) -> None:
    done = run(**asked(streams=3, bytes="100 kB", rate="1 Mbit/s"))
    flows = done.flows.sort("stream")
    assert flows["bytes_sent"].to_list() == [100_000] * 3
    assert flows["complete"].all()
    # A sum of 100 intervals; two streams would end together if their intervals were the same.
    ends = flows["end"].to_list()
    assert min(abs(a - b) for a, b in zip(ends, ends[1:] + ends[:1], strict=True)) > 1_000_000
