"""Queues that mark, on the real Linux stack: ECN is negotiated, marks reach the receiver and are answered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from tcplab.results import Run
from tcplab.testbed.controls import loader

pytestmark = pytest.mark.alone

# Makes a run again if it says that the machine disturbed it.
Undisturbed = Callable[[Callable[[], Run]], Run]
SECOND = 1_000_000_000
THRESHOLD = 65
PATH = {
    "rate": "100 Mbit/s",
    "rtt": "10 ms",
    "queue": {"kind": "droptail", "limit": "1 MB", "mark_above": f"{THRESHOLD} packets"},
    "per_flow": "on",
}
ECN = {"left": {"ecn": "on"}, "right": {"ecn": "on"}}
# A sender that stood still for some ms then sends all that it may, so the queue is judged by what it holds
# for this share of the time.
MOSTLY = 0.95


def queue(run: Run, link: str) -> pl.DataFrame:
    return run.queues.filter(pl.col("direction") == "forward", link=link)


def test_marks_are_made_for_those_who_negotiated_ecn_and_nobody_else(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    flow = {"name": "reno", "kind": "tcp", "cc": "reno"}
    without = run({"path": PATH}, [flow], duration="3 s")
    assert without.queues["marks"].to_numpy().max() == 0

    done = undisturbed(lambda: run({"path": PATH | ECN}, [flow], duration="4 s"))
    assert done.queues["marks"].to_numpy().max() > 0
    assert done.queues["drops"].to_numpy().max() == 0
    assert done.flows["retransmits"].to_list() == [0]
    # An echo arrives a round trip after the threshold was passed, in which the window grew by a packet; what
    # exceeds that are the bursts of the sender.
    waiting = done.queues.filter(pl.col("time") > SECOND, pl.col("direction") == "forward")["packets"]
    assert np.quantile(waiting, MOSTLY) < THRESHOLD + 30


def test_our_controls_answer_marks(
    run: Callable[..., Run], undisturbed: Undisturbed, usual_goodput: Callable[..., float]
) -> None:
    """dctcp holds the queue near the threshold (RFC 8257), the versions of BBR keep it below."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])
    names = ["dctcp", "bbr2", "bbr3"]
    flows = [{"name": name, "kind": "tcp", "cc": f"tl_{name}"} for name in names]
    done = undisturbed(lambda: run({"path": PATH | ECN}, flows, duration="6 s", sample={"queues": "2 ms"}))
    links = list(dict.fromkeys(done.queues["link"]))
    assert len(links) == len(names)
    for name, link in zip(names, links, strict=True):
        rows = queue(done, link).filter(pl.col("time") > 2 * SECOND)
        waiting = rows["packets"].to_numpy()
        assert rows["drops"].to_list()[-1] == 0
        assert rows["marks"].to_list()[-1] > 0
        assert np.quantile(waiting, MOSTLY) < THRESHOLD + 30
        if name.startswith("bbr"):
            assert np.median(waiting) < THRESHOLD
        else:
            # The product is 82 packets, so the swing is sqrt(2 * 147) / 2 = 9, and a burst's 8 segments.
            assert np.median(waiting) == pytest.approx(THRESHOLD, abs=20)
    goodput = {name: usual_goodput(done, name, after=2) for name in names}
    assert goodput["dctcp"] > 0.97 * 100e6 * 1448 / 1514
    assert min(goodput.values()) > 0.75 * 100e6
