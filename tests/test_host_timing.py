"""`timing: linux`: hosts that take as long as Linux to notice what arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab
from tcplab.results import Run


def run(out: Path, path: dict[str, Any], flow: dict[str, Any], *, linux: bool, duration: str = "10 s") -> Run:
    network = {"path": path} | ({"hosts": {"timing": "linux"}} if linux else {})
    scenario = {"tcplab": 1, "name": "timing", "network": network, "flows": [flow], "duration": duration}
    return tcplab.run(scenario, engine="sim", output=out)


def test_a_ping_takes_two_wake_ups_longer(tmp_path: Path) -> None:
    path = {"rate": "100 Mbit/s", "rtt": "10 ms"}
    ping = {"name": "p", "kind": "ping", "interval": "10 ms"}
    ideal = run(tmp_path / "ideal", path, ping, linux=False).pings["rtt"].drop_nulls()
    taken = run(tmp_path / "linux", path, ping, linux=True).pings["rtt"].drop_nulls()
    assert ideal.n_unique() == 1
    more = taken - ideal[0]
    assert more.median() == pytest.approx(51_000, rel=0.05)
    assert more.min() >= 16_000
    assert more.max() <= 180_000


def test_a_buffer_of_two_packets_loses_what_it_loses_on_linux(tmp_path: Path) -> None:
    # Kernel: 3.55 and 3.74 Mbit/s. Hosts that take no time send when a packet has just left.
    path = {"rate": "10 Mbit/s", "rtt": "10 ms", "queue": "0.25 BDP"}
    flow = {"name": "f", "kind": "tcp", "cc": "reno"}
    goodput = {
        linux: _goodput(run(tmp_path / str(linux), path, flow, linux=linux)) for linux in (False, True)
    }
    assert goodput[True] == pytest.approx(3.7e6, rel=0.1)
    assert goodput[False] > 1.8 * goodput[True]


def test_a_timeout_fires_with_a_tick(tmp_path: Path) -> None:
    # Kernel: 9, 14 and 30 ms after the exact time, for the tail loss probe before it and the timeout.
    path = {"rate": "16 Mbit/s", "rtt": "62 ms", "at": {"50 ms": {"up": False}, "400 ms": {"up": True}}}
    flow = {"name": "f", "kind": "tcp", "cc": "cubic"}

    def timeout(*, linux: bool) -> int:
        done = run(tmp_path / str(linux), path, flow, linux=linux, duration="1 s")
        return int(done.events.filter(pl.col("event") == "rto")["time"][0])

    assert 4_000_000 < timeout(linux=True) - timeout(linux=False) < 44_000_000


def test_what_arrives_together_is_read_together(tmp_path: Path) -> None:
    # A full window grows no more, so that Linux leaves the ACK to the application's read. Kernel: 3.3 to 4.2.
    nodes = ["s", {"name": "ap", "kind": "router"}, "x"]
    links = [
        {"ends": ["s", "ap"], "delay": "30 ms"},
        {"ends": ["ap", "x"], "medium": "air", "rate": "40 Mbit/s"},
    ]
    flow = {"name": "f", "from": "s", "to": "x", "kind": "tcp", "cc": "reno", "receive_buffer": "67 kB"}

    def data_of_an_ack(timing: str) -> float:
        network = {
            "nodes": nodes,
            "media": [{"name": "air", "aggregation": {"frames": 8}}],
            "links": links,
            "hosts": {"timing": timing},
        }
        scenario = {"tcplab": 1, "name": "together", "network": network, "flows": [flow], "duration": "2 s"}
        done = tcplab.run(scenario, engine="sim", output=tmp_path / timing)
        sent = (
            done.queues.filter(pl.col("link") == "ap-x")
            .group_by("direction")
            .agg(pl.col("packets_out").max())
        )
        packets = dict(sent.iter_rows())
        return float(packets["forward"] / packets["backward"])

    assert data_of_an_ack("linux") > 4
    assert data_of_an_ack("ideal") < 2


def _goodput(done: Run) -> float:
    late = done.intervals.filter(pl.col("time") > 5_000_000_000)
    return float(late["bytes_received"].sum()) * 8e9 / float(late["duration"].sum())


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "10 ms"}
    flow = {"name": "f", "kind": "tcp", "cc": "cubic"}
    one, other = (run(tmp_path / name, path, flow, linux=True, duration="2 s") for name in ("one", "other"))
    assert one.sockets.equals(other.sockets)


def test_an_unknown_timing_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(tcplab.ScenarioErrors, match=r"timing: `windows`.*ideal.*linux"):
        tcplab.run(
            {
                "tcplab": 1,
                "name": "x",
                "network": {"path": {"rate": "1 Mbit/s", "rtt": "1 ms"}, "hosts": {"timing": "windows"}},
                "flows": [],
                "duration": "1 s",
            },
            engine="sim",
            output=tmp_path / "x",
        )
