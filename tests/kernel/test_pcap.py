"""Captures of real TCP: what is read from them against what the sockets and the emulator counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tcplab import captures
from tcplab.captures.flow import Flow
from tcplab.captures.tests.tshark import needs_tshark, same_packets_stand_out, same_rtts
from tcplab.captures.two_point import match_ends
from tcplab.results import Run

FLOW = {"name": "bulk", "kind": "tcp", "cc": "cubic", "bytes": "3 MB"}


def of_data(flows: captures.Capture, size: int) -> Flow:
    """The connection that carried the flow's bytes."""
    found: list[Flow] = [one for one in flows if one.halves[0].tcp and one.halves[0].payload_bytes >= size]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("at", ["wire", "host"])
def test_retransmissions_and_bytes_are_those_of_the_socket(at: str, run: Callable[..., Run]) -> None:
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "loss": "1 %"}
    done = run({"path": path}, [FLOW], duration="20 s", capture={"what": "headers", "at": at})
    known = done.flows.to_dicts()[0]
    sender = of_data(captures.read(done.path / "run-1" / "left-path.pcapng"), 3_000_000).halves[0].tcp
    assert sender is not None
    assert known["retransmits"] > 0
    assert sender.retransmitted_segments == known["retransmits"]
    assert sender.acked_bytes == known["bytes_received"]
    assert sender.missed_bytes == 0


def test_both_ends_show_the_losses_the_emulator_made(run: Callable[..., Run]) -> None:
    # A packet that finds the queue full never left its host; here there is none.
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "loss": "1 %", "queue": "1 MB"}
    done = run({"path": path}, [FLOW], duration="20 s", capture={"what": "headers", "at": "wire"})
    assert done.manifest.facts["emulator"]["links"]["path"]["forward"]["dropped"] == 0
    directory = done.path / "run-1"
    ends = match_ends(directory / "left-path.pcapng", directory / "right-path.pcapng", same_clock=True)
    (forward, _) = next(ways for _, ways in ends.flows if ways[0].sent > 2000)
    assert forward.lost + forward.lost_acks == done.flows["losses_true"][0] > 0
    assert forward.delay is not None
    assert forward.delay.min == pytest.approx(10e6, abs=0.2e6)


PATH = {"rate": "20 Mbit/s", "rtt": "20 ms"}
MARKING = {"kind": "droptail", "limit": "200 kB", "mark_above": "20 packets"}


@needs_tshark
@pytest.mark.parametrize(
    ("settings", "is_marked"),
    [
        ({"loss": "1 %"}, False),
        ({"reorder": {"rate": "1 %", "by": "8 ms"}}, False),
        ({"queue": MARKING, "left": {"ecn": "on"}, "right": {"ecn": "on"}}, True),
    ],
    ids=["loss", "reordering", "ECN"],
)
def test_tshark_finds_the_same_in_captures_of_linux(
    settings: dict[str, Any], is_marked: bool, run: Callable[..., Run]
) -> None:
    capture = {"what": "headers", "at": "wire"}
    done = run({"path": PATH | settings}, [FLOW], duration="20 s", capture=capture)
    for end in ("left", "right"):
        file = done.path / "run-1" / f"{end}-path.pcapng"
        assert is_marked or same_packets_stand_out(file) > 0
        assert same_rtts(file) > 5
        forward, backward = (half.tcp for half in of_data(captures.read(file), 3_000_000).halves)
        assert forward is not None
        assert backward is not None
        assert (forward.cwr > 0, backward.ece > 0) == (is_marked, is_marked)
