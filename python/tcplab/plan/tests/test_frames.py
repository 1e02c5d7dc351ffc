"""Payload of a full packet, as a share of the bytes that a link's rate counts."""

from typing import Any

import pytest

from tcplab.plan.frames import payload_share

TCP: Any = {"kind": "tcp", "sender": {"mss": 1460, "timestamps": True}, "receiver": {"mss": 1460}}
UDP: Any = {"kind": "udp", "payload": 100}
UDP6: Any = {**UDP, "ip": 6}
TINY: Any = {**UDP, "payload": 10}
OLD: Any = {**TCP, "receiver": {"mss": 500, "timestamps": False}}
PPPOE_ATM = {"bytes": 26, "minimum": 0, "atm": True}


def direction(**settings: Any) -> Any:
    return {"rate": 10_000_000, "trace": None, **settings}


def test_a_full_segment_has_1448_bytes_of_a_frame_of_1514() -> None:
    assert payload_share(TCP, direction()) == pytest.approx(1448 / 1514)


def test_framing_counts_as_the_link_counts_it() -> None:
    ethernet = direction(overhead={"bytes": 24, "minimum": 84, "atm": False})
    assert payload_share(TCP, ethernet) == pytest.approx(1448 / 1538)
    assert payload_share(TINY, ethernet) == pytest.approx(10 / 84), "a frame is padded"
    assert payload_share(TCP, direction(overhead=PPPOE_ATM)) == pytest.approx(1448 / (33 * 53))


def test_datagrams_have_their_own_headers() -> None:
    assert payload_share(UDP, direction()) == pytest.approx(100 / 142)
    assert payload_share(UDP6, direction()) == pytest.approx(100 / 162)


def test_the_smaller_mss_counts_and_timestamps_where_both_ends_have_them() -> None:
    assert payload_share(OLD, direction()) == pytest.approx(500 / 554)


def test_a_trace_counts_ip_packets() -> None:
    assert payload_share(TCP, direction(trace={"opportunities_ms": [1]})) == pytest.approx(1448 / 1500)
