"""Invariants of every simulated run: random scenarios, the same each time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcplab

SECOND = 1_000_000_000
# A retransmission's RTT is measured by timestamps, whose clock ticks in milliseconds.
TICK = 1_000_000
FRAME = 1514
CONTROLS = ("reno", "cubic", "bbr1", "bbr3", "dctcp", "prague", "vegas", "westwood")
COUNTERS = ("drops", "marks", "lost", "bytes_out", "capacity_used")
# Tables of the traffic itself; samplers fill the others.
TRAFFIC = ("flows", "packets", "pings", "echoes", "fetches", "events")


def scenario(seed: int) -> dict[str, Any]:
    """A path with any queue, impairments, hosts and traffic."""
    chance = random.Random(seed)
    path = {
        "rate": f"{chance.randint(300, 20_000)} kbit/s",
        "rtt": f"{chance.randint(1, 150)} ms",
        "queue": _queue(chance, 0),
        "reverse": {"queue": _queue(chance, 1)},
        "left": _host(chance),
        "right": _host(chance),
    }
    for key, value in (
        ("loss", chance.choice(["1 %", {"rate": "2 %", "correlation": "30 %"}, {"every": "50 packets"}])),
        ("corrupt", "0.5 %"),
        ("duplicate", "1 %"),
        ("policer", {"rate": "8 Mbit/s", "burst": "30 kB"}),
        ("overhead", chance.choice(["ethernet", "pppoe-atm"])),
        ("at", {"400 ms": {"rate": "2 Mbit/s"}, "800 ms": {"up": False}, "900 ms": {"up": True}}),
    ):
        if chance.random() < 0.3:
            path[key] = value
    return {
        "tcplab": 1,
        "name": "random",
        "duration": "2 s",
        "network": {"path": path},
        "flows": [_flow(chance, f"f{number}") for number in range(chance.randint(1, 4))],
        "sample": {"packets": True},
    }


def _queue(chance: random.Random, depth: int) -> object:
    simple: list[Any] = [f"{chance.randint(2, 100)} packets", f"{chance.randint(5, 100)} ms"]
    simple += ["codel", "fq_codel", "pie", "red", "dualpi2", "fq", {"kind": "drr", "limit": "50 packets"}]
    if depth:
        return chance.choice(simple)
    nested = _queue(chance, 1)
    cake = {"kind": "cake", "bandwidth": "3 Mbit/s", "ack_filter": True}
    shaper = {"kind": "tbf", "rate": "1 Mbit/s", "burst": "6 kB", "queue": nested}
    bands = {"kind": "prio", "bands": [{"dscp": ["EF"], "queue": "20 packets"}, {"queue": nested}]}
    return chance.choice([*simple, cake, shaper, bands])


def _host(chance: random.Random) -> dict[str, Any]:
    keys = {
        "ecn": chance.choice(["on", "accecn", "off"]),
        "window": "60 kB",
        "sack": False,
        "timestamps": False,
        "tso": False,
        "gro": True,
        "pacing": True,
        "timing": "linux",
        "nic": "10 Mbit/s",
    }
    return {key: value for key, value in keys.items() if chance.random() < 0.2}


def _flow(chance: random.Random, name: str) -> dict[str, Any]:
    tcp = {"cc": chance.choice(CONTROLS)}
    kinds: list[dict[str, Any]] = [
        {"kind": "tcp", **tcp},
        {"kind": "tcp", "bytes": "90 kB", "streams": 3, **tcp},
        {"kind": "tcp", "pattern": {"on": "100 ms", "off": "200 ms", "distribution": "exponential"}, **tcp},
        {"kind": "udp", "rate": f"{chance.randint(50, 5000)} kbit/s", "duration": "1 s"},
        {"kind": "udp", "rate": "300 kbit/s", "spacing": "exponential", "streams": 2, "bytes": "20 kB"},
        {"kind": "request", "request": "300 B", "response": "20 kB", "think": "20 ms", **tcp},
        {"kind": "http", "sizes": ["2 kB", "40 kB"], "connections": 3, **tcp},
        {"kind": "echo", "sizes": [1, 3000], "iterations": 10, **tcp},
        {"kind": "ping", "interval": "30 ms"},
    ]
    ways = [{"from": "left", "to": "right"}, {"from": "right", "to": "left"}]
    flow = {"name": name, **chance.choice(kinds), **chance.choice(ways)}
    return flow | {"start": f"{chance.randint(0, 900)} ms", "dscp": chance.choice([0, "EF"])}


@pytest.mark.parametrize("seed", range(24))
def test_every_run_adds_up(seed: int, tmp_path: Path) -> None:
    asked = scenario(seed)
    run = tcplab.run(asked, output=tmp_path / "run")
    _intervals(run)
    _queues(run)
    _links(run)
    _round_trips(run)
    asked["sample"] |= {"sockets": "7 ms", "queues": False, "flows": "33 ms"}
    other = tcplab.run(asked, output=tmp_path / "other")
    for table in TRAFFIC:
        # Rows of the two directions may change places.
        first, second = (one.tables[table].sort(pl.all()) for one in (run, other))
        assert first.equals(second), f"{table}: samples change the traffic"


def _intervals(run: tcplab.Run) -> None:
    """They follow one another, and their sums are the flow's."""
    for flow in run.flows.filter(pl.col("kind") != "ping").iter_rows(named=True):
        rows = run.intervals.filter(flow=flow["flow"], stream=flow["stream"]).sort("time")
        for column in ("bytes_received", "bytes_sent", "retransmits"):
            if flow[column] is not None and rows[column].null_count() == 0:
                assert rows[column].sum() == flow[column], (flow["flow"], column)
        assert flow["bytes_received"] <= flow["bytes_sent"]
        assert flow["start"] <= flow["end"] <= 2 * SECOND
        # Also where datagrams wait in a queue long after their source has ended.
        assert (rows["time"] - rows["duration"])[1:].equals(rows["time"][:-1], check_names=False)


def _queues(run: tcplab.Run) -> None:
    """Counters never fall, and an empty queue is empty in every column."""
    for (link, direction), rows in run.queues.group_by("link", "direction", maintain_order=True):
        for column in COUNTERS:
            assert (rows[column].diff().drop_nulls() >= 0).all(), (link, direction, column)
        assert ((rows["packets"] == 0) == (rows["bytes"] == 0)).all()
        assert ((rows["packets"] == 0) == rows["sojourn"].is_null()).all()


def _links(run: tcplab.Run) -> None:
    """No packet arrives that was not sent, each drop is counted once, and no link sends above its rate."""
    (link,) = run.plan["links"]
    for direction in ("forward", "backward"):
        settings = link[direction]
        packets = run.packets.filter(direction=direction)
        events = dict(packets["event"].value_counts().iter_rows())
        made = events.get("depart", 0) + events.get("duplicate", 0) - events.get("lose", 0)
        assert events.get("deliver", 0) <= made, events
        assert events.get("depart", 0) <= events.get("enqueue", 0), events
        rows = run.queues.filter(direction=direction).sort("time")
        last = rows.row(-1, named=True)
        before = packets.filter(pl.col("time") <= last["time"])["event"]
        assert last["drops"] == (before == "drop").sum()
        assert last["marks"] == (before == "mark").sum()
        assert last["lost"] == (before == "lose").sum()
        rate = max([settings["rate"] or 0, *(change.get("rate") or 0 for change in settings["changes"])])
        sent = rows["capacity_used"].diff().drop_nulls() * 8 * SECOND
        # An ATM cell adds a tenth to a frame.
        assert (sent <= rate * rows["time"].diff().drop_nulls() + 2 * FRAME * 8 * SECOND).all()


def _round_trips(run: tcplab.Run) -> None:
    """None is shorter than the propagation delay of both ways."""
    (link,) = run.plan["links"]
    least = link["forward"]["delay"] + link["backward"]["delay"]
    for table, column in (("pings", "rtt"), ("echoes", "rtt"), ("fetches", "first_byte")):
        assert (run.tables[table][column].drop_nulls() >= least).all()
    for column in ("srtt", "min_rtt"):
        assert (run.sockets[column].drop_nulls() > least - TICK).all(), column
    assert (run.sockets["cwnd"] >= 1).all()
