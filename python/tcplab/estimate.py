"""What a run will take, from its plan alone: packets, rows, disk and memory, to within a factor of about two.

Traffic is a fluid: between any two moments at which something starts, stops or changes, flows share the
links max-min fairly, below what their windows (RFC 7323) and random loss (`tcplab.analysis.laws`) allow.
Numbers here that are not in a plan were measured with the shipped scenarios; `tests/test_estimate.py` holds
the figures against real runs.
"""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path as File
from typing import Any

from tcplab.analysis.laws import Path, cubic_response, mathis
from tcplab.analysis.laws.path import HEADERS
from tcplab.engine.base import Problem
from tcplab.plan.flow_direction import goes_both_ways
from tcplab.quantities import count, size

Plan = Mapping[str, Any]

MANY_ROWS = 10_000_000
# Beyond so many round trips only the first of each size have rows of their own (crates/tables/src/tally.rs).
_ECHO_ROWS, _ECHO_HEAD = 1_000_000, 1000
# Of more moments than this only so many are looked at.
_MOMENTS = 100
# What a link without a rate carries at most: no host of today sends more, bit/s.
_UNLIMITED = 100e9
# What Linux's default buffers hold of payload, bytes: the rest of their 4 and 6 MiB is sk_buffs.
_DEFAULT_WINDOW = 3 << 20
# Gauges of a control (`GAUGES` in cc/*.c), on average.
_GAUGES = 3
# Controls that do not slow down for a random loss.
_LOSS_BLIND = ("bbr", "copa")
_RENO_LIKE = ("reno", "dctcp", "vegas", "ledbatpp")
# Of a row: bytes on disk (Parquet, compressed), and while it is held and written.
_DISK = {
    "sockets": 14,
    "queues": 6,
    "intervals": 9,
    "gauges": 1,
    "packets": 12,
    "echoes": 5,
    "fetches": 8,
    "pings": 5,
}
_MEMORY = {
    "sockets": 700,
    "queues": 250,
    "intervals": 350,
    "gauges": 130,
    "packets": 150,
    "echoes": 120,
    "fetches": 160,
    "pings": 100,
}
# A run directory and its process before the first row.
_DISK_LEAST, _MEMORY_LEAST = 35_000, 100 << 20
# A stream's sockets and histograms in the simulator.
_STREAM = 60_000
# pcapng: a block around the bytes kept, and the headers that are kept.
_BLOCK, _KEPT = 40, 66


@dataclass(frozen=True)
class Estimate:
    """What one run of a plan takes."""

    packets: int
    """Packets that arrive at a node, every hop counted."""
    rows: Mapping[str, int]
    """By table."""
    disk: int
    """Bytes of its run directory."""
    memory: int
    """Bytes of the process that makes it."""

    @property
    def total_rows(self) -> int:
        """Of all tables."""
        return sum(self.rows.values())

    def __str__(self) -> str:
        return (
            f"about {count(self.packets)} packets, {count(self.total_rows)} rows, "
            f"{size(self.disk)} on disk, {size(self.memory)} of memory"
        )


def estimate(plan: Plan) -> Estimate:
    """What one run of `plan` takes. Takes no longer for long runs or many streams than for others."""
    traffic = _Traffic(plan)
    packets = sum(load.packets for load in traffic.loads)
    rows = {table: math.ceil(count) for table, count in _rows(plan, traffic).items() if count > 0}
    streams = sum(flow["streams"] for flow in plan["flows"])
    captured = _captured(plan, traffic)
    disk = _DISK_LEAST + 300 * streams + captured + sum(_DISK[name] * count for name, count in rows.items())
    memory = _MEMORY_LEAST + _STREAM * streams
    memory += sum(_MEMORY[name] * count for name, count in rows.items())
    return Estimate(math.ceil(packets), rows, math.ceil(disk), math.ceil(memory))


def many_rows(one: Estimate) -> Iterator[str]:
    """A warning, where a run gives more rows than are easily looked at."""
    if one.total_rows > MANY_ROWS:
        table, rows = max(one.rows.items(), key=lambda item: item[1])
        text = f"about {count(one.total_rows)} rows, {count(rows)} of them in {table}"
        yield f"sample: {text}: sample less often"


def beyond(
    runs: Iterable[tuple[Estimate, int]], at_once: int, place: File, *, yes: bool = False
) -> list[Problem]:
    """What this machine has too little of for plans run so many times each, `at_once` runs at a time.

    Their results go to `place`. Fatal unless the user has said `yes`.
    """
    every = list(runs)
    memory = [one.memory for one, times in every for _ in range(min(times, at_once))]
    # They share one interpreter.
    together = _MEMORY_LEAST + sum(one - _MEMORY_LEAST for one in sorted(memory)[-at_once:])
    kept = sum(one.disk * times for one, times in every)
    found = []
    for what, wanted, free in (("memory", together, _free_memory()), ("disk", kept, _free_disk(place))):
        if free is not None and wanted > free:
            message = f"about {size(wanted)} needed, {size(free)} free"
            fix = "sample less often, run fewer at a time (--jobs), or go on all the same with --yes"
            found.append(Problem(what, message, fix, fatal=not yes))
    return found


def _free_memory() -> int | None:
    """Bytes that this process can still get: the machine's, and its control group's."""
    free = []
    with suppress(OSError, ValueError, StopIteration):
        lines = File("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    with suppress(OSError, ValueError):
        group = File("/sys/fs/cgroup")
        limit, used = (
            (group / name).read_text(encoding="ascii") for name in ("memory.max", "memory.current")
        )
        free.append(max(0, int(limit) - int(used)))
    return min(free, default=None)


def _free_disk(place: File) -> int | None:
    """Bytes free where a directory is, or will be."""
    place = place.absolute()
    there = next((folder for folder in (place, *place.parents) if folder.is_dir()), None)
    with suppress(OSError):
        usage = shutil.disk_usage(there or "/")
        # /proc and its like have no size.
        return usage.free if usage.total else None
    return None


@dataclass
class _Load:
    """What a flow does in a run."""

    flow: Plan
    there: list[Plan]
    """Directions from `from` to `to`, and back."""
    back: list[Plan]
    accelerator: Plan | None = None
    """What splits its connections on the way."""
    seconds: float = 0.0
    """How long it is active."""
    end: float = 0.0
    bits: float = 0.0
    """Of frames in the direction that carries the data."""
    trips: float = 0.0
    """Probes or messages that came back."""
    packets: float = 0.0
    """Arrivals at nodes."""
    sent: float = 0.0
    """Packets that leave or reach each of its hosts."""


class _Traffic:
    """Every flow's load."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.duration = plan["duration"] / 1e9
        self._links = {link["name"]: link for link in plan["links"]}
        self._routes = {node["name"]: node["routes"] for node in plan["nodes"]}
        self.loads = [
            _Load(
                _as_requests(flow) if flow["kind"] == "http" else flow,
                self._way(flow["from"], flow["to"]),
                self._way(flow["to"], flow["from"]),
                self._accelerator(flow["from"], flow["to"]),
            )
            for flow in plan["flows"]
        ]
        self._share()
        for load in self.loads:
            _count(load, self.duration)
        ends = [load.end for load in self.loads]
        self.end = min(self.duration, max(ends, default=self.duration))

    def _way(self, node: str, destination: str) -> list[Plan]:
        way = []
        while node != destination:
            link = self._links[self._routes[node][destination]]
            forward = link["ends"][0] == node
            way.append(link["forward" if forward else "backward"])
            node = link["ends"][1 if forward else 0]
        return way

    def _accelerator(self, node: str, destination: str) -> Plan | None:
        accelerators: dict[str, Plan] = {
            one["name"]: one["accelerate"] for one in self.plan["nodes"] if one.get("accelerate")
        }
        while accelerators and node != destination:
            ends = self._links[self._routes[node][destination]]["ends"]
            node = ends[1] if ends[0] == node else ends[0]
            if node in accelerators:
                return accelerators[node]
        return None

    def _share(self) -> None:
        """Divide the links between the flows that carry data in bulk."""
        bulk = [load for load in self.loads if load.flow["kind"] in ("tcp", "udp", "request")]
        moments = self._moments(bulk)
        left = {id(load): _wanted(load) for load in bulk}
        for begin, end in pairwise(moments):
            middle = (begin + end) / 2
            active = [load for load in bulk if _active(load, middle, self.duration) and left[id(load)] > 0]
            # UDP does not yield.
            active.sort(key=lambda load: load.flow["kind"] != "udp")
            for load, rate in _divided(active, middle):
                used = min(rate * (end - begin), left[id(load)])
                load.bits += used
                left[id(load)] -= used
                load.seconds += used / rate if rate else end - begin
                load.end = begin + (used / rate if rate else end - begin)

    def _moments(self, loads: Iterable[_Load]) -> list[float]:
        moments = {0.0, self.duration}
        for load in loads:
            moments |= {load.flow["start"] / 1e9, (load.flow["stop"] or self.plan["duration"]) / 1e9}
            moments |= {
                change["at"] / 1e9
                for way in (load.there, load.back)
                for one in way
                for change in one["changes"]
            }
        inside = sorted(moment for moment in moments if moment <= self.duration)
        step = max(1, len(inside) // _MOMENTS)
        return [*inside[:-1:step], inside[-1]]


def _as_requests(flow: Plan) -> Plan:
    """An http flow as requests of the mean size, as many on each connection."""
    web, streams = flow["web"], flow["streams"]
    fetches = web["page"] * web["ranges"]
    return {
        **flow,
        "kind": "request",
        "request": 100,
        "response": 250 + math.ceil(sum(web["sizes"]) / len(web["sizes"]) / web["ranges"]),
        # Connections that find no work wait for the others.
        "think": web["think"] * min(streams, fetches) // fetches,
        "count": None if web["count"] is None else math.ceil(web["count"] * fetches / streams),
    }


def _active(load: _Load, time: float, duration: float) -> bool:
    stop = load.flow["stop"]
    return bool(load.flow["start"] / 1e9 <= time < (duration if stop is None else stop / 1e9))


def _divided(active: list[_Load], time: float) -> list[tuple[_Load, float]]:
    """Rates in bit/s, max-min fair by streams below what each flow can take."""
    room: dict[int, float] = {}
    for load in active:
        for direction in _carrying(load):
            room.setdefault(id(direction), _rate(direction, time))
    caps = {id(load): _cap(load, time) for load in active}
    rates = dict.fromkeys(caps, 0.0)
    for firm in (True, False):
        growing = [load for load in active if (load.flow["kind"] == "udp") is firm]
        while growing:
            weights: dict[int, float] = defaultdict(float)
            for load in growing:
                for direction in _carrying(load):
                    weights[id(direction)] += load.flow["streams"]
            steps = {
                id(load): min(
                    [(caps[id(load)] - rates[id(load)]) / load.flow["streams"]]
                    + [room[id(one)] / weights[id(one)] for one in _carrying(load)]
                )
                for load in growing
            }
            step = min(steps.values())
            for load in growing:
                rates[id(load)] += step * load.flow["streams"]
                for direction in _carrying(load):
                    room[id(direction)] -= step * load.flow["streams"]
            # What stops at this step is the first that was to; the tolerance is that of the additions.
            growing = [load for load in growing if steps[id(load)] > step * (1 + 1e-9)]
    return [(load, rates[id(load)]) for load in active]


def _carrying(load: _Load) -> list[Plan]:
    """The directions that the payload takes: of requests, the way of the responses."""
    return load.back if load.flow["kind"] == "request" else load.there


def _rate(direction: Plan, time: float) -> float:
    if trace := direction["trace"]:
        times = trace["opportunities_ms"]
        return float(len(times) * 1514 * 8 * 1000 / times[-1])
    rate, up = direction["rate"], direction["up"]
    for change in direction["changes"]:
        if change["at"] / 1e9 <= time:
            rate, up = change.get("rate", rate), change.get("up", up)
    return 0.0 if not up else _UNLIMITED if rate is None else float(rate)


def _rtt(load: _Load) -> float:
    """Propagation there and back, s; never nothing, for hosts take their time too."""
    delays: list[int] = [direction["delay"] for direction in (*load.there, *load.back)]
    return max(20e-6, sum(delays) / 1e9)


def _loss(directions: Iterable[Plan]) -> float:
    """Share of packets lost at random on a way."""
    kept = 1.0
    for direction in directions:
        model: Plan = direction["loss"]["model"] if direction["loss"] else {"kind": "none"}
        match model["kind"]:
            case "random":
                kept *= 1 - model["chance"]["rate"] / 1e9
            case "netem":
                from tcplab._core import effective_loss

                chance = model["chance"]
                kept *= 1 - effective_loss(chance["rate"] / 1e9, chance["correlation"] / 1e9)
            case "gilbert_elliott":
                into, out = model["p"], model["r"]
                bad = into / (into + out) if into + out else 0.0
                kept *= 1 - (bad * model["bad"] + (1 - bad) * model["good"]) / 1e9
            case "every":
                kept *= 1 - 1 / model["packets"]
    return 1 - kept


def _cap(load: _Load, time: float) -> float:
    """The most a flow takes, frame bits a second."""
    flow, rtt = load.flow, _rtt(load)
    if flow["kind"] == "udp":
        share = 1.0
        if pattern := flow["pattern"]:
            share = pattern["on"] / (pattern["on"] + pattern["off"])
        frame = (flow["payload"] + 42) / flow["payload"]
        return float(flow["rate"] * frame * share * flow["streams"])
    sender = flow["receiver"] if flow["kind"] == "request" else flow["sender"]
    receiver = flow["sender"] if flow["kind"] == "request" else flow["receiver"]
    window = min(sender["send_buffer"] or _DEFAULT_WINDOW, receiver["receive_buffer"] or _DEFAULT_WINDOW)
    mss = sender["mss"]
    one = window * 8 / rtt
    loss, cc = _loss(_carrying(load)), flow["cc"]
    if load.accelerator:
        # Each leg has its own window; loss is taken to be that of the leg towards the server.
        one, cc = math.inf, load.accelerator["towards_server"]["cc"]
    name = cc["name"].removeprefix("tl_")
    if loss > 0 and not name.startswith(_LOSS_BLIND):
        path = Path(_UNLIMITED, rtt, loss, mss)
        one = min(one, mathis(path) if name in _RENO_LIKE else max(mathis(path), cubic_response(path)))
    if flow["kind"] == "request":
        # Slow start from ten segments, on a connection that stays (RFC 6928).
        rounds = 1 + math.log2(1 + flow["response"] / mss / 10)
        one = min(one, (flow["response"] * 8) / (flow["think"] / 1e9 + rounds * rtt))
    elif pattern := flow["pattern"]:
        one *= pattern["on"] / (pattern["on"] + pattern["off"])
    return float(one * flow["streams"] * (mss + HEADERS) / mss)


def _wanted(load: _Load) -> float:
    """Frame bits the flow has to carry; infinite where time ends it."""
    flow = load.flow
    if flow["kind"] == "request":
        amount = None if flow["count"] is None else flow["count"] * flow["response"]
    else:
        amount = flow["bytes"]
    if amount is None:
        return math.inf
    payload = flow["payload"] if flow["kind"] == "udp" else flow["sender"]["mss"]
    return float(amount * flow["streams"] * 8 * (payload + HEADERS) / payload)


def _count(load: _Load, duration: float) -> None:
    """Fill in the packets, and what of echoes and pings."""
    flow = load.flow
    there, back = len(load.there), len(load.back)
    stop = duration if flow["stop"] is None else min(duration, flow["stop"] / 1e9)
    time = max(0.0, stop - flow["start"] / 1e9)
    match flow["kind"]:
        case "udp":
            data, acks = load.bits / 8 / (flow["payload"] + 42), 0.0
        case "tcp":
            data = load.bits / 8 / (flow["sender"]["mss"] + 54)
            acks = data * _acked(flow["receiver"])
        case "request":
            trips = load.bits / 8 / (flow["response"] * (1 + HEADERS / flow["sender"]["mss"]))
            load.trips = trips
            segments = trips * math.ceil(flow["response"] / flow["sender"]["mss"])
            # The response's segments go back; requests and ACKs go there.
            acks, data = segments, trips * math.ceil(flow["request"] / flow["sender"]["mss"]) + segments / 2
        case "ping":
            probes = min(time * 1e9 / flow["interval"], flow["count"] or math.inf) * flow["streams"]
            load.trips = data = acks = probes
            load.seconds, load.end = time, _ended(flow, probes, flow["interval"] / 1e9, time)
        case _:
            data = acks = _echoed(load, time)
    # The handshake and the end of each connection.
    if flow["kind"] not in ("udp", "ping"):
        data, acks = data + 3 * flow["streams"], acks + 2 * flow["streams"]
    load.sent = data + acks
    load.packets = data * there + acks * back


def _acked(receiver: Plan) -> float:
    """ACKs for each segment that comes."""
    if receiver["gro"]:
        return 0.25
    return 0.5 if receiver["delayed_ack"] else 1.0


def _ended(flow: Plan, probes: float, interval: float, time: float) -> float:
    whole = flow["count"] is not None and probes / flow["streams"] >= flow["count"]
    return float(flow["start"] / 1e9 + (flow["count"] * interval if whole else time))


def _echoed(load: _Load, time: float) -> float:
    """Packets of a flow of echoes in each direction; its trips are noted."""
    flow, left = load.flow, time
    mss = flow["sender"]["mss"]
    ways = (load.there, load.back)
    packets = 0.0
    for message in flow["sizes"]:
        segments = math.ceil(message / mss)
        frames = 8 * (message + segments * HEADERS)
        slowest = [min((_rate(direction, 0) for direction in way), default=_UNLIMITED) for way in ways]
        # All clients' messages share the links; one alone is stored and forwarded at each.
        busy = max(frames * flow["streams"] / max(rate, 1) for rate in slowest)
        alone = _rtt(load) + sum(frames / max(rate, 1) for rate in slowest)
        trip = max(flow["interval"] / 1e9, alone, busy)
        done = min(flow["iterations"], left / trip)
        left -= done * trip
        load.trips += done * flow["streams"]
        # Beyond one segment the other end acknowledges before its echo begins.
        packets += done * flow["streams"] * (segments if segments == 1 else 1.5 * segments)
    load.seconds, load.end = time - left, flow["start"] / 1e9 + time - left
    return packets


def _rows(plan: Plan, traffic: _Traffic) -> dict[str, float]:
    sample = plan["sample"]
    rows: dict[str, float] = defaultdict(float)
    every = {key: (sample[key] or math.inf) / 1e9 for key in ("sockets", "queues", "flows")}
    for load in traffic.loads:
        flow = load.flow
        streams = flow["streams"]
        if "cc" in flow:
            ends = 2 if goes_both_ways(flow) else 1
            sockets = ends * streams * load.seconds / every["sockets"]
            rows["sockets"] += sockets
            rows["gauges"] += _GAUGES * sockets
        if flow["kind"] == "request":
            rows["fetches" if "web" in flow else "echoes"] += load.trips
        if flow["kind"] == "ping":
            rows["pings"] += load.trips
        else:
            rows["intervals"] += streams * load.seconds / every["flows"]
        if flow["kind"] == "echo":
            kept = streams * len(flow["sizes"]) * min(flow["iterations"], max(_ECHO_HEAD, flow["warmup"]))
            asked = flow["iterations"] * len(flow["sizes"]) * streams
            rows["echoes"] += load.trips if asked <= _ECHO_ROWS else min(kept, load.trips)
    rows["queues"] = 2 * len(plan["links"]) * traffic.end / every["queues"]
    if sample["packets"]:
        # A packet is enqueued, departs and is delivered.
        rows["packets"] = 3 * sum(load.packets for load in traffic.loads)
    return rows


def _captured(plan: Plan, traffic: _Traffic) -> float:
    """Bytes of the captures."""
    capture = plan.get("capture")
    if not capture:
        return 0.0
    size = 0.0
    for load in traffic.loads:
        ends = sum(load.flow[end] in capture["nodes"] for end in ("from", "to"))
        size += ends * load.sent * (_BLOCK + _KEPT)
        if capture["what"] == "full":
            size += ends * load.bits / 8
    return size
