"""The flow graph."""

from __future__ import annotations

from pathlib import Path

from tcplab.captures.ladder import Ladder, ladder, text_lines
from tcplab.captures.ladder_svg import svg
from tcplab.captures.packets import follow
from tcplab.captures.summary import summarise


def graph(capture: Path, most: int = 0) -> Ladder:
    (flow, *_) = summarise(capture).flows
    packets, _ = follow(capture, [flow.number])
    return ladder(flow, packets, most)


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
