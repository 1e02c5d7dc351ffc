"""Requests and echoes: both ends send, and the tables count what both do, on both engines alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run

pytestmark = pytest.mark.alone

PATH = {"rate": "100 Mbit/s", "rtt": "4 ms"}
REQUEST = {"name": "ask", "kind": "request", "request": "400 B", "response": "20 kB", "count": 40}
ECHO = {"name": "echo", "kind": "echo", "sizes": [1000, 20_000], "iterations": 40}
# Of a client's greeting and the server's answer to it, which no simulated client needs.
GREETING = 100


@pytest.mark.parametrize(
    ("flow", "payload", "slack"),
    [(REQUEST, 40 * 20_400, 0), (ECHO, 2 * 40 * 21_000, GREETING)],
    ids=["request", "echo"],
)
def test_both_engines_count_what_both_ends_send(
    flow: dict[str, Any], payload: int, slack: int, run: Callable[..., Run]
) -> None:
    for engine in ("sim", "kernel"):
        done = run({"path": PATH}, [flow], engine=engine)
        (row,) = done.flows.to_dicts()
        assert row["bytes_received"] == payload
        assert payload <= row["bytes_sent"] <= payload + slack
        # Full segments of 1,448 B and what is left, in both directions.
        assert row["segments_sent"] - row["retransmits"] >= payload / 1448
        assert row["complete"]
        sums = done.intervals.select(pl.col("bytes_sent", "bytes_received").sum()).row(0)
        assert sums == (payload, payload)
        assert set(done.sockets["node"]) == {"left", "right"}


def test_the_window_of_requests_is_that_of_who_answers_at_length(run: Callable[..., Run]) -> None:
    flow = REQUEST | {"response": "200 kB"}
    for engine in ("sim", "kernel"):
        done = run({"path": PATH}, [flow], engine=engine)
        answering = done.sockets.filter(pl.col("node") == "right")["cwnd"].to_numpy()
        asking = done.sockets.filter(pl.col("node") == "left")["cwnd"].to_numpy()
        assert answering.mean() > 2 * asking.mean()
        # Over time in the simulator, over samples on the kernel.
        assert done.flows["cwnd_mean"][0] == pytest.approx(answering.mean(), rel=0.15)


@pytest.mark.parametrize(("count", "complete"), [({}, True), ({"count": 1}, False)], ids=["endless", "one"])
def test_requests_without_a_number_are_complete_though_the_last_is_not_answered(
    count: dict[str, int], complete: bool, run: Callable[..., Run]
) -> None:
    flow = {"name": "ask", "kind": "request", "request": "400 B", "response": "1 GB"} | count
    for engine in ("sim", "kernel"):
        done = run({"path": PATH}, [flow], engine=engine, duration="2 s")
        assert done.flows["complete"].to_list() == [complete], engine


def test_losses_of_both_directions_count(run: Callable[..., Run]) -> None:
    path = PATH | {"loss": "1 %", "reverse": {"loss": "5 %"}}
    done = run({"path": path}, [REQUEST | {"count": 60}], duration="120 s")
    links = done.queues.group_by("direction").agg(pl.col("lost").max())
    assert (links["lost"] > 0).all()
    assert done.flows["losses_true"][0] == links["lost"].sum()
