"""The drafts of BBRv2 and BBRv3 on their phases and bounds, against what the simulator's flows do.

Version 2 is draft-cardwell-iccrg-bbr-congestion-control-02, version 3 is draft-ietf-ccwg-bbr-06.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

import tcplab

Simulate = Callable[[str], tcplab.Run]

SECOND = 1_000_000_000
VERSIONS = ["bbr2", "bbr3"]
CYCLE = ["PROBE_BW_DOWN", "PROBE_BW_CRUISE", "PROBE_BW_REFILL", "PROBE_BW_UP"]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Run the text of a scenario in the simulator, each in a directory of its own."""
    numbers = itertools.count()
    return lambda text: tcplab.run(text, output=tmp_path / f"run-{next(numbers)}")


def one_flow(cc: str, path: str, duration: str = "20 s", more: str = "") -> str:
    """A scenario with one bulk flow, sampled every millisecond."""
    return f"""
        tcplab: 1
        name: one-flow
        network: {{path: {{{path}}}}}
        flows: [{{name: bulk, kind: tcp, cc: {cc}, duration: {duration}{more}}}]
        sample: {{sockets: 1 ms, queues: 1 ms}}
    """


def phases(run: tcplab.Run) -> list[tuple[str, float]]:
    """The phases in order, each with the second it began at."""
    changes = run.events.filter(pl.col("event") == "phase").sort("time", maintain_order=True)
    return [(str(name), time / SECOND) for name, time in changes.select("detail", "time").iter_rows()]


def numbers(values: pl.Series) -> npt.NDArray[np.float64]:
    """The values that are there."""
    return values.drop_nulls().cast(pl.Float64).to_numpy()


def samples_of(run: tcplab.Run, phase: str) -> pl.DataFrame:
    return run.sockets.filter(pl.col("phase") == phase)


@pytest.mark.parametrize("cc", VERSIONS)
def test_startup_ends_three_rounds_after_the_bandwidth_stops_rising(cc: str, simulate: Simulate) -> None:
    """v2 section 4.3.1.2, v3 section 5.3.1.2. Nothing is lost in an ample buffer. Doubling each 50 ms from 10
    packets, 20 Mbit/s (83 packets) are full after four rounds; the next three, in which the queue doubles the
    round-trip time, show that the rate no longer rises."""
    run = simulate(one_flow(cc, "rate: 20 Mbit/s, rtt: 50 ms, queue: 1 MB", "3 s"))
    (first, _), (second, at), (third, _) = phases(run)[:3]
    # DOWN ends with the ACK that began it if that leaves no more than a BDP in flight, for so does DRAIN.
    assert (first, second) == ("STARTUP", "DRAIN")
    assert third in ("PROBE_BW_DOWN", "PROBE_BW_CRUISE")
    assert (1 + 4 + 3) * 0.05 <= at <= (1 + 4 + 1 + 4 * 2) * 0.05
    assert run.flows["retransmits"][0] == 0
    estimate = numbers(samples_of(run, "DRAIN")["bandwidth"])
    # The estimate counts payload: 1448 of 1514 bytes.
    assert estimate.max() == pytest.approx(20e6 * 1448 / 1514, rel=0.02)


@pytest.mark.parametrize("cc", VERSIONS)
def test_startup_ends_on_two_percent_loss_in_a_round(cc: str, simulate: Simulate) -> None:
    """v2 section 4.3.1.3, v3 section 5.3.1.3: 5 % random loss ends it before the path is full."""
    path = "rate: 200 Mbit/s, rtt: 50 ms, queue: 10 MB"
    lossy = simulate(one_flow(cc, f"{path}, loss: 5 %", "3 s"))
    slight = simulate(one_flow(cc, f"{path}, loss: 0.5 %", "3 s"))
    assert phases(lossy)[1][0] == "DRAIN"
    assert numbers(samples_of(lossy, "STARTUP")["bandwidth"]).max() < 100e6
    assert numbers(samples_of(slight, "STARTUP")["bandwidth"]).max() > 180e6


@pytest.mark.parametrize("cc", VERSIONS)
def test_probe_bw_goes_down_cruises_refills_and_goes_up(cc: str, simulate: Simulate) -> None:
    """v2 section 4.3.3, v3 section 5.3.3, with a probe 2 to 3 s after the last or ProbeRTT, or sooner (when
    Reno would have had a loss: after min(BDP, 63) rounds)."""
    run = simulate(one_flow(cc, "rate: 50 Mbit/s, rtt: 40 ms, queue: 1 BDP", "30 s"))
    seen = phases(run)
    cycles = [phase for phase in seen if phase[0] in CYCLE]
    follow = {(earlier, later) for (earlier, _), (later, _) in itertools.pairwise(cycles)}
    # ProbeRTT may come in between, and ends in CRUISE.
    assert set(zip(CYCLE, CYCLE[1:] + CYCLE[:1], strict=True)) <= follow
    assert ("PROBE_BW_CRUISE", "PROBE_BW_UP") not in follow
    assert ("PROBE_BW_REFILL", "PROBE_BW_DOWN") not in follow
    # Waiting begins anew with DOWN, and with CRUISE after ProbeRTT.
    for (before, began), (name, at), (after, ended) in zip(seen, seen[1:], seen[2:], strict=False):
        if name == "PROBE_BW_CRUISE" and after == "PROBE_BW_REFILL":
            since = began if before == "PROBE_BW_DOWN" else at
            assert 1.0 <= ended - since <= 3.1
    assert sum(name == "PROBE_BW_UP" for name, _ in seen) >= 8
    pacing = {phase: float(np.median(numbers(samples_of(run, phase)["pacing_gain"]))) for phase in CYCLE}
    assert pacing == pytest.approx(dict(zip(CYCLE, (0.9, 1.0, 1.0, 1.25), strict=True)), abs=0.005)


@pytest.mark.parametrize("cc", VERSIONS)
def test_probe_rtt_comes_every_five_seconds_at_half_the_product(cc: str, simulate: Simulate) -> None:
    """v2 section 4.3.4, v3 section 5.3.4. 50 Mbit/s and 40 ms are 165 packets, of which half is 82."""
    run = simulate(one_flow(cc, "rate: 50 Mbit/s, rtt: 40 ms, queue: 1 BDP", "30 s"))
    entered = [at for name, at in phases(run) if name == "PROBE_RTT"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(entered)]
    assert len(entered) >= 4
    # The interval runs from the end of the one before, which lasts 200 ms and up to three rounds.
    assert all(5.0 <= gap <= 5.0 + 0.2 + 4 * 0.05 for gap in gaps)
    held = samples_of(run, "PROBE_RTT")
    product = 50e6 * 0.04 / 8 / 1514
    assert float(np.median(numbers(held["cwnd"]))) == pytest.approx(product / 2, rel=0.05)
    assert numbers(held["inflight"]).min() > 4


@pytest.mark.parametrize("cc", VERSIONS)
def test_after_a_probe_that_lost_cruising_leaves_fifteen_percent_of_headroom(
    cc: str, simulate: Simulate
) -> None:
    """v2 section 4.3.3.6, v3 section 5.3.3.9. UP and DOWN bound the window by inflight_hi (longterm), CRUISE
    by 85 % of it."""
    run = simulate(one_flow(cc, "rate: 50 Mbit/s, rtt: 40 ms, queue: 0.2 BDP", "20 s"))
    samples = run.sockets.filter(pl.col("time") > 3 * SECOND).sort("time")
    spans = samples.with_columns(span=(pl.col("phase") != pl.col("phase").shift()).fill_null(True).cum_sum())
    highest = list(
        spans.group_by("span", maintain_order=True)
        .agg(phase=pl.col("phase").first(), cwnd=pl.col("cwnd").max(), last=pl.col("cwnd").last())
        .iter_rows(named=True)
    )
    checked = 0
    for up, down, cruise in zip(highest, highest[1:], highest[2:], strict=False):
        if [span["phase"] for span in (up, down, cruise)] == [
            "PROBE_BW_UP",
            "PROBE_BW_DOWN",
            "PROBE_BW_CRUISE",
        ]:
            bound = max(up["cwnd"], down["cwnd"])
            assert cruise["last"] <= math.ceil(0.85 * bound)
            checked += 1
    assert checked >= 2
    # So a buffer of 0.2 BDP is not overrun but by probing.
    assert numbers(run.queues["drops"]).max() < 0.01 * run.flows["segments_sent"][0]


@pytest.mark.parametrize("cc", VERSIONS)
def test_loss_while_cruising_lowers_the_bounds_until_the_next_refill(cc: str, simulate: Simulate) -> None:
    """v2 section 4.5.6.3, v3 section 5.5.10.3: a round with loss outside of probing sets the short-term
    bounds to what was delivered, at least 0.7 of what they were. The link drops to 20 of 50 Mbit/s and comes
    back."""
    at = "at: {8 s: {rate: 20 Mbit/s}, 8.5 s: {rate: 50 Mbit/s}}"
    run = simulate(one_flow(cc, f"rate: 50 Mbit/s, rtt: 40 ms, queue: 0.5 BDP, {at}", "16 s"))
    refills = [at for name, at in phases(run) if name == "PROBE_BW_REFILL" and at > 8.6]
    between = run.sockets.filter(pl.col("time").is_between(8.4 * SECOND, refills[0] * SECOND, closed="left"))
    assert numbers(between["bandwidth"]).min() < 30e6
    after = run.sockets.filter(pl.col("time") > (refills[0] + 0.1) * SECOND)
    assert numbers(after["bandwidth"]).max() == pytest.approx(50e6 * 1448 / 1514, rel=0.03)


@pytest.mark.parametrize("cc", VERSIONS)
def test_marks_are_answered_where_ecn_was_negotiated(cc: str, simulate: Simulate) -> None:
    """v3 section 3.7: marks must be taken for congestion. The link drops to 20 of 50 Mbit/s, with a buffer
    that loses nothing; packets that find more than a tenth of a BDP waiting are marked."""
    queue = "queue: {kind: droptail, limit: 4 BDP, mark_above: 0.1 BDP}, at: {8 s: {rate: 20 Mbit/s}}"
    path = f"rate: 50 Mbit/s, rtt: 40 ms, {queue}"
    with_ecn = simulate(one_flow(cc, f"{path}, left: {{ecn: on}}", "10 s"))
    without = simulate(one_flow(cc, path, "10 s"))
    waiting = [
        numbers(
            run.queues.filter(pl.col("time") > 9 * SECOND, pl.col("direction") == "forward")["packets"]
        ).mean()
        for run in (with_ecn, without)
    ]
    assert waiting[0] < 0.1 * waiting[1]
    assert numbers(without.queues["marks"]).max() == 0
    assert with_ecn.flows["retransmits"][0] == 0
    # The path is used all the same.
    rates = with_ecn.intervals.filter(pl.col("time") > 9 * SECOND)["goodput"]
    assert numbers(rates).mean() > 0.85 * 20e6 * 1448 / 1514


@pytest.mark.parametrize(("sack", "ends"), [("on", False), ("off", True)])
def test_startup_ends_on_any_loss_where_there_is_no_sack(sack: str, ends: bool, simulate: Simulate) -> None:
    """v3 section 5.3.1.3, and section 5.5.10.2's has_selective_acks. One packet of the fourth round is lost,
    less than 2 % of a flight; the pipe of 1 Gbit/s is not full for another six."""
    run = simulate(
        f"""
        tcplab: 1
        name: one-loss
        network:
          path:
            rate: 1 Gbit/s
            rtt: 100 ms
            queue: 10 MB
            loss: {{packets: [100]}}
            left: {{sack: {sack}}}
            right: {{sack: {sack}}}
        flows: [{{name: bulk, kind: tcp, cc: bbr3, duration: 0.8 s}}]
        sample: {{sockets: 1 ms}}
        """
    )
    assert run.flows["retransmits"][0] == 1
    recovered = run.sockets.filter(pl.col("state") == "recovery")
    assert recovered.height > 0
    assert (numbers(run.sockets["time"]).max() - recovered["time"][0]) > 0.1 * SECOND
    assert ("DRAIN" in [name for name, _ in phases(run)]) is ends
