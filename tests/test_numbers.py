"""The simulator's flows against theory and published measurement.

A full segment carries 1448 B of payload (1500 B of IP less 20 B IP, 20 B TCP and 12 B timestamps) in a frame
of 1514 B.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import tcplab

Simulate = Callable[[str], tcplab.Run]

PAYLOAD = 1448
FRAME = 1514
SECOND = 1_000_000_000
LOSS_RATES = [1e-4, 3e-4, 1e-3, 3e-3]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Run the text of a scenario in the simulator."""
    return lambda text: tcplab.run(text, output=tmp_path / "run")


def goodput(run: tcplab.Run, flow: str, start: float, end: float = math.inf) -> float:
    """Mean goodput in bit/s of a flow over the intervals within [start, end] seconds."""
    rows = run.intervals.filter(
        (pl.col("flow") == flow)
        & (pl.col("time") - pl.col("duration") >= start * SECOND)
        & (pl.col("time") <= end * SECOND)
    )
    return 8 * float(rows["bytes_received"].sum()) / (float(rows["duration"].sum()) / SECOND)


def extremes(values: pl.Series) -> tuple[float, float]:
    """The minimum and the greatest of the values that are there."""
    known = values.drop_nulls().cast(pl.Float64).to_numpy()
    return float(known.min()), float(known.max())


def test_cubic_fills_a_link_with_an_ample_buffer(simulate: Simulate) -> None:
    """Once the window has filled path and buffer, the bottleneck never idles: the flow gets the link's rate,
    less headers. The delay is then the path's plus the queue's, and nothing else."""
    run = simulate("""
        tcplab: 1
        name: ample-buffer
        network:
          path: {rate: 100 Mbit/s, rtt: 50 ms, queue: {kind: droptail, limit: 625 packets}}
        flows:
          - {name: bulk, kind: tcp, cc: cubic, duration: 60 s}
    """)
    assert goodput(run, "bulk", 10) == pytest.approx(100e6 * PAYLOAD / FRAME, rel=0.01)

    base = 50_000_000
    # The queue's 625 frames, the one being sent, and the ACK's own serialisation (66 B and 14 B of Ethernet).
    drain = (626 * FRAME + 80) * 8 * SECOND // 100_000_000
    assert extremes(run.sockets["srtt"])[0] >= base
    # The first sample after a recovery remembers it.
    state = pl.col("state")
    open_before = run.sockets.filter((state == "open") & (state.shift(1) == "open"))
    assert extremes(open_before["srtt"])[1] <= base + drain
    # The RTT that Linux measures is not the path's alone: while data is missing its receiver holds ACKs
    # back for up to 1 ms (`tcp_comp_sack_delay_ns`).
    assert extremes(run.sockets["srtt"])[1] <= base + drain + 1_000_000
    assert extremes(run.sockets["min_rtt"])[0] >= base
    flow = run.flows.row(0, named=True)
    assert base <= flow["rtt_p50"] <= flow["rtt_p99"] <= base + drain
    assert extremes(run.queues.filter(pl.col("direction") == "forward")["packets"])[1] <= 625


def test_over_ipv6_the_longer_header_is_missing_from_the_goodput(simulate: Simulate) -> None:
    """40 B of IP header instead of 20 B leave 1428 B of payload in a frame."""
    run = simulate("""
        tcplab: 1
        name: ipv6
        network:
          path: {rate: 100 Mbit/s, rtt: 10 ms, queue: 4 BDP}
        flows:
          - {name: bulk, kind: tcp, cc: cubic, ip: 6, duration: 10 s}
    """)
    assert goodput(run, "bulk", 2) == pytest.approx(100e6 * (PAYLOAD - 20) / FRAME, rel=0.001)


@pytest.mark.parametrize("payload", ["16 B", "100 B", "1472 B"])
@pytest.mark.parametrize("link", ["rate: 10 Mbit/s", "rate: 10 Mbit/s, overhead: pppoe-atm", "trace: steady"])
def test_a_link_that_is_never_idle_is_fully_utilized(
    link: str, payload: str, tmp_path: Path, simulate: Simulate
) -> None:
    """Whatever its framing and the size of the packets: twice its rate is offered, from the start on."""
    trace = tmp_path / "steady"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 11)))
    run = simulate(f"""
        tcplab: 1
        name: busy
        network:
          path: {{{link.replace("steady", str(trace))}, rtt: 10 ms, queue: 50 packets}}
        flows:
          - {{name: datagrams, kind: udp, rate: 25 Mbit/s, payload: {payload}, duration: 2 s}}
    """)
    (link_row,) = run.summary().links
    assert link_row.figures["utilization"].value == pytest.approx(1, abs=0.002)


def _lossy(cc: str, loss: str, rtt: float, seconds: float) -> str:
    # Buffers far above any window that the loss rates allow, so that nothing but loss limits the flow.
    return f"""
        tcplab: 1
        name: lossy
        network:
          path: {{rate: unlimited, rtt: {rtt * 1000:g} ms, queue: unlimited, loss: {loss}}}
          hosts: {{window: 64 MiB}}
        flows:
          - {{name: bulk, kind: tcp, cc: {cc}, duration: {seconds:.0f} s}}
        sample: {{sockets: 100 ms, queues: 1 s, flows: 100 ms}}
    """


def _measured(simulate: Simulate, cc: str, p: float, loss: str, rtt: float, expected: float) -> float:
    """Goodput over 200 losses or so, after the first 40."""
    seconds = 240 / p * PAYLOAD * 8 / expected
    return goodput(simulate(_lossy(cc, loss, rtt, seconds)), "bulk", seconds / 6)


def reno_rate(p: float, rtt: float) -> float:
    """Mathis, Semke, Mahdavi, Ott: The macroscopic behavior of the TCP congestion avoidance algorithm,
    CCR 27(3), 1997: MSS/RTT · C/sqrt(p), where C = sqrt(3/2) for one loss in every 1/p packets and growth by
    one segment a round (Linux counts segments acknowledged, so delayed ACKs do not slow it)."""
    return PAYLOAD * 8 / rtt * math.sqrt(3 / (2 * p))


def cubic_window(p: float, rtt: float, c: float = 0.4, beta: float = 0.7) -> float:
    """RFC 9438, section 5, equation 5: mean window in segments with one loss in every 1/p packets."""
    return float((c * (3 + beta) / (4 * (1 - beta))) ** 0.25 * (rtt / p) ** 0.75)


def reno_friendly_window(p: float) -> float:
    """RFC 9438, section 4.3, equation 3 with the factor that makes it AIMD(1, 0.5)'s."""
    return math.sqrt(3 / (2 * p))


def cubic_rate(p: float, rtt: float) -> float:
    """RFC 9438, section 5.1: the larger of the two windows (tables 1 and 2)."""
    return PAYLOAD * 8 / rtt * max(cubic_window(p, rtt), reno_friendly_window(p))


def every(p: float) -> str:
    return f"{{every: {1 / p:.0f} packets}}"


@pytest.mark.parametrize("p", LOSS_RATES)
def test_reno_with_a_loss_in_every_so_many_packets(p: float, simulate: Simulate) -> None:
    """MSS/RTT · sqrt(3/(2p)), within 10 %."""
    rtt = 0.1
    expected = reno_rate(p, rtt)
    assert _measured(simulate, "reno", p, every(p), rtt, expected) == pytest.approx(expected, rel=0.10)


# Where all four loss rates lie well inside CUBIC's own region: its window is 1.9 to 4.3 times Reno's.
CUBIC_RTT = 0.4


@pytest.mark.parametrize("p", LOSS_RATES)
def test_cubic_in_its_own_region(p: float, simulate: Simulate) -> None:
    """RFC 9438's response function, AVG_W = (C(3+β)/(4(1-β)))^(1/4) · (RTT/p)^(3/4), within 10 %.

    Strictly periodic losses leave CUBIC not one equilibrium but a band around that formula: the function is
    flat where it meets W_max, so W_max stays where it is once the losses fall on the plateau, which in whole
    segments is 2.7 s wide. Which W_max of the band a flow settles on depends on how it left slow start.
    """
    assert cubic_window(p, CUBIC_RTT) > 1.5 * reno_friendly_window(p)
    expected = cubic_rate(p, CUBIC_RTT)
    measured = _measured(simulate, "cubic", p, every(p), CUBIC_RTT, expected)
    assert measured == pytest.approx(expected, rel=0.10)


@pytest.mark.parametrize("p", LOSS_RATES)
def test_reno_with_independent_losses(p: float, simulate: Simulate) -> None:
    """Within 25 % of the same formula. Losses now come at geometrically distributed distances: Ott, Kemperman
    and Mathis (1996) find C = 1.31 instead of 1.22, several losses in one round count as one reduction, and
    at high rates some end in a retransmission timeout."""
    rtt = 0.1
    expected = reno_rate(p, rtt)
    measured = _measured(simulate, "reno", p, f"{p * 100:g} %", rtt, expected)
    assert measured == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize("p", LOSS_RATES)
@pytest.mark.parametrize("rtt", [0.2, CUBIC_RTT])
def test_cubic_with_independent_losses(p: float, rtt: float, simulate: Simulate) -> None:
    """Within 25 % of the response function, which is that of an epoch ending at the plateau.

    With random distances some epochs go on into convex growth, far above it, and some end early, after which
    fast convergence lowers W_max. A fluid model of RFC 9438, section 4, with geometric distances gives 1.05
    to 1.14 times the function at these rates and RTTs, and 1.12 to 1.22 times without fast convergence.
    """
    expected = cubic_rate(p, rtt)
    measured = _measured(simulate, "cubic", p, f"{p * 100:g} %", rtt, expected)
    assert measured == pytest.approx(expected, rel=0.25)


def _correlated(cc: str, loss: str) -> str:
    return f"""
        tcplab: 1
        name: correlated-loss
        network:
          path: {{rate: 100 Mbit/s, rtt: 100 ms, queue: {{kind: droptail, limit: 50 ms}}, loss: {loss}}}
          hosts: {{window: 16 MiB}}
        flows:
          - {{name: bulk, kind: tcp, cc: {cc}, duration: 60 s}}
    """


KEPT = "{rate: 0.5 %, correlation: 25 %}"


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_correlated_loss_starves_controls_that_take_loss_for_congestion(cc: str, simulate: Simulate) -> None:
    """0.5 % of loss allows Reno 2 Mbit/s by its formula, and CUBIC the same (its Reno-friendly region);
    correlated losses are fewer events, which allows a little more."""
    assert goodput(simulate(_correlated(cc, KEPT)), "bulk", 2) < 5e6


def test_correlated_loss_hardly_slows_bbr1(simulate: Simulate) -> None:
    """BBR does not react to loss itself: over 80 of 100 Mbit/s."""
    assert goodput(simulate(_correlated("bbr1", KEPT)), "bulk", 2) > 80e6


def test_netem_does_not_keep_the_loss_rate(simulate: Simulate) -> None:
    """netem's recursion with 0.5 % and 25 % correlation loses under 1 packet in 10^6: nothing is slowed."""
    run = simulate(_correlated("cubic", "{rate: 0.5 %, correlation: 25 %, model: netem}"))
    sent = run.flows["segments_sent"][0]
    _, lost = extremes(run.queues.filter(pl.col("direction") == "forward")["lost"])
    assert lost <= 1e-5 * sent
    assert goodput(run, "bulk", 2) > 80e6


def test_bbr1_probes_the_rtt_every_ten_seconds(simulate: Simulate) -> None:
    """draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5: when the minimum RTT has not been seen
    again for 10 s, BBR holds 4 packets in flight for the longer of 200 ms and one round. The time spent there
    renews the estimate, so episodes begin 10 s and an episode's length apart."""
    run = simulate("""
        tcplab: 1
        name: probe-rtt
        network:
          path: {rate: 100 Mbit/s, rtt: 30 ms, queue: {kind: droptail, limit: 30 ms}}
        flows:
          - {name: bulk, kind: tcp, cc: bbr1, duration: 60 s}
        sample: {sockets: 1 ms}
    """)
    assert goodput(run, "bulk", 0) > 92e6

    samples = run.sockets.sort("time").with_columns(
        probing=pl.col("phase") == "PROBE_RTT",
        episode=(pl.col("phase") != pl.col("phase").shift()).fill_null(True).cum_sum(),
    )
    episodes = (
        samples.filter("probing")
        .group_by("episode", maintain_order=True)
        .agg(
            start=pl.col("time").min(),
            end=pl.col("time").max(),
            held=(pl.col("inflight") <= 4).sum(),
            minimum=pl.col("inflight").min(),
            cwnd=pl.col("cwnd").min(),
        )
    )
    starts = episodes["start"].to_list()
    assert len(starts) >= 5
    for earlier, later in itertools.pairwise(starts):
        assert 9.5 * SECOND <= later - earlier <= 11 * SECOND
    # Samples are 1 ms apart: at least 200 of them with no more than 4 packets out, and then it goes on.
    assert all(held >= 199 for held in episodes["held"])
    assert all(cwnd == 4 for cwnd in episodes["cwnd"])
    lengths = [(end - start) / SECOND for start, end in episodes.select("start", "end").iter_rows()]
    assert all(0.2 <= length <= 0.2 + 4 * 0.06 for length in lengths)


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_two_equal_flows_share_equally(cc: str, simulate: Simulate) -> None:
    """Jain's index (Jain, Chiu, Hawe 1984), (Σx)²/(nΣx²), over the last half: additive increase and
    multiplicative decrease converge to equal shares (Chiu, Jain 1989)."""
    run = simulate(f"""
        tcplab: 1
        name: two-flows
        network:
          path: {{rate: 20 Mbit/s, rtt: 20 ms, queue: {{kind: droptail, limit: 1 BDP}}}}
        flows:
          - {{name: first, kind: tcp, cc: {cc}, start: 0 s, stop: 100 s}}
          - {{name: second, kind: tcp, cc: {cc}, start: 10 s, stop: 100 s}}
    """)
    shares = [goodput(run, flow, 50, 100) for flow in ("first", "second")]
    assert sum(shares) ** 2 / (2 * sum(share**2 for share in shares)) > 0.95
