"""The emulated path is the one that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcplab.results import Run

CABLE = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"]}]}
PING = {"name": "p", "kind": "ping", "interval": "5 ms"}


@pytest.mark.parametrize("rtt", [1, 10, 150])
def test_an_idle_path_has_the_rtt_asked_for(run: Callable[..., Run], rtt: int) -> None:
    done = run(path(rate="1 Gbit/s", rtt=f"{rtt} ms"), [PING], duration="2 s")
    if done.manifest.overload:
        pytest.skip(done.manifest.overload)
    pings = done.pings.filter(pl.col("rtt").is_not_null())
    off = pings["rtt"].to_numpy() / 1e6 - rtt
    assert pings.height > 300
    assert np.min(off) >= 0
    assert np.median(off) < 0.2


def test_a_cable_has_none(run: Callable[..., Run]) -> None:
    done = run(
        {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"]}]},
        [{**PING, "from": "a", "to": "b"}],
        duration="1 s",
    )
    assert np.median(done.pings["rtt"].to_numpy()) < 1_000_000
    assert not done.pings["lost"].any()


@pytest.mark.parametrize("rate", [20, 100])
def test_datagrams_through_an_ample_link_all_arrive_at_their_rate(run: Callable[..., Run], rate: int) -> None:
    flow = {"name": "u", "kind": "udp", "rate": f"{rate} Mbit/s", "duration": "3 s"}
    done = run(path(rate="1 Gbit/s", rtt="10 ms"), [flow], duration="3.2 s")
    row = done.flows.row(0, named=True)
    assert row["bytes_sent"] == row["bytes_received"]
    assert row["losses_true"] == 0
    assert done.intervals["lost"].sum() == 0
    assert row["bytes_sent"] * 8 / 3 == pytest.approx(rate * 1e6, rel=0.005)


def path(**settings: Any) -> dict[str, Any]:
    return {"path": settings}


def sigma(share: float, count: int) -> float:
    """Standard deviation of a binomial count."""
    return math.sqrt(count * share * (1 - share))


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_losses_counted_at_the_receiver_are_those_asked_for(run: Callable[..., Run], share: float) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "30 Mbit/s", "payload": "300 B", "duration": "2 s"}
    done = run(path(rate="1 Gbit/s", rtt="4 ms", loss=f"{share:.0%}"), [flow], duration="2.2 s")
    row = done.flows.row(0, named=True)
    sent = row["segments_sent"]
    lost = sent - row["bytes_received"] // 300
    assert row["losses_true"] == lost, "the link knows of every loss"
    assert abs(lost - share * sent) < 4 * sigma(share, sent)


def test_duplicates_counted_at_the_receiver_are_those_asked_for(run: Callable[..., Run]) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "30 Mbit/s", "payload": "300 B", "duration": "2 s"}
    done = run(path(rate="1 Gbit/s", rtt="4 ms", duplicate="5 %"), [flow], duration="2.2 s")
    sent = done.flows["segments_sent"][0]
    assert abs(done.intervals["duplicates"].sum() - 0.05 * sent) < 4 * sigma(0.05, sent)


def test_packets_that_skip_the_delay_come_out_of_order(run: Callable[..., Run]) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "30 Mbit/s", "payload": "300 B", "duration": "2 s"}
    done = run(path(rate="1 Gbit/s", rtt="20 ms", reorder="2 %"), [flow], duration="2.2 s")
    sent = done.flows["segments_sent"][0]
    assert done.intervals["out_of_order"].sum() > 0
    assert done.flows["bytes_received"][0] == done.flows["bytes_sent"][0]
    events: dict[str, Any] = done.manifest.facts["emulator"]["links"]["path"]["forward"]
    assert events["delivered"] >= sent


def test_a_list_of_packets_is_lost_to_the_packet(run: Callable[..., Run]) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "5 Mbit/s", "payload": "300 B", "duration": "1 s"}
    done = run(path(rate="1 Gbit/s", rtt="4 ms", loss={"packets": [3, 50, 51]}), [flow], duration="1.2 s")
    assert done.flows["losses_true"][0] == 3
    assert done.intervals["lost"].sum() == 3
