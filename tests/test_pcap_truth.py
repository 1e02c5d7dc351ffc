"""The analysis of captures against the truth that the simulator knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab
from tcplab import captures
from tcplab.captures.tests.tshark import needs_tshark, same_packets_stand_out, same_rtts, tshark
from tcplab.captures.two_point import match_ends

SCENARIO = """\
tcplab: 1
name: truth
network:
  path: {rate: 10 Mbit/s, rtt: 40 ms, queue: 1 BDP}
flows:
  - {name: bulk, kind: tcp, cc: cubic, bytes: 4 MB}
duration: 120 s
capture: {what: headers, at: wire}
"""
# Where the bottleneck drops nothing, a capture on the wire behind it shows all that was sent.
DEEP = {"network.path.queue": "5000 packets"}
HOST = {"capture": {"what": "headers", "at": "host"}}
LOSSES: dict[str, dict[str, Any]] = {
    "none": DEEP,
    "droptail": {"network.path.queue": "20 packets", **HOST},
    "random": {"network.path.loss": "2 %", **DEEP},
    "heavy": {"network.path.loss": "15 %", "flows.bulk.bytes": "400 kB", **DEEP},
    "heavy, no SACK": {
        "network.path.loss": "15 %",
        "flows.bulk.bytes": "400 kB",
        "network.hosts": {"sack": "off"},
        **DEEP,
    },
    "reordered": {"network.path.reorder": {"rate": "1 %", "by": "18 ms"}, **DEEP},
    "duplicated": {"network.path.duplicate": "2 %", **DEEP},
    "no timestamps": {"network.path.loss": "2 %", "network.hosts": {"timestamps": "off"}, **DEEP},
    "super-packets": {"network.path.loss": "2 %", **HOST},
    "bbr": {"network.path.loss": "2 %", "flows.bulk.cc": "bbr1", **HOST},
}

Simulated = Callable[[str], Path]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """The directory of a run with these losses."""

    @cache
    def run(losses: str) -> Path:
        out = tmp_path_factory.mktemp("truth") / "result"
        settings = {"sample": {"packets": "on"}, **LOSSES[losses]}
        return tcplab.run(SCENARIO, set=settings, output=out).path / "run-1"

    return run


def truth(run: Path) -> dict[str, Any]:
    return pl.read_parquet(run / "flows.parquet").to_dicts()[0]


@pytest.mark.parametrize("losses", LOSSES)
def test_every_retransmission_and_every_byte_is_found(losses: str, simulated: Simulated) -> None:
    run = simulated(losses)
    flow = captures.read(run / "left-path.pcapng").flow(1)
    sender = flow.halves[0].tcp
    assert sender is not None
    known = truth(run)
    assert sender.retransmitted_segments == known["retransmits"]
    assert sender.acked_bytes == known["bytes_received"]
    assert flow.end == "closed"


@pytest.mark.parametrize("losses", LOSSES)
def test_retransmissions_after_timeouts_are_there_if_there_were_timeouts(
    losses: str, simulated: Simulated
) -> None:
    run = simulated(losses)
    sender = captures.read(run / "left-path.pcapng").flow(1).halves[0].tcp
    assert sender is not None
    rtos = truth(run)["rtos"]
    assert (sender.timeout > 0) == (rtos > 0)
    assert sender.timeout >= rtos
    assert sender.unknown == 0


def test_every_needless_retransmission_is_known_by_its_dsack(simulated: Simulated) -> None:
    run = simulated("reordered")
    known = truth(run)
    assert known["retransmits"] > 0
    sender = captures.read(run / "left-path.pcapng").flow(1).halves[0].tcp
    assert sender is not None
    assert known["losses_true"] == 0
    assert sender.spurious == known["retransmits"]


def test_the_receiver_tells_what_was_overtaken_and_what_was_copied(simulated: Simulated) -> None:
    run = simulated("duplicated")
    receiver_side = captures.read(run / "right-path.pcapng").flow(1).halves[0].tcp
    assert receiver_side is not None
    sent = events(run, "forward", "depart")
    came = events(run, "forward", "deliver")
    assert receiver_side.duplicates == came.height - sent.height
    overtaken = captures.read(simulated("reordered") / "right-path.pcapng").flow(1).halves[0].tcp
    assert overtaken is not None
    assert overtaken.out_of_order > 0
    assert overtaken.retransmissions == truth(simulated("reordered"))["retransmits"]
    assert overtaken.duplicates == 0


def events(run: Path, direction: str, event: str) -> pl.DataFrame:
    packets = pl.read_parquet(run / "packets.parquet")
    return packets.filter(pl.col("direction") == direction, pl.col("event") == event)


@pytest.mark.parametrize("losses", ["none", "random", "reordered"])
def test_every_rtt_is_the_simulated_one_to_the_nanosecond(losses: str, simulated: Simulated) -> None:
    run = simulated(losses)
    series = captures.read(run / "left-path.pcapng").series(1)
    # The segment that ends where an acknowledgment points to has departed once, and its acknowledgment came.
    sent = events(run, "forward", "depart").select("seq", "time").unique("seq", keep="none")
    initial = events(run, "forward", "depart")["seq"][0]
    data = series.filter(pl.col("direction") == "forward", pl.col("payload") > 0)
    ends = data.select(end=pl.col("seq") + pl.col("payload"), seq=(pl.col("seq") + initial) % 2**32)
    rtts = series.filter(pl.col("direction") == "backward", pl.col("rtt").is_not_null())
    known = rtts.join(ends.unique("end"), left_on="ack", right_on="end", suffix="_sent")
    known = known.join(sent, left_on="seq_sent", right_on="seq", suffix="_departed")
    assert known.height > 0.95 * rtts.height - 2
    delivered = set(events(run, "backward", "deliver")["time"])
    assert set(known["time"]) <= delivered
    assert (known["rtt"] == known["time"] - known["time_departed"]).all()


def test_rtt_by_timestamps_covers_what_acknowledgments_were_delayed(simulated: Simulated) -> None:
    sender = captures.read(simulated("none") / "left-path.pcapng").flow(1).halves[0].tcp
    assert sender is not None
    by_ack, by_timestamp = sender.rtt, sender.rtt_timestamps
    assert by_ack is not None
    assert by_timestamp is not None
    # An acknowledgment of two segments echoes the timestamp of the first (RFC 7323 section 4.3): the RTT
    # by it is longer by what the second one's sending took, 1.2 ms at 10 Mbit/s.
    assert by_timestamp.count >= by_ack.count
    assert 0 < by_timestamp.mean - by_ack.mean < 2e6
    assert by_timestamp.min == by_ack.min


def test_goodput_is_that_of_the_receiving_application(tmp_path: Path) -> None:
    settings = {"flows.bulk.bytes": "60 MB", "network.path.rate": "10 Mbit/s", "network.path.loss": "0.01 %"}
    run = tcplab.run(SCENARIO, set=settings, output=tmp_path / "result").path / "run-1"
    known = truth(run)
    for capture in ("left-path.pcapng", "right-path.pcapng"):
        flow = captures.read(run / capture).flow(1)
        assert flow.halves[0].goodput == pytest.approx(known["goodput"], rel=0.001)


@pytest.mark.parametrize("losses", ["random", "super-packets", "droptail", "bbr", "heavy", "no timestamps"])
def test_both_ends_together_show_the_true_losses(losses: str, simulated: Simulated) -> None:
    run = simulated(losses)
    gone = [
        events(run, way, "lose").height + events(run, way, "drop").height for way in ("forward", "backward")
    ]
    ends = match_ends(run / "left-path.pcapng", run / "right-path.pcapng", same_clock=True)
    ((_, (forward, backward)),) = ends.flows
    assert forward.delay is not None
    assert forward.lost == gone[0] > 0
    assert forward.unsent == 0
    assert forward.retransmissions == truth(run)["retransmits"]
    assert forward.delay.min == pytest.approx(20e6, abs=2e6)
    assert backward.lost_acks == gone[1]


both_ends = pytest.mark.parametrize("end", ["left", "right"])


@needs_tshark
@both_ends
@pytest.mark.parametrize(
    "losses", ["droptail", "random", "heavy", "heavy, no SACK", "reordered", "duplicated"]
)
def test_tshark_finds_the_same_packets_before_their_time(losses: str, end: str, simulated: Simulated) -> None:
    same_packets_stand_out(simulated(losses) / f"{end}-path.pcapng")


@needs_tshark
@both_ends
@pytest.mark.parametrize("losses", ["none", "random", "reordered", "no timestamps"])
def test_tshark_measures_the_same_rtts(losses: str, end: str, simulated: Simulated) -> None:
    assert same_rtts(simulated(losses) / f"{end}-path.pcapng") > 100


@needs_tshark
def test_tshark_counts_the_same_bytes_in_flight_and_duplicate_acks(simulated: Simulated) -> None:
    capture = simulated("heavy, no SACK") / "left-path.pcapng"
    both = captures.read(capture).series(1).join(tshark(capture), on="packet")
    # With SACK it leaves out what the receiver holds above a gap; ours are what is not acknowledged. A FIN
    # takes a sequence number, and no byte.
    in_flight = both.filter(pl.col("bytes_in_flight").is_not_null(), pl.col("kind") == "new")
    fin = (in_flight["flags"] & 1).cast(pl.UInt64)
    assert in_flight.height > 100
    assert (in_flight["outstanding"] - fin == in_flight["bytes_in_flight"]).all()
    assert (both["duplicate_ack"] == both["duplicate_ack_right"].is_not_null()).all()
