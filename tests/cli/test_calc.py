"""`tcplab calc` as a person uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


def test_figures_come_with_formula_and_source(tcplab: Command) -> None:
    ended = tcplab("calc", "--rate", "100M", "--rtt", "550ms", "--loss", "1e-5", "--window", "64K")
    assert ended.returncode == 0
    line = next(row for row in ended.stdout.splitlines() if row.startswith("window limit"))
    assert "953.3 kbit/s" in line
    assert "window · 8 / RTT" in line
    assert "Reno, one stream: limited by the window" in ended.stdout


@pytest.mark.parametrize("rate", ["1G", "1 Gbit/s", "1000M", "1e9 bit/s", "1000000k", "1000 Mbps"])
def test_rates_are_read_as_people_write_them(tcplab: Command, rate: str) -> None:
    found = json.loads(tcplab("calc", "--rate", rate, "--rtt", "50 ms", "--json").stdout)
    assert found["bdp"] == {"value": 6.25e6, "unit": "B"}


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [("64K", 65536), ("64KiB", 65536), ("65536 B", 65536), ("1M", 1 << 20), ("1.5 MB", 1.5e6)],
)
def test_sizes_are_iperf3_s_and_those_of_scenarios(tcplab: Command, size: str, bytes_: int) -> None:
    ended = tcplab("calc", "--rate", "1G", "--rtt", "100ms", "--window", size, "--json")
    assert json.loads(ended.stdout)["window"]["value"] == pytest.approx(bytes_ * 80)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--rate", "fast"), ("--rtt", "50"), ("--loss", "1.5"), ("--window", "64X")],
)
def test_what_is_not_understood_is_reported_with_an_example(tcplab: Command, option: str, value: str) -> None:
    given = {"--rate": "1G", "--rtt": "50ms", option: value}
    ended = tcplab("calc", *[word for pair in given.items() for word in pair])
    assert ended.returncode == 2
    assert f"{option} {value}" in ended.stderr


def test_a_value_out_of_range_is_not_called_unreadable(tcplab: Command) -> None:
    for rtt, reason in (("0ms", "must be more than zero"), ("1e30 s", "is too large")):
        ended = tcplab("calc", "--rate", "1G", "--rtt", rtt)
        assert (ended.returncode, ended.stderr) == (2, f"tcplab: error: --rtt {rtt}: {reason}\n")


@pytest.mark.parametrize(("option", "value"), [("--rate", "100"), ("--rtt", "50"), ("--window", "65536")])
def test_a_number_without_a_unit_is_refused(option: str, value: str, tcplab: Command) -> None:
    given = {"--rate": "1G", "--rtt": "50ms", option: value}
    ended = tcplab("calc", *[word for pair in given.items() for word in pair])
    assert ended.returncode == 2
    assert f"{option} {value}: the number has no unit" in ended.stderr
    assert option != "--rtt" or "write 10ms or 10 ms" in ended.stderr


@pytest.mark.parametrize("rate", ["10 MBps", "10MB/s", "10 MByte/s"])
def test_bytes_per_second_are_refused_with_the_rate_in_bits(rate: str, tcplab: Command) -> None:
    ended = tcplab("calc", "--rate", rate, "--rtt", "50ms")
    assert ended.returncode == 2
    assert f"--rate {rate}: a rate is in bits per second; write 80 Mbit/s" in ended.stderr
