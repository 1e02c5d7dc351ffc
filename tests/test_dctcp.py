"""DCTCP (RFC 8257) over a queue that marks above a threshold."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcplab

SECOND = 1_000_000_000
THRESHOLD = 65
MARKING = f"queue: {{kind: droptail, limit: 1 MB, mark_above: {THRESHOLD} packets}}"


def scenario(streams: int) -> str:
    return f"""
        tcplab: 1
        name: dctcp
        network: {{path: {{rate: 1 Gbit/s, rtt: 1 ms, {MARKING}, left: {{tso: off, gso: off}}}}}}
        flows: [{{name: bulk, kind: tcp, cc: dctcp, streams: {streams}, duration: 3 s}}]
        sample: {{queues: 1 ms}}
    """


@pytest.mark.parametrize("streams", [1, 2, 10])
def test_dctcp_holds_a_marking_queue_near_its_threshold(streams: int, tmp_path: Path) -> None:
    """Alizadeh et al. 2010, section 3.3: with N flows the queue peaks N packets above the threshold K, for
    each grows by one more packet before it hears of the mark, and swings by sqrt(2 N (C RTT + K)) / 2. The
    flows send single segments; bursts of segmentation offload would swing it by their own size, up to 45."""
    run = tcplab.run(scenario(streams), output=tmp_path / "run")
    queue = run.queues.filter(pl.col("time") > SECOND, pl.col("direction") == "forward")
    waiting = queue["packets"].to_numpy()
    product = 1e9 * 0.001 / 8 / 1514
    swing = math.sqrt(2 * streams * (product + THRESHOLD)) / 2
    # Two segments for each ACK; and proportional rate reduction ends somewhat below the threshold it aims at.
    assert waiting.max() <= THRESHOLD + 2 * streams + 2
    assert np.percentile(waiting, 5) >= THRESHOLD - 2 * swing
    assert np.median(waiting) == pytest.approx(THRESHOLD, abs=swing)
    assert queue["drops"].to_list()[-1] == 0
    assert queue["marks"].to_list()[-1] > 0
    # The queue never runs empty, so all of the link is used.
    sent = queue["bytes_out"].to_list()
    assert 8 * (sent[-1] - sent[0]) / 2 == pytest.approx(1e9, rel=0.01)


def test_without_ecn_nothing_is_marked_and_the_queue_overflows(tmp_path: Path) -> None:
    text = scenario(1).replace("cc: dctcp", "cc: reno").replace("limit: 1 MB", "limit: 200 packets")
    run = tcplab.run(text, output=tmp_path / "run")
    queue = run.queues.filter(pl.col("direction") == "forward")
    assert queue["marks"].to_list()[-1] == 0
    assert queue["drops"].to_list()[-1] > 0


def test_classic_ecn_halves_by_marks_instead_of_losses(tmp_path: Path) -> None:
    """RFC 3168: an echo halves Reno's window once a round trip, as a loss would; nothing is retransmitted."""
    text = scenario(1).replace("cc: dctcp", "cc: reno").replace("left: {", "left: {ecn: on, ")
    run = tcplab.run(text, output=tmp_path / "run")
    queue = run.queues.filter(pl.col("time") > SECOND, pl.col("direction") == "forward")
    assert run.flows["retransmits"].to_list() == [0]
    assert queue["drops"].to_list()[-1] == 0
    assert queue["packets"].to_numpy().max() <= THRESHOLD + 8
    # Half of 82 + 65 packets does not fill the link: the queue runs empty after each mark, dctcp's does not.
    assert queue["packets"].to_numpy().min() == 0
    echoes = run.events.filter(pl.col("event") == "ecn")
    assert len(echoes) > 3


@pytest.mark.parametrize(("ecn", "marked"), [("on", True), ("accecn", True), ("off", False)])
def test_the_sender_s_socket_counts_the_marks_that_it_was_notified_of(
    ecn: str, marked: bool, tmp_path: Path
) -> None:
    text = f"""
        tcplab: 1
        name: marks
        network:
          hosts: {{ecn: {ecn}}}
          path: {{rate: 10 Mbit/s, rtt: 20 ms, queue: {{kind: codel, ecn: on}}}}
        flows: [{{name: bulk, kind: tcp, cc: reno}}]
        duration: 10 s
    """
    run = tcplab.run(text, output=tmp_path / "run")
    counts = run.sockets.filter(pl.col("node") == run.plan["flows"][0]["from"])["delivered_ce"]
    assert counts.is_sorted()
    assert (counts[-1] > 0) == marked
    if ecn == "accecn":
        # Accurate feedback reports each mark, but for those of the last packets.
        marks = run.queues.filter(pl.col("direction") == "forward")["marks"][-1]
        assert marks - 10 <= counts[-1] <= marks
