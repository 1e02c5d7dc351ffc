"""How messages were cut, and what headers cost."""

from __future__ import annotations

import struct
from ipaddress import ip_address
from pathlib import Path

from tcplab.captures.packets import follow
from tcplab.captures.segmentation import Cut, cuts, lines, pieces_words
from tcplab.captures.summary import summarise


def tcp(source: int, target: int, flags: int, options: bytes = b"") -> bytes:
    offset = (20 + len(options)) // 4 << 4
    return struct.pack(">HHIIBBHHH", source, target, 1, 1, offset, flags, 1000, 0, 0) + options


def ip(source: str, target: str, payload: bytes, fragment: int = 0) -> bytes:
    ends = ip_address(source).packed + ip_address(target).packed
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 7, fragment, 64, 6, 0) + ends + payload


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
    run = tcplab.run(scenario, output=tmp_path / "result")
    (forward, _), _ = found(run.path / "run-1" / "left-path.pcapng")
    (message,) = forward.messages
    assert (message.size, message.count, message.frame_bytes) == (1, 5, 67)


def test_super_packets_are_explained_by_where_they_were_captured(tmp_path: Path) -> None:
    import tcplab
    from tcplab.captures.tests.conftest import LOSSY

    run = tcplab.run(LOSSY, set={"capture": {"what": "headers", "at": "host"}}, output=tmp_path / "result")
    (cut,), text = found(run.path / "run-1" / "left-path.pcapng")
    assert cut.above > 0
    assert "Captured at the sender" in text
    assert "ethtool -K DEVICE tso off gso off" in text


def test_alike_pieces_are_counted() -> None:
    assert pieces_words((1448, 600)) == "1448 + 600"
    assert pieces_words((1448,) * 45 + (376,)) == "45 x 1448 + 376"
    assert pieces_words(tuple(range(10))) == "0 + 1 + 2 + 3 + 4 + 5 + 4 more"


def test_fragments_are_not_taken_for_super_packets(tmp_path: Path) -> None:
    # A SYN-ACK that announces an MSS of 1460, and 2940 bytes of data to its sender in two fragments.
    syn_ack = tcp(80, 4000, 0x12, bytes([2, 4, 1460 >> 8, 1460 & 255]))
    data = tcp(4000, 80, 0x10) + bytes(2940)
    packets = [
        ip("10.0.0.2", "10.0.0.1", syn_ack),
        ip("10.0.0.1", "10.0.0.2", data[:1480], 0x2000),
        ip("10.0.0.1", "10.0.0.2", data[1480:], 1480 // 8),
    ]
    capture = tmp_path / "raw.pcap"
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    records = [struct.pack("<IIII", 1, n, len(one), len(one)) + one for n, one in enumerate(packets)]
    capture.write_bytes(header + b"".join(records))
    (cut,), text = found(capture)
    assert (cut.largest, cut.largest_ip, cut.above, cut.fragments, cut.may_fragment) == (2940, 1500, 0, 2, 2)
    assert "TSO" not in text
