"""The flow graph."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from tcplab.captures.ladder import Ladder, ladder, text_lines
from tcplab.captures.ladder_svg import DARK, LIGHT, svg
from tcplab.captures.packets import follow
from tcplab.captures.summary import summarise


def graph(capture: Path, maximum: int = 0) -> Ladder:
    (flow, *_) = summarise(capture).flows
    packets, _ = follow(capture, [flow.number])
    return ladder(flow, packets, maximum)


def test_a_message_of_2048_bytes_is_two_segments_numbered_as_published(exchange: Path) -> None:
    rungs = graph(exchange / "left-path.pcapng").rungs
    sent = [(rung.flags, rung.seq, rung.ack, rung.length) for rung in rungs if not rung.backward]
    assert sent[:4] == [
        ("SYN", 0, None, 0),
        ("ACK", 1, 1, 0),
        ("ACK", 1, 1, 1448),
        ("PSH ACK", 1449, 1, 600),
    ]
    fin = next(rung for rung in rungs if "FIN" in rung.flags)
    assert fin.seq == 2049
    answers = [rung.ack for rung in rungs if rung.backward]
    assert [number for number in dict.fromkeys(answers) if number in (1, 1449, 2049, 2050)] == [
        1,
        1449,
        2049,
        2050,
    ]


def test_arrows_point_to_whom_the_packet_went(exchange: Path) -> None:
    head, *rows = text_lines(graph(exchange / "left-path.pcapng"), 0, color=False)
    assert head.split() == ["time", "(s)", "10.0.0.1:40000", "10.0.0.2:5001"]
    assert rows[0].endswith("- SYN seq 0 len 0 ------------->|")
    assert "|<-" in rows[1]
    assert len({row.index("|") for row in rows}) == 1


def test_every_row_fits_a_narrow_terminal(lossy: Path) -> None:
    found = graph(lossy / "left-path.pcapng", 300)
    for width in (60, 80, 120):
        assert max(map(len, text_lines(found, width, color=False))) <= width


def test_what_is_left_out_is_counted(lossy: Path) -> None:
    whole = graph(lossy / "left-path.pcapng")
    cut = graph(lossy / "left-path.pcapng", 9)
    assert len(cut.rungs) == 9
    assert cut.left_out == len(whole.rungs) - 9
    assert cut.rungs[:6] == whole.rungs[:6]
    assert cut.rungs[6:] == whole.rungs[-3:]
    assert f"{cut.left_out} packets left out" in "\n".join(text_lines(cut, 0, color=False))
    assert f"{cut.left_out} packets left out" in svg(cut)


def test_retransmissions_stand_out(lossy: Path) -> None:
    found = graph(lossy / "left-path.pcapng")
    again = [rung for rung in found.rungs if rung.again]
    assert again
    kinds = ("retransmission", "tail loss probe", "out of order")
    assert all(any(kind in rung.note for kind in kinds) for rung in again)
    colored = [line for line in text_lines(found, 0, color=True) if line.startswith("\x1b[31m")]
    assert len(colored) == len(again)


def test_the_drawing_has_an_arrow_for_each_packet(exchange: Path) -> None:
    found = graph(exchange / "left-path.pcapng")
    drawn = svg(found)
    assert drawn.count("<path ") == len(found.rungs)
    assert "PSH ACK seq 1449 ack 1 len 600" in drawn


def test_numbers_before_the_first_captured_are_absolute(lossy: Path, tmp_path: Path) -> None:
    whole = graph(lossy / "left-path.pcapng")
    # The capture begins with data, and acknowledgments of earlier data follow.
    begin = next(rung.packet for rung in whole.rungs[500:] if not rung.backward)
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(b"".join(blocks_without_packets((lossy / "left-path.pcapng").read_bytes(), begin - 1)))
    rungs = graph(cut).rungs
    early = [rung for rung in rungs if rung.ack is not None and rung.ack < 0]
    assert early
    # They have the number of the same packet in the whole capture.
    sender = whole.flow.halves[0].tcp
    assert sender is not None
    acks = {rung.packet: rung.ack for rung in whole.rungs}
    for rung in early:
        ack = acks[rung.packet + begin - 1]
        assert ack is not None
        assert f" ack {(sender.initial_seq + ack) % 2**32} (absolute) " in rung.words
    assert not any(" -" in rung.words for rung in rungs)
    assert "(absolute)" not in rungs[-1].words


def blocks_without_packets(file: bytes, left_out: int) -> Iterator[bytes]:
    """A pcapng file's blocks without its first packets."""
    at = packets = 0
    while at < len(file):
        kind, length = struct.unpack_from("<II", file, at)
        packets += kind == 6
        if kind != 6 or packets > left_out:
            yield file[at : at + length]
        at += length


def test_a_dark_graph_has_the_same_words(exchange: Path) -> None:
    found = graph(exchange / "left-path.pcapng")
    light, dark = svg(found), svg(found, DARK)
    assert re.findall(r">([^<]+)<", light) == re.findall(r">([^<]+)<", dark)
    colors = re.compile(r"#[0-9a-f]{6}")
    assert set(colors.findall(dark)) <= set(vars(DARK).values())
    assert set(colors.findall(light)) <= set(vars(LIGHT).values())
