"""Flows over IPv6 go the same ways as those over IPv4, with 20 bytes less of payload in a packet."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run

PATH = {"path": {"rate": "20 Mbit/s", "rtt": "10 ms", "queue": "4 BDP"}}
TREE: dict[str, Any] = {
    "nodes": ["a", "b", {"name": "s", "kind": "switch"}, {"name": "r", "kind": "router"}, "c"],
    "links": [
        {"ends": ["a", "s"], "delay": "1 ms"},
        {"ends": ["b", "s"]},
        {"ends": ["s", "r"]},
        # The windows of two connections fit into the queue, so that no probe is lost to a full one.
        {"ends": ["r", "c"], "rate": "20 Mbit/s", "delay": "5 ms", "queue": "500 kB"},
    ],
}


PAYLOADS = pytest.mark.parametrize(("ip", "payload"), [(4, 1448), (6, 1428)])


@PAYLOADS
def test_the_goodput_is_the_rate_less_the_headers(
    run: Callable[..., Run], usual_goodput: Callable[..., float], ip: int, payload: int
) -> None:
    done = run(PATH, [{"name": "f", "kind": "tcp", "ip": ip}], duration="3 s", engine="sim")
    assert usual_goodput(done, "f") == pytest.approx(20e6 * payload / 1514, rel=0.01)


@PAYLOADS
def test_a_link_carries_the_headers_besides(run: Callable[..., Run], ip: int, payload: int) -> None:
    done = run(PATH, [{"name": "f", "kind": "tcp", "ip": ip, "bytes": "3 MB"}], duration="30 s")
    row = done.flows.row(0, named=True)
    carried = done.manifest.facts["emulator"]["links"]["path"]["forward"]["bytes_in"]
    minimum = 3_000_000 / payload * 1514
    # Retransmissions, be they needless, take their bytes besides; so do SYN, FIN and small segments.
    assert row["bytes_received"] == 3_000_000
    assert minimum <= carried <= minimum + (row["retransmits"] + 40) * 1514


def test_every_kind_of_flow_crosses_switches_and_routers(run: Callable[..., Run]) -> None:
    both: dict[str, Any] = {"from": "a", "to": "c", "ip": 6}
    bulk = {"kind": "tcp", "window": "64 kB", **both}
    flows = [
        {"name": "tcp", **bulk},
        {"name": "udp", "kind": "udp", "rate": "1 Mbit/s", **both, "from": "c", "to": "b"},
        {"name": "ask", "kind": "request", "request": "100 B", "response": "1 kB", "count": 5, **both},
        {"name": "ping", "kind": "ping", "count": 15, **both},
        {"name": "iperf3", "generator": "iperf3", "duration": "1 s", **bulk},
    ]
    done = run(TREE, flows, duration="4 s")
    assert all(received > 0 for received in done.flows["bytes_received"])
    assert done.echoes.height == 5
    assert not done.pings["lost"].any()
    counted = done.flows.filter(pl.col("flow").is_in(["tcp", "udp", "ask", "iperf3"]))
    assert counted["losses_true"].null_count() == 0, "the emulator knows whose packets it carries"


def test_an_idle_link_carries_nothing_of_ipv6s_own(run: Callable[..., Run]) -> None:
    # Multicast reports would come within two seconds of an interface coming up.
    ping = {"name": "p", "kind": "ping", "interval": "500 ms", "from": "a", "to": "c", "ip": 6}
    done = run(TREE, [ping], duration="3 s", sample={"packets": "on"})
    links = done.manifest.facts["emulator"]["links"]
    crossed = {name: [way["packets_in"] for way in link.values()] for name, link in links.items()}
    sent = done.pings.height
    assert crossed == {"a-s": [sent, sent], "b-s": [0, 0], "s-r": [sent, sent], "r-c": [sent, sent]}
    assert done.queues.filter(pl.col("link") == "b-s")["packets"].sum() == 0


@pytest.mark.parametrize("engine", ["kernel", "sim"])
def test_a_capture_shows_ipv6(run: Callable[..., Run], engine: str) -> None:
    flow = {"name": "f", "kind": "tcp", "bytes": "100 kB", "ip": 6}
    done = run(PATH, [flow], duration="1 s", engine=engine, capture={"what": "full", "nodes": ["left"]})
    file = next(done.path.glob("run-1/*.pcapng"))
    fields = ["ipv6.src", "tcp.len", "tcp.checksum.status", "_ws.malformed", "tcp.seq"]
    words = ["tshark", "-r", str(file), "-o", "tcp.check_checksum:TRUE", "-T", "fields"]
    words += [word for field in fields for word in ("-e", field)]
    read = subprocess.run(words, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in read.stdout.splitlines()]
    assert {row[0] for row in rows} == {"fd00::1", "fd00::2"}
    # Data that a standstill made TCP send twice count once.
    sent = {int(row[4]): int(row[1]) for row in rows if row[0] == "fd00::1"}
    assert sum(sent.values()) == 100_000
    assert max(int(row[1]) for row in rows) == 1428
    assert {row[3] for row in rows} == {""}
    if engine == "sim":
        assert {row[2] for row in rows} == {"1"}, "every checksum is right"


def test_bursts_are_cut_at_the_link_and_joined_behind_it(run: Callable[..., Run]) -> None:
    # Without a rate the packets of a burst arrive at one time, and are joined however fast the machine is.
    path = {"path": {"rate": "unlimited", "rtt": "10 ms", "right": {"gro": "on"}}}
    flow = {"name": "f", "kind": "tcp", "cc": "cubic", "bytes": "5 MB", "ip": 6}
    longest = {}
    for at in ("wire", "host"):
        done = run(path, [flow], duration="30 s", capture={"what": "headers", "at": at, "nodes": ["right"]})
        assert done.flows["bytes_received"].to_list() == [5_000_000]
        file = next(done.path.glob("run-1/*.pcapng"))
        words = ["tshark", "-r", str(file), "-Y", "ipv6.src == fd00::1", "-T", "fields", "-e", "tcp.len"]
        read = subprocess.run(words, capture_output=True, text=True, check=True)
        longest[at] = max(map(int, read.stdout.split()))
    assert longest["wire"] == 1428
    assert longest["host"] > 1428
