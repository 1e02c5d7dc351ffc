"""The emulated path is the one that was asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from tcplab.results import Run

pytestmark = pytest.mark.alone

CABLE = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"]}]}
PING = {"name": "p", "kind": "ping", "interval": "5 ms"}
# Makes a run again if it says that the machine disturbed it.
Undisturbed = Callable[[Callable[[], Run]], Run]


@pytest.mark.parametrize("rtt", [1, 10, 150])
def test_an_idle_path_adds_the_rtt_asked_for_to_what_the_machine_takes(
    run: Callable[..., Run], rtt: int
) -> None:
    # The time that emulation and hosts take is measured beside it, over a link that does next to nothing.
    links = {"asked": {"rate": "1 Gbit/s", "delay": f"{rtt / 2} ms"}, "empty": {"delay": "1 us"}}
    network = {"nodes": ["hub", *links], "links": [{"ends": ["hub", to], **links[to]} for to in links]}
    flows = [{**PING, "name": to, "from": "hub", "to": to} for to in links]
    done = run(network, flows, duration="2 s")
    asked, empty = (
        done.pings.filter(flow=to)["rtt"].drop_nulls().to_numpy() / 1e6 - added
        for to, added in (("asked", rtt), ("empty", 0.002))
    )
    assert len(asked) > 100
    assert np.min(asked) >= 0, "no packet comes early"
    # Both wait for the same CPUs; the quickest tenth of each waits least.
    assert np.quantile(asked, 0.1) < np.quantile(empty, 0.9)


def test_a_cable_has_none(run: Callable[..., Run]) -> None:
    done = run(CABLE, [{**PING, "count": 200, "from": "a", "to": "b"}], timeout="20 s")
    assert np.min(done.pings["rtt"].to_numpy()) < 1_000_000
    assert not done.pings["lost"].any()


def said(done: Run, words: str) -> int:
    """How many datagrams a run's warnings say that this happened to."""
    found = [re.search(rf"(\d+) datagrams of stream 0 {words}", warning) for warning in done.warnings]
    return sum(int(match[1]) for match in found if match)


@pytest.mark.parametrize("rate", [20, 100])
def test_datagrams_through_an_ample_link_leave_at_their_rate_and_all_arrive(
    run: Callable[..., Run], rate: int
) -> None:
    flow = {"name": "u", "kind": "udp", "rate": f"{rate} Mbit/s", "payload": "1000 B", "duration": "3 s"}
    done = run(path(rate="1 Gbit/s", rtt="10 ms"), [flow], duration="4 s")
    row = done.flows.row(0, named=True)
    due = 3 * rate * 1_000_000 / 8000
    assert row["segments_sent"] + said(done, "were due but not sent in time") == pytest.approx(due, abs=2)
    dropped = said(done, "for want of a reader")
    assert row["bytes_received"] // 1000 + dropped == row["segments_sent"]
    assert row["losses_true"] == 0
    assert done.intervals["lost"].sum() <= dropped


def test_the_first_datagram_leaves_when_its_flow_starts(run: Callable[..., Run]) -> None:
    """However long it is until the second."""
    flow = {"name": "u", "kind": "udp", "rate": "1 bit/s", "payload": "1000 B"}
    done = run(path(rate="1 Gbit/s", rtt="10 ms"), [flow], duration="1 s")
    assert done.flows.select("segments_sent", "bytes_received").row(0) == (1, 1000)
    assert not done.warnings


def test_a_datagram_socket_blocks_while_its_interface_is_busy(run: Callable[..., Run]) -> None:
    nodes = ["b", {"name": "a", "nic": "10 Mbit/s"}]
    network = {"nodes": nodes, "links": [{"ends": ["a", "b"], "rate": "100 Mbit/s", "delay": "2 ms"}]}
    flow = {"name": "u", "kind": "udp", "from": "a", "to": "b", "rate": "20 Mbit/s"}
    runs = {engine: run(network, [flow], duration="3 s", engine=engine) for engine in ("sim", "kernel")}
    rows = {engine: done.flows.row(0, named=True) for engine, done in runs.items()}
    for engine, row in rows.items():
        assert row["losses_true"] == 0, engine
        # As many as the interface sends in 3 s, and as fit into the buffer of the socket.
        assert row["segments_sent"] <= 30_000_000 / (8 * 1514) + 95, engine
    late = 3 * 20_000_000 / (8 * 1472) - rows["kernel"]["segments_sent"]
    assert said(runs["kernel"], "were due but not sent in time") == pytest.approx(late, rel=0.05)


def path(**settings: Any) -> dict[str, Any]:
    return {"path": settings}


def sigma(share: float, count: int) -> float:
    """Standard deviation of a binomial count."""
    return math.sqrt(count * share * (1 - share))


# So few that the receiver's buffer holds what arrives while it has no CPU for a second.
DATAGRAMS = {"name": "u", "kind": "udp", "rate": "12 Mbit/s", "payload": "300 B", "duration": "2 s"}


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_losses_counted_at_the_receiver_are_those_asked_for(run: Callable[..., Run], share: float) -> None:
    done = run(path(rate="1 Gbit/s", rtt="4 ms", loss=f"{share:.0%}"), [DATAGRAMS], duration="3 s")
    row = done.flows.row(0, named=True)
    sent = row["segments_sent"]
    lost = sent - row["bytes_received"] // 300
    assert row["losses_true"] == lost, "the link knows of every loss"
    assert done.losses["forward"].sum() == lost, "and when it was"
    assert abs(lost - share * sent) < 4 * sigma(share, sent)


def test_duplicates_counted_at_the_receiver_are_those_asked_for(run: Callable[..., Run]) -> None:
    done = run(path(rate="1 Gbit/s", rtt="4 ms", duplicate="5 %"), [DATAGRAMS], duration="3 s")
    sent = done.flows["segments_sent"][0]
    assert abs(done.intervals["duplicates"].sum() - 0.05 * sent) < 4 * sigma(0.05, sent)


def test_losses_come_in_a_row_as_often_as_their_correlation_says(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    share, correlation = 0.1, 0.5
    loss = {"rate": f"{share:.0%}", "correlation": f"{correlation:.0%}"}
    probe = {"name": "p", "kind": "ping", "interval": "250 us", "count": 10_000}
    # A machine that drops packets, or answers after the ping's timeout, breaks the chain.
    done = undisturbed(lambda: run(path(rate="1 Gbit/s", rtt="2 ms", loss=loss), [probe], timeout="20 s"))
    lost = done.pings.sort("seq")["lost"].to_numpy()
    assert lost.size == 10_000
    # Of a two-state chain, counts vary more by (1 + c) / (1 - c).
    spread = sigma(share, lost.size) * math.sqrt((1 + correlation) / (1 - correlation))
    assert abs(lost.sum() - share * lost.size) < 4 * spread
    after_a_loss = lost[1:][lost[:-1]]
    repeated = share + correlation * (1 - share)
    assert abs(after_a_loss.sum() - repeated * after_a_loss.size) < 4 * sigma(repeated, after_a_loss.size)


def star(**spokes: dict[str, Any]) -> dict[str, Any]:
    """Links of 10 ms from a host called hub to one of each name, which impair what the hub sends."""
    links = [{"ends": ["hub", name], "delay": "10 ms", "forward": spoke} for name, spoke in spokes.items()]
    return {"nodes": ["hub", *spokes], "links": links}


def pareto(ms: np.ndarray) -> np.ndarray:
    """Distribution of a Lomax excess of shape 3 and mean 1 ms."""
    share: np.ndarray = 1 - (1 + np.maximum(ms, 0) / 2) ** -3.0
    return share


# The law of the delay's variation in ms, and its median.
LAWS: dict[str, tuple[dict[str, str], Callable[[np.ndarray], np.ndarray], float]] = {
    "uniform": ({"amount": "1.5 ms"}, stats.uniform(-1.5, 3).cdf, 0),
    "normal": ({"amount": "1 ms", "distribution": "normal"}, stats.norm(0, 1).cdf, 0),
    # Its density is greatest at 0, where what the machine adds moves most: 0.03 ms are 5 % of all.
    "pareto": ({"amount": "1 ms", "distribution": "pareto"}, pareto, 2 * (2 ** (1 / 3) - 1)),
}


# Links for each law: their jitter is independent, so that a short run sees enough of it.
SPOKES = 4


def test_jitter_follows_the_law_asked_for_whatever_else_is_on_the_link(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    names = [f"{law}{number}" for law in LAWS for number in range(SPOKES)]
    jitter = {law: {"correlation_time": "15 ms", **settings} for law, (settings, *_) in LAWS.items()}
    network = star(**{name: {"jitter": jitter[name[:-1]]} for name in names})
    probe = {"kind": "ping", "interval": "10 ms", "count": 600, "from": "hub"}
    noise = {"kind": "udp", "rate": "5 Mbit/s", "duration": "6.2 s", "from": "hub"}
    flows = [{**probe, "name": name, "to": name} for name in names]
    # Half of the probes share their link with traffic, which must not matter.
    flows += [{**noise, "name": f"u{name}", "to": name} for name in names if name[-1] in "01"]
    done = undisturbed(lambda: run(network, flows, duration="6.5 s"))
    for law, (_, distribution, median) in LAWS.items():
        for spokes in ("01", "23"):
            rows = done.pings.filter(pl.col("flow").is_in([f"{law}{number}" for number in spokes]))
            variation = rows["rtt"].to_numpy() / 1e6 - 20
            assert variation.size == 1200
            # A real machine adds some tenths of a millisecond at most.
            assert -0.3 < np.median(variation) - median < 0.5, law
            # Two links in 6 s show some 500 independent delays, whose distance is rarely above 0.08.
            distance = stats.kstest(variation - np.median(variation) + median, distribution).statistic
            assert distance < 0.08, f"{law}: {distance:.3f}"


def test_jitter_alone_keeps_the_order_and_reordering_changes_it_as_asked(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    share = 0.05
    overtaking = {"reorder": {"rate": f"{share:.0%}", "by": "900 us"}}
    # How many datagrams are overtaken depends on how evenly they leave; how early a probe is does not.
    noise = {"kind": "udp", "rate": "4 Mbit/s", "payload": "300 B", "duration": "2.4 s", "from": "hub"}
    probe = {"name": "p", "kind": "ping", "interval": "2 ms", "count": 1200, "from": "hub", "to": "probed"}
    network = star(shaken={"jitter": "2 ms"}, mixed=overtaking, probed=overtaking, damaged={"corrupt": "5 %"})
    flows = [probe, *({**noise, "name": name, "to": name} for name in ("shaken", "mixed", "damaged"))]
    done = undisturbed(lambda: run(network, flows, duration="2.6 s"))
    rows = {row["flow"]: row for row in done.flows.iter_rows(named=True)}
    late = dict(done.intervals.group_by("flow").agg(pl.col("out_of_order").sum()).iter_rows())
    assert late["shaken"] == 0
    assert late["mixed"] > 0
    assert rows["mixed"]["bytes_received"] == rows["mixed"]["bytes_sent"]
    # A damaged packet never reaches the receiving program.
    sent = rows["damaged"]["segments_sent"]
    missing = sent - rows["damaged"]["bytes_received"] // 300
    assert abs(missing - share * sent) < 4 * sigma(share, sent)
    # Those that overtake are early by as much as was asked.
    rtt = done.pings["rtt"].to_numpy() / 1e6
    early = rtt[rtt < 20 - 0.45]
    assert abs(early.size - share * 1200) < 4 * sigma(share, 1200)
    assert abs(np.median(early) - 19.1) < 0.3


def test_a_list_of_packets_is_lost_to_the_packet(run: Callable[..., Run]) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "5 Mbit/s", "payload": "300 B", "duration": "1 s"}
    done = run(path(rate="1 Gbit/s", rtt="4 ms", loss={"packets": [3, 50, 51]}), [flow], duration="1.2 s")
    assert done.flows["losses_true"][0] == 3
    assert done.intervals["lost"].sum() == 3


def test_what_comes_damaged_is_not_laid_to_a_slow_reader(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    flow = {"name": "u", "kind": "udp", "rate": "5 Mbit/s", "payload": "300 B", "duration": "1 s"}
    # A reader that got no CPU was slow indeed.
    settings = path(rate="1 Gbit/s", rtt="4 ms", corrupt="20 %")
    done = undisturbed(lambda: run(settings, [flow], duration="1.2 s"))
    assert done.intervals["lost"].sum() > 300
    # They are lost to the flow, as in the simulator, though not to the link.
    link = done.manifest.facts["emulator"]["links"]["path"]["forward"]
    assert (link["lost"], done.flows["losses_true"][0]) == (0, link["corrupted"])
    assert not [one for one in done.warnings if "for want of a reader" in one]
