#!/usr/bin/env python3
"""Draw scenarios, run each in the simulator and on the kernel, and print the figures that differ.

`scripts/compare_engines.py SEED SECONDS` draws with SEED, SEED + 1 and so on until SECONDS are over. A run of
the kernel is made again while it is overloaded, and skipped if it stays so. A figure differs if all three
runs of the kernel are beyond all of the simulator by 2 % and a little. The simulator's vary in their phases,
random numbers, host timing and, by up to 0.4 ms, delay. A line for each figure that differs: seed, flow or
link, figure, the range in the simulator, the kernel's. The scenario follows as JSON.
`--scenario FILE` compares one that is written there instead.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import tcplab
from tcplab.results import Run
from tcplab.scenario import ScenarioErrors

CONTROLS = (
    *("reno", "cubic", "bbr1", "bbr2", "bbr3", "dctcp", "vegas"),
    *("westwood", "illinois", "hybla", "htcp", "ledbatpp", "copa"),
)
# Repetitions have the same phases and losses in both engines.
RUNS, KERNEL_RUNS = 4, 3
# Beyond 2 %, what one packet more or less may make of a figure.
SHARE = 0.02
SLACK = {"bytes": 3000, "ms": 0.3, "count": 2.0}

Scenario = dict[str, Any]
Figures = dict[tuple[str, str], float]


def main() -> None:
    """Compare until the time is over."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("seed", type=int, nargs="?", default=1)
    arguments.add_argument("seconds", type=float, nargs="?", default=60)
    arguments.add_argument("--scenario", type=Path)
    asked = arguments.parse_args()
    if asked.scenario:
        compare(asked.scenario.stem, json.loads(asked.scenario.read_text(encoding="utf-8")))
        return
    end = time.monotonic() + asked.seconds
    seed = asked.seed
    while time.monotonic() < end:
        compare(str(seed), scenario(seed))
        seed += 1


def say(line: str) -> None:
    """A line on standard output."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def compare(name: str, asked: Scenario) -> None:
    """Run a scenario in both engines, and print the figures that differ."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            simulated = _simulated(asked, Path(folder))
            # Most scenarios agree at once.
            for runs in (1, KERNEL_RUNS):
                kernel = _figures(asked, Path(folder) / f"kernel-{runs}", runs, engine="kernel")
                found = differences(simulated, kernel)
                if not found:
                    break
    except (ScenarioErrors, tcplab.UnsupportedError) as refused:
        say(f"{name}: {refused}")
        return
    if not kernel:
        say(f"{name}: every run of the kernel was overloaded")
    for (where, figure), (low, high, measured) in found.items():
        others = ", ".join(f"{each:.6g}" for each in measured)
        say(f"{name}: {where} {figure}: simulator {low:.6g} to {high:.6g}, kernel {others}")
    if found:
        say(json.dumps(asked))


def _simulated(asked: Scenario, folder: Path) -> list[Figures]:
    """Figures of hosts that take no time, and of those that take Linux's on paths a little longer."""
    found = _figures(asked, folder / "ideal", RUNS)
    for longer in (0.1, 0.4):
        varied = copy.deepcopy(asked)
        varied["network"].setdefault("hosts", {})["timing"] = "linux"
        for link in varied["network"].get("links", [varied["network"].get("path")]):
            for key in {"rtt", "delay"} & set(link):
                link[key] = f"{float(link[key].removesuffix(' ms')) + longer:g} ms"
        found += _figures(varied, folder / f"{longer}", RUNS)
    return found


def _figures(asked: Scenario, out: Path, runs: int, engine: str = "sim") -> list[Figures]:
    """Of each run that was not overloaded."""
    done = tcplab.run(asked, engine=engine, repeat=runs, output=out)
    return [figures(done, number) for number, each in done.manifests.items() if not each.overload]


def figures(run: Run, number: int) -> Figures:
    """By flow or link, and name."""
    found: dict[tuple[str, str], Any] = {}
    tables = {name: table.filter(repetition=number) for name, table in run.tables.items()}
    for flow in tables["flows"].iter_rows(named=True):
        where = f"{flow['flow']}/{flow['stream']}"
        one = {"flow": flow["flow"], "stream": flow["stream"]}
        found[where, "end, ms"] = flow["end"] / 1e6
        found[where, "bytes received"] = flow["bytes_received"]
        found[where, "bytes sent"] = flow["bytes_sent"]
        for count in ("segments_sent", "retransmits", "rtos"):
            found[where, f"{count}, count"] = flow[count]
        for (node,), rows in tables["sockets"].filter(**one).group_by("node"):
            for column in ("srtt", "min_rtt"):
                found[where, f"{column} at {node}, median ms"] = _median(rows[column]) / 1e6
            found[where, f"cwnd at {node}, median count"] = _median(rows["cwnd"])
            # Later ones are as large as the application read in a round trip, which varies.
            acknowledged = rows.filter(pl.col("bytes_acked") > 0).sort("time")["rwnd"]
            found[where, f"first rwnd at {node}, bytes"] = next(iter(acknowledged), None)
        datagrams = tables["intervals"].filter(**one)
        for column in ("lost", "out_of_order", "duplicates"):
            found[where, f"{column}, count"] = datagrams[column].sum()
        found[where, "replies, count"] = tables["pings"].filter(**one)["rtt"].count()
        found[where, "ping, median ms"] = _median(tables["pings"].filter(**one)["rtt"]) / 1e6
        answers = tables["fetches"].filter(**one)
        found[where, "fetches, count"] = len(answers)
        for column in ("first_byte", "duration"):
            found[where, f"{column}, median ms"] = _median(answers[column]) / 1e6
        echoes = tables["echoes"].filter(flow=flow["flow"], client=flow["stream"])
        found[where, "echoes, count"] = len(echoes)
        found[where, "echo, median ms"] = _median(echoes["rtt"]) / 1e6
    for (link, direction), rows in tables["queues"].group_by("link", "direction"):
        last = rows.sort("time").row(-1, named=True)
        where = f"{link} {direction}"
        for count in ("drops", "marks", "lost", "packets_out"):
            found[where, f"{count}, count"] = last[count]
        found[where, "bytes out"] = last["bytes_out"]
        found[where, "wait, mean ms"] = last["waited"] / max(last["packets_out"], 1) / 1e6
    return {key: float(value) for key, value in found.items() if value is not None}


def _median(column: pl.Series) -> float:
    return float(column.median() or 0)  # type: ignore[arg-type]


def differences(
    simulated: list[Figures], kernel: list[Figures]
) -> dict[tuple[str, str], tuple[float, float, list[float]]]:
    """The figures of which every kernel run is beyond every simulated one, with its tolerance."""
    found = {}
    for key in simulated[0]:
        ours = [each[key] for each in simulated if key in each]
        measured = [each[key] for each in kernel if key in each]
        slack = next(slack for unit, slack in SLACK.items() if unit in key[1])
        slack += SHARE * max(map(abs, ours))
        low, high = min(ours) - slack, max(ours) + slack
        if measured and (max(measured) < low or min(measured) > high):
            found[key] = (min(ours), max(ours), measured)
    return found


def scenario(seed: int) -> Scenario:
    """One or two flows without chance in half of them, anything in the others."""
    chance = random.Random(seed)  # noqa: S311
    calm = chance.random() < 0.5
    rate = round(500 * 100 ** chance.random())
    network, ends = chance.choice([_path, _path, _path, _routed, _medium])(chance, rate, calm)
    # The buffer that auto-tuning grants at first depends on how a kernel is configured.
    network["hosts"] = {"send_buffer": "400 kB"} | _host(chance)
    flows = []
    for number in range(chance.randint(1, 2 if calm else 4)):
        source, sink = chance.choice(ends)
        if chance.random() < 0.3:
            source, sink = sink, source
        flow = {"name": f"f{number}", "from": source, "to": sink, "start": f"{chance.randint(0, 500)} ms"}
        flows.append(flow | _flow(chance, rate, calm))
    return {
        "tcplab": 1,
        "name": "drawn",
        "duration": f"{chance.randint(1000, 3000)} ms",
        "seed": seed,
        "network": network,
        "flows": flows,
    }


def _path(chance: random.Random, rate: int, calm: bool) -> tuple[Scenario, list[tuple[str, str]]]:
    """Two hosts and a link, perhaps with a proxy beside the left one."""
    path = _link(chance, rate, calm) | {"rtt": f"{chance.randint(1, 200)} ms"}
    reverse = {key: value for key, value in _link(chance, rate, calm).items() if chance.random() < 0.4}
    reverse.pop("mtu", None)
    path["reverse"] = reverse
    for side in ("left", "right"):
        if chance.random() < 0.3:
            path[side] = _host(chance)
    if chance.random() < 0.15:
        leg = {"cc": chance.choice(CONTROLS)}
        path["accelerate"] = {"towards_client": leg, "towards_server": leg}
    elif chance.random() < 0.15:
        path["cache"] = {}
    return {"path": path}, [("left", "right")]


def _routed(chance: random.Random, rate: int, calm: bool) -> tuple[Scenario, list[tuple[str, str]]]:
    """Two pairs of hosts, two routers, and switches in the place of some."""
    joints = [{"name": name, "kind": chance.choice(["router", "router", "switch"])} for name in ("j", "k")]
    links = [{"ends": list(ends)} for ends in (("a", "j"), ("b", "j"), ("j", "k"), ("k", "c"), ("k", "d"))]
    for link in links:
        if link["ends"] == ["j", "k"] or chance.random() < 0.4:
            factor = 1 if link["ends"] == ["j", "k"] else chance.choice([1, 2, 4])
            link |= _link(chance, factor * rate, calm) | {"delay": f"{chance.randint(1, 40)} ms"}
            link.pop("mtu", None)
    return {"nodes": [*joints, *"abcd"], "links": links}, [("a", "c"), ("b", "d")]


def _medium(chance: random.Random, rate: int, calm: bool) -> tuple[Scenario, list[tuple[str, str]]]:
    """A server behind an access point and its stations."""
    frames = chance.choice([1, 8, 64])
    medium = {"name": "air", "aggregation": {"frames": frames}, "retries": chance.choice([7, 2])}
    links: list[Scenario] = [{"ends": ["s", "ap"], "delay": f"{chance.randint(1, 50)} ms"}]
    for station in "xy":
        own = {"ends": ["ap", station], "medium": "air", "rate": f"{rate * chance.choice([1, 2])} kbit/s"}
        if not calm and chance.random() < 0.5:
            own["loss"] = "5 %"
        links.append(own | {"queue": _queue(chance, rate, calm)})
    nodes: list[Any] = ["s", {"name": "ap", "kind": "router"}, "x", "y"]
    return {"nodes": nodes, "media": [medium], "links": links}, [("s", "x"), ("s", "y"), ("x", "y")]


def _link(chance: random.Random, rate: int, calm: bool) -> Scenario:
    """Settings of one direction or both."""
    link: Scenario = {"rate": f"{rate} kbit/s", "queue": _queue(chance, rate, calm)}
    settled: Scenario = {
        "mtu": chance.choice(["1280 B", "4000 B", "9000 B"]),
        "overhead": chance.choice(["ethernet", "vlan", "pppoe", "pppoe-atm", "docsis"]),
        "policer": {"rate": f"{rate // 2} kbit/s", "burst": f"{chance.randint(10, 100)} kB"},
        "loss": chance.choice([{"every": "70 packets"}, {"packets": [5, 30, 31, 40]}]),
        "at": chance.choice(
            [
                {"700 ms": {"rate": f"{rate // 3} kbit/s"}},
                {"400 ms": {"up": False}, f"{chance.randint(420, 900)} ms": {"up": True}},
                {"500 ms": {"loss": {"every": "5 packets"}}, "900 ms": {"loss": "0 %"}},
            ]
        ),
    }
    random_ones: Scenario = {
        "loss": chance.choice(
            ["1 %", {"rate": "3 %", "correlation": "30 %"}, {"gilbert_elliott": {"p": "1 %", "r": "25 %"}}]
        ),
        "jitter": chance.choice(["1 ms", {"amount": "3 ms", "distribution": "pareto"}]),
        "reorder": {"rate": "2 %", "by": "2 ms"},
        "duplicate": "1 %",
        "corrupt": "1 %",
    }
    for possible in (settled,) if calm else (settled, random_ones):
        for key, value in possible.items():
            if chance.random() < 0.15:
                link[key] = value
    return link


def _queue(chance: random.Random, rate: int, calm: bool, depth: int = 0) -> Any:
    limit = chance.choice([f"{chance.randint(2, 200)} packets", f"{chance.randint(10, 300)} ms", "60 kB"])
    kinds: list[Any] = [
        *([limit] * 4),
        {"kind": "droptail", "limit": "200 packets", "mark_above": f"{chance.randint(2, 20)} packets"},
        {"kind": "codel", "ecn": chance.choice([True, False])},
        {"kind": "fq_codel", "flows": 8192, "ecn": chance.choice([True, False])},
        {"kind": "fq_codel", "flows": 8192, "ce_threshold": "2 ms"},
        {"kind": "fq", "flow_limit": chance.randint(10, 100)},
        {"kind": "fq", "maxrate": f"{rate // 2} kbit/s"},
        {"kind": "drr", "limit": limit, "flows": 8192},
    ]
    if not calm:
        kinds += [{"kind": "pie", "ecn": True}, {"kind": "pie", "docsis": True}, "pie", "dualpi2"]
        kinds += [{"kind": "red", "ecn": True, "adaptive": True}, "red", {"kind": "red", "gentle": True}]
    if not depth:
        isolation = chance.choice(["flows", "dual-srchost", "dual-dsthost", "triple-isolate"])
        cake: Scenario = {"kind": "cake", "bandwidth": f"{rate * 9 // 10} kbit/s", "isolation": isolation}
        cake |= chance.choice([{}, {"ack_filter": True}, {"atm": "ptm", "overhead": "30 B"}, {"rtt": "9 ms"}])
        nested = _queue(chance, rate, calm, 1)
        bands = [{"dscp": ["EF"], "queue": "30 packets"}, {"queue": nested}]
        kinds += [cake, {"kind": "prio", "bands": bands}]
        kinds.append({"kind": "tbf", "rate": f"{rate // 2} kbit/s", "burst": "6 kB", "queue": nested})
    return chance.choice(kinds)


def _host(chance: random.Random) -> Scenario:
    """Settings of a host, most of them Linux's."""
    keys: Scenario = {
        "ecn": chance.choice(["on", "off"]),
        "window": f"{chance.randint(8, 300)} kB",
        "send_buffer": "30 kB",
        "receive_buffer_initial": "20 kB",
        "receive_buffer_max": "300 kB",
        "mss": f"{chance.randint(200, 1400)} B",
        "initial_window": f"{chance.randint(1, 40)} packets",
        "sack": False,
        "timestamps": False,
        "delayed_ack": False,
        "tso": False,
        "gso": False,
        "gro": True,
        "nagle": False,
        "pacing": True,
        "rto_min": "50 ms",
        "slow_start_after_idle": False,
        "nic": {"rate": f"{chance.randint(2, 40)} Mbit/s", "queue": f"{chance.randint(20, 1000)} packets"},
    }
    return {key: value for key, value in keys.items() if chance.random() < 0.06}


def _flow(chance: random.Random, rate: int, calm: bool) -> Scenario:
    stream: Scenario = {"cc": "cubic" if chance.random() < 0.3 else chance.choice(CONTROLS)}
    sockets: Scenario = {
        "window": f"{chance.randint(8, 200)} kB",
        "send_buffer": f"{chance.randint(8, 200)} kB",
        "receive_buffer": f"{chance.randint(8, 200)} kB",
        "mss": f"{chance.randint(100, 1400)} B",
        "nagle": False,
    }
    stream |= {key: value for key, value in sockets.items() if chance.random() < 0.07}
    pattern = {"on": f"{chance.randint(20, 300)} ms", "off": f"{chance.randint(20, 500)} ms"}
    ask = {"request": f"{chance.choice([1, 300, 20_000, 150_000])} B"}
    ask |= {"response": f"{chance.choice([1, 900, 15_000, 200_000])} B"}
    kinds: list[Scenario] = [
        *([{"kind": "tcp", **stream}] * 3),
        {"kind": "tcp", "bytes": f"{chance.randint(1, 500)} kB", **stream},
        {"kind": "tcp", "streams": 1 if calm else 3, "duration": f"{chance.randint(200, 900)} ms", **stream},
        {"kind": "tcp", "pattern": pattern, **stream},
        {"kind": "udp", "rate": f"{rate * chance.choice([1, 4, 9, 12]) // 10} kbit/s"},
        {"kind": "udp", "rate": f"{rate // 5} kbit/s", "payload": f"{chance.randint(16, 1200)} B"},
        {"kind": "udp", "rate": f"{rate // 2} kbit/s", "pattern": pattern, "ect": chance.choice([0, 1])},
        {"kind": "request", **ask, "think": f"{chance.choice([0, 0, 10, 300])} ms", **stream},
        {"kind": "request", **ask, "count": chance.randint(1, 9), **stream},
        {
            "kind": "http",
            "sizes": ["900 B", "15 kB", "80 kB"],
            "connections": chance.randint(1, 1 if calm else 6),
            "page": chance.randint(1, 6),
            "ranges": chance.randint(1, 3),
            "think": f"{chance.choice([0, 50])} ms",
            **stream,
        },
        {
            "kind": "echo",
            "sizes": chance.choice([[1], [64, 3000], [40_000]]),
            "interval": f"{chance.choice([0, 7])} ms",
            **stream,
        },
        {
            "kind": "ping",
            "interval": f"{chance.choice([10, 33])} ms",
            "payload": f"{chance.randint(8, 1200)} B",
        },
    ]
    if not calm:
        kinds.append({"kind": "udp", "rate": f"{rate // 2} kbit/s", "spacing": "exponential", "streams": 2})
        kinds.append({"kind": "tcp", "pattern": {**pattern, "distribution": "exponential"}, **stream})
    flow = chance.choice(kinds)
    if chance.random() < 0.2:
        flow |= {"ip": 6}
    if chance.random() < 0.2:
        flow |= {"dscp": chance.choice(["EF", "CS1", "AF41"])}
    return flow


if __name__ == "__main__":
    main()
