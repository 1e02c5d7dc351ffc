"""How messages were cut, and what headers cost."""

from __future__ import annotations

from pathlib import Path

from tcplab.captures.packets import follow
from tcplab.captures.segmentation import Cut, cuts, lines, pieces_words
from tcplab.captures.summary import summarise


def found(capture: Path, number: int = 1) -> tuple[list[Cut], str]:
    flow = summarise(capture).flow(number)
    packets, _ = follow(capture, [number])
    made = cuts(flow, packets)
    return made, "\n".join(lines(flow, made, 0))


def test_2048_bytes_over_an_mtu_of_1500_are_1448_and_600(exchange: Path) -> None:
    (forward, backward), text = found(exchange / "left-path.pcapng")
    for cut in (forward, backward):
        (message,) = cut.messages
        assert message.pieces == (1448, 600)
        # Ethernet 14, IP 20, TCP 32 with timestamps.
        assert cut.overhead == 66
        assert message.frame_bytes == 2048 + 2 * 66
        assert (cut.mss, cut.mtu, cut.above) == (1460, 1500, 0)
    assert "1448 + 600" in text


def test_one_byte_of_data_is_a_frame_of_67_bytes(tmp_path: Path) -> None:
    import tcplab

    scenario = """\
tcplab: 1
name: byte
network:
  path: {rate: 100 Mbit/s, rtt: 2 ms, queue: {kind: droptail, limit: 100 packets}}
flows:
  - {name: bytes, kind: request, request: 1 B, response: 1 B, count: 5}
duration: 1 s
capture: headers
"""
    run = tcplab.run(scenario, out=tmp_path / "result")
    (forward, _), _ = found(run.path / "run-1" / "left-path.pcapng")
    (message,) = forward.messages
    assert (message.size, message.count, message.frame_bytes) == (1, 5, 67)


def test_super_packets_are_explained_by_where_they_were_captured(tmp_path: Path) -> None:
    import tcplab
    from tcplab.captures.tests.conftest import LOSSY

    run = tcplab.run(LOSSY, set={"capture": {"what": "headers", "at": "host"}}, out=tmp_path / "result")
    (cut,), text = found(run.path / "run-1" / "left-path.pcapng")
    assert cut.above > 0
    assert "Captured at the sender" in text
    assert "ethtool -K DEVICE tso off gso off" in text


def test_alike_pieces_are_counted() -> None:
    assert pieces_words((1448, 600)) == "1448 + 600"
    assert pieces_words((1448,) * 45 + (376,)) == "45 x 1448 + 376"
    assert pieces_words(tuple(range(10))) == "0 + 1 + 2 + 3 + 4 + 5 + 4 more"
