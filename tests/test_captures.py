"""Captures of a simulated run, as an independent reader sees them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import tcplab

SCENARIO = """\
tcplab: 1
name: captured
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms, queue: 1 BDP}
  hosts: {gro: on}
flows:
  - {name: bulk, kind: tcp, cc: cubic}
  - {name: noise, kind: udp, rate: 1 Mbit/s}
  - {name: probe, kind: ping}
duration: 400 ms
"""
CHECKSUMS = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "icmp.checksum.status")
GOOD = "1"

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def fields(capture: Path, *names: str) -> list[list[str]]:
    checked = [f"-o{name}.check_checksum:TRUE" for name in ("ip", "tcp", "udp")]
    wanted = [word for name in names for word in ("-e", name)]
    printed = subprocess.run(
        ["tshark", "-r", capture, *checked, "-T", "fields", *wanted],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split("\t") for line in printed.stdout.splitlines()]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """The run directory of a run with this capture."""

    @cache
    def run(what: str, at: str) -> Path:
        out = tmp_path_factory.mktemp("captures") / "result"
        return tcplab.run(SCENARIO, set={"capture": {"what": what, "at": at}}, output=out).path / "run-1"

    return run


Captured = Callable[[str, str], Path]


@pytest.mark.parametrize("at", ["wire", "host"])
@pytest.mark.parametrize("end", ["left", "right"])
def test_every_checksum_of_a_full_capture_is_right(end: str, at: str, captured: Captured) -> None:
    rows = fields(captured("full", at) / f"{end}-path.pcapng", *CHECKSUMS)
    assert len(rows) > 500
    assert {status for row in rows for status in row if status} == {GOOD}


def test_the_wire_carries_no_frame_above_the_mtu_and_the_host_sends_bursts(captured: Captured) -> None:
    longest = {
        at: max(int(row[0]) for row in fields(captured("full", at) / "left-path.pcapng", "frame.len"))
        for at in ("wire", "host")
    }
    assert longest["wire"] == 1514
    assert longest["host"] > 2 * 1514


def test_headers_alone_say_how_long_the_packet_was(captured: Captured) -> None:
    rows = fields(captured("headers", "wire") / "right-path.pcapng", "frame.len", "frame.cap_len")
    kept = [int(kept) for length, kept in rows if int(length) == 1514]
    assert len(kept) > 500
    assert max(kept) <= 14 + 20 + 60


def test_times_are_those_of_the_run_to_the_nanosecond(captured: Captured) -> None:
    (first, *_) = fields(captured("headers", "wire") / "right-path.pcapng", "frame.time_epoch")
    # The SYN, a frame of 74 bytes, is sent in 5.92 us and on its way for 10 ms.
    assert first == ["0.010005920"]


@pytest.mark.parametrize(("version", "header"), [(4, "ip.dsfield"), (6, "ipv6.tclass")])
def test_every_packet_has_the_dscp_of_its_flow_and_its_ecn_field(
    version: int, header: str, tmp_path: Path
) -> None:
    """The link's queue is long and marks datagrams CE; the wire is behind it."""
    queue = {"limit": "100 packets", "mark_above": "3 packets"}
    datagrams = {"kind": "udp", "rate": "2 Mbit/s", "bytes": "60 kB", "ect": 1}
    scenario = {
        "tcplab": 1,
        "name": "classes",
        "network": {"path": {"rate": "1 Mbit/s", "rtt": "20 ms", "queue": queue}},
        "flows": [
            {"name": "t", "kind": "tcp", "bytes": "3 kB", "ip": version, "dscp": "AF41"},
            {"name": "u", **datagrams, "ip": version, "dscp": "EF"},
            {"name": "p", "kind": "ping", "count": 3, "ip": version, "dscp": 10},
        ],
        "capture": "headers",
    }
    run = tcplab.run(scenario, output=tmp_path / "result").path / "run-1"
    seen: dict[str, set[int]] = {}
    for end in ("left", "right"):
        for protocol, octet in fields(run / f"{end}-path.pcapng", "_ws.col.Protocol", header):
            seen.setdefault(f"{end} {protocol}", set()).add(int(octet, 0))
    icmp = "ICMP" if version == 4 else "ICMPv6"
    af41, expedited, af11 = 34 << 2, 46 << 2, 10 << 2
    assert seen == {
        "left TCP": {af41},
        "right TCP": {af41},
        "left UDP": {expedited | 1, expedited | 3},
        "right UDP": {expedited | 1, expedited | 3},
        f"left {icmp}": {af11},
        f"right {icmp}": {af11},
    }


def test_check_says_where_a_host_capture_differs_from_a_kernels() -> None:
    assert tcplab.check(SCENARIO, set={"capture": {"what": "headers", "at": "wire"}}) == []
    differs = tcplab.check(SCENARIO, set={"capture": {"what": "headers", "at": "host"}})
    assert len(differs) == 2
    assert not any(problem.fatal for problem in differs)
