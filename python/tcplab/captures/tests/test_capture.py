"""Captures from Python."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab import captures
from tcplab.captures.errors import CaptureError
from tcplab.captures.frames import write_flows
from tcplab.captures.summary import summarise


def test_flows_are_a_row_each_and_agree_with_what_the_engine_knows(lossy: Path) -> None:
    capture = captures.read(lossy / "left-path.pcapng")
    row = capture.flows.filter(pl.col("protocol") == "tcp").row(0, named=True)
    truth = tcplab.load(lossy).flows.filter(pl.col("flow") == "bulk").row(0, named=True)
    assert row["forward_retransmitted_segments"] == truth["retransmits"]
    assert row["forward_unique_bytes"] == pytest.approx(truth["bytes_sent"], rel=0.01)
    assert row["main"] == "forward"
    assert capture.flow(2).protocol == "udp"


def test_the_series_of_a_flow_has_every_packet_of_it(lossy: Path) -> None:
    capture = captures.read(lossy / "left-path.pcapng")
    series = capture.series(1)
    assert len(series) == capture.flow(1).packets
    again = series.filter(pl.col("kind").str.contains("retransmission|probe"))
    assert len(again) == capture.flow(1).halves[0].tcp.retransmissions  # type: ignore[union-attr]
    # The server's answers acknowledge the client's data after a whole round trip.
    answers = series.filter(pl.col("direction") == "backward")
    assert answers["rtt"].drop_nulls().min() >= 40_000_000  # type: ignore[operator]
    assert series["sacks"].list.len().sum() > 0


def test_a_filter_keeps_the_flows_it_means(lossy: Path) -> None:
    capture = captures.read(lossy / "left-path.pcapng", filter="udp and net 10.0.0.0/8")
    assert capture.flows["protocol"].to_list() == ["udp"]
    assert capture.series()["flow"].unique().to_list() == capture.flows["flow"].to_list()


def test_the_series_of_a_flow_that_there_is_not_is_not_empty(lossy: Path) -> None:
    capture = captures.read(lossy / "left-path.pcapng")
    number = capture.flows["flow"].to_numpy()[0]
    assert capture.series(number).equals(capture.series(int(number)))
    for flows in (99, [1, 99]):
        with pytest.raises(CaptureError, match=r"unknown flow 99: there are 1 to 2"):
            capture.series(flows)


def test_without_a_flow_the_columns_are_those_of_flows(lossy: Path, tmp_path: Path) -> None:
    every = captures.read(lossy / "left-path.pcapng").flows
    none = captures.read(lossy / "left-path.pcapng", filter="port 9").flows
    assert none.schema == every.schema
    assert none.filter(pl.col("protocol") == "tcp").height == 0
    whole, empty = summarise(lossy / "left-path.pcapng"), summarise(lossy / "left-path.pcapng", "port 9")
    write_flows(tmp_path / "both.csv", [(empty.path, empty.flows), (whole.path, whole.flows)])
    write_flows(tmp_path / "none.csv", [(empty.path, empty.flows)])
    both, header = (pl.read_csv(tmp_path / name) for name in ("both.csv", "none.csv"))
    assert both.height == every.height
    assert header.columns == both.columns


def test_a_capture_shows_itself_in_words(lossy: Path) -> None:
    capture = captures.read(lossy / "left-path.pcapng", filter="udp")
    counts = f"{capture.facts['packets']:,} packets, 1 flow"
    assert repr(capture) == f"<Capture {str(capture.path)!r}: {counts}>"
    assert f"<b>{capture.path}</b>: {counts}</p>" in capture._repr_html_()


def test_a_capture_cut_off_is_read_up_to_there_and_says_so(lossy: Path, tmp_path: Path) -> None:
    whole = (lossy / "left-path.pcapng").read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(whole[:50_001])
    capture = captures.read(cut)
    assert 0 < capture.facts["packets"] < 1000
    assert capture.remarks[0].startswith("the capture is cut off in the middle of a record at byte")


def test_other_files_than_captures_are_rejected_with_their_magic(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("these are notes")
    with pytest.raises(captures.CaptureError, match=r"notes\.txt: not a pcap or pcapng file"):
        captures.read(text)
    with pytest.raises(captures.CaptureError, match="No such file"):
        captures.read(tmp_path / "nothing.pcap")
