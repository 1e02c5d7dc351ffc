"""Both ends of a path."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcplab
from tcplab.captures.two_point import delay_figure, lines, match_ends


def test_what_was_lost_and_how_long_it_took_are_what_the_simulator_did(lossy: Path) -> None:
    ends = match_ends(lossy / "left-path.pcapng", lossy / "right-path.pcapng")
    assert ends.same_clock
    ((numbers, (forward, backward)),) = ends.flows
    truth = tcplab.load(lossy).flows.row(0, named=True)
    assert numbers == (1, 1)
    assert forward.lost == truth["losses_true"]
    assert (backward.lost, backward.lost_acks) == (0, 0)
    assert forward.delay is not None
    # Captured behind the queue: 20 ms of way and nothing else.
    assert forward.delay.min == pytest.approx(20_000_000, rel=0.01)


def test_other_clocks_are_estimated(lossy: Path) -> None:
    ends = match_ends(lossy / "left-path.pcapng", lossy / "right-path.pcapng", same_clock=False)
    assert abs(ends.offset) < 100_000
    assert "both removed" in "\n".join(lines(ends, 0))


def test_the_figure_shows_every_packet_and_what_was_lost(lossy: Path) -> None:
    figure = delay_figure(match_ends(lossy / "left-path.pcapng", lossy / "right-path.pcapng"))
    assert [panel.title for panel in figure.panels] == ["Delay, forward", "Delay, reverse"]
    assert [points.key for points in figure.panels[0].points][-1] == "lost"


def test_lines_fit_a_narrow_terminal(lossy: Path) -> None:
    ends = match_ends(lossy / "left-path.pcapng", lossy / "right-path.pcapng")
    assert max(map(len, lines(ends, 70))) <= 70


def test_captures_without_a_flow_in_common_say_nothing_of_their_clocks(lossy: Path, exchange: Path) -> None:
    ends = match_ends(lossy / "left-path.pcapng", exchange / "left-path.pcapng", same_clock=False)
    assert list(lines(ends, 0)) == [
        "0 TCP flows in both captures",
        "1 TCP flow in left-path.pcapng alone",
        "1 TCP flow in left-path.pcapng alone",
    ]


def test_what_a_capture_missed_is_said_and_not_lost(lossy: Path, tmp_path: Path) -> None:
    whole = match_ends(lossy / "left-path.pcapng", lossy / "right-path.pcapng")
    content = (lossy / "right-path.pcapng").read_bytes()
    blocks, at = [], 0
    while at < len(content):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        blocks.append(content[at : at + size])
        at += size
    # Full segments of TCP: an enhanced packet block has the length on the wire, and 23 bytes into the frame
    # the protocol. None at the end, where packets may have been on their way.
    full = [
        number
        for number, block in enumerate(blocks)
        if int.from_bytes(block[24:28], "little") == 1514 and block[28 + 23] == 6
    ]
    missing = full[:-200:40]
    kept = tmp_path / "right.pcapng"
    kept.write_bytes(b"".join(block for number, block in enumerate(blocks) if number not in missing))
    ends = match_ends(lossy / "left-path.pcapng", kept, same_clock=True)
    ((_, (before, _)),), ((_, (forward, _)),) = whole.flows, ends.flows
    assert forward.missed == len(missing) > 10
    assert forward.lost == before.lost
    assert f"note: {forward.missed} packets arrived that the capture there missed" in "\n".join(
        lines(ends, 0)
    )
