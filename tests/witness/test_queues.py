"""Our queue disciplines beside those of a real kernel, which are offered the same packets.

The kernel is User-mode Linux in virtual time, so both sides see the arrivals at the same nanoseconds, and
nothing rests on how fast this machine is. Tolerances and the reasons for them stand in docs/fidelity.md.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcplab.testbed.tests import uml

# Each process that runs some of these tests boots the kernel for all of them: one process runs all.
pytestmark = pytest.mark.xdist_group("witness")

# Its time, flow, bytes and traffic class, and for TCP what it acknowledges.
Arrival = list[Any]
ECT0 = 2


def offered(
    *, rate: int, seconds: float, loads: list[float], flows: int, tos: int = 0, seed: int = 1
) -> list[Arrival]:
    """Poisson arrivals of packets of mixed sizes; their load, relative to the rate, goes through `loads`."""
    draw = random.Random(seed)
    sizes = [114, 614, 1514, 1514]
    mean = sum(sizes) / len(sizes) * 8e9 / rate
    arrivals, at = [], 0.0
    while at < seconds * 1e9:
        load = loads[int(at / (seconds * 1e9) * len(loads))]
        at += draw.expovariate(load / mean)
        arrivals.append([int(at), draw.randrange(flows), draw.choice(sizes), tos])
    return arrivals


def with_flows(change: Callable[[int], tuple[int, int]], run: int) -> list[Arrival]:
    """Arrivals at one and a half of the rate, whose flows and traffic classes are changed to these."""
    arrivals = offered(rate=RATE, seconds=6, loads=[1.5], flows=8, seed=run)
    return [[at, flow, size, tos] for at, old, size, _ in arrivals for flow, tos in [change(old)]]


def acknowledgments(*, seconds: float, flows: int, seed: int) -> list[Arrival]:
    """ACKs of downloads, 1,400 a second in each of two flows, beside datagrams of other flows.

    Losses make runs of duplicates whose SACK blocks grow. Some ACKs echo marks, repeat the one before, or
    carry data. The first flow has time stamps.
    """
    draw = random.Random(seed)
    arrivals: list[Arrival] = []
    for flow in range(2):
        at, number, echoes, missing = 0.0, 1000, 0, 0
        sack: list[list[int]] = []
        while at < seconds * 1e9:
            at += draw.expovariate(1400 / 1e9)
            chance, echoes, payload = draw.random(), max(echoes - 1, 0), 0
            if missing:
                missing -= 1
                sack[0][1] += SEGMENT
                if draw.random() < 0.1 and len(sack) < 3:
                    sack.insert(0, [sack[0][1] + SEGMENT, sack[0][1] + 2 * SEGMENT])
                if missing == 0:
                    number, sack = max(right for _, right in sack), []
            elif chance < 0.05:
                missing, sack = draw.randrange(3, 12), [[number + SEGMENT, number + 2 * SEGMENT]]
            elif chance < 0.08:
                echoes = 5
            elif chance < 0.11:
                payload = 100
            elif chance > 0.13:
                number += 2 * SEGMENT
            options = (12 if flow == 0 else 0) + (4 + 8 * len(sack) if sack else 0)
            ack = {
                "number": number,
                "sack": [list(block) for block in sack],
                "ece": echoes > 0,
                "time": int(at / 1e6) if flow == 0 else None,
            }
            arrivals.append([int(at), flow, 54 + options + payload, 0, ack])
    other = offered(rate=RATE // 10, seconds=seconds, loads=[0.5], flows=flows, seed=seed)
    return sorted(arrivals + [[at, 2 + flow, *rest] for at, flow, *rest in other], key=lambda it: it[0])


def steady(*, rate: int, seconds: float, load: float, flows: int, tos: int = 0) -> list[Arrival]:
    """Full packets at even intervals, of one flow after another."""
    gap = 1514 * 8e9 / rate / load
    return [[int(number * gap), number % flows, 1514, tos] for number in range(int(seconds * 1e9 / gap))]


ROOT = Path(__file__).parents[2]
DISCIPLINES = ["tbf", "codel", "fq", "fq_codel", "pie", "red", "sfq", "cake"]
MODULES = ["veth", "sch_ingress", "cls_matchall", "act_mirred", *(f"sch_{name}" for name in DISCIPLINES)]
RATE = 10_000_000
# Payload of a full segment.
SEGMENT = 1448
BURST = 1540
SHAPER = ["root", "handle", "1:", "tbf", "rate", f"{RATE}bit", "burst", str(BURST), "limit", "10000000"]
LOADS = [0.7, 1.3, 0.9, 1.6, 0.5, 1.05]


def arrivals_of(name: str, run: int) -> list[Arrival]:
    """Loads that change, other packets in each run, or one that exceeds the rate all the time."""
    if name == "steady":
        return steady(rate=RATE, seconds=4, load=1.5, flows=3)
    if name == "classes":
        # Flow by flow CS1, none, AF41, EF: three eighths of the rate more than there is, in all.
        return with_flows(lambda flow: (flow, [0x20, 0, 0x88, 0xB8][flow % 4]), run)
    if name == "hosts":
        # Seven flows of one host, one of another.
        return with_flows(lambda flow: (1 if flow == 7 else 0 if flow % 2 else 250, 0), run)
    if name.startswith("other "):
        # Of the cases held out: packets that no other case has.
        return arrivals_of(name.removeprefix("other "), run + 100)
    if name == "sparse":
        # Three flows that want half as much again as there is, and one of 182 kbit/s.
        heavy = offered(rate=RATE, seconds=6, loads=[1.5], flows=3, seed=run)
        return sorted(heavy + [[number * 5_000_000, 3, 114, 0] for number in range(1200)])
    if name == "thousand":
        return offered(rate=RATE, seconds=8, loads=[1.3], flows=1000, seed=run)
    if name == "sizes":
        # A flow of full packets and one of small ones, each with nine tenths of the rate.
        flows = [(1514, 3500), (214, 24_000)]
        return sorted(
            [int(number * size * 8e9 / RATE / 0.9), flow, size, 0]
            for flow, (size, count) in enumerate(flows)
            for number in range(count)
        )
    if name == "acks":
        return acknowledgments(seconds=10, flows=1, seed=run)
    if name == "slow":
        return offered(rate=RATE // 10, seconds=30, loads=LOADS, flows=3, seed=run)
    if name == "bursts":
        # Each of four flows sends 25 full packets at once, every second; a flow waits for 30 ms and is gone.
        return [
            [1 + (burst * 250_000_000) + packet * 20_000, burst % 4, 1514, 0]
            for burst in range(40)
            for packet in range(25)
        ]
    tos = ECT0 if name == "varying, ECT" else 0
    return offered(rate=RATE, seconds=8, loads=LOADS, flows=8, tos=tos, seed=run)


_CAKE = {"kind": "cake", "bandwidth": RATE, "diffserv": "besteffort"}
_RED = {"limit": {"bytes": 240_000}, "min": {"bytes": 20_000}, "max": {"bytes": 60_000}}
# `tc` makes the weight 2^-5 of this burst.
_TC_RED = "red limit 240000 min 20000 max 60000 avpkt 1000 burst 34 bandwidth 10mbit probability 0.1"
# With so many queues no two of the eight flows share one: each boot of the kernel hashes differently, and in
# one of 37 boots two flows would meet in 1,024 queues.
_FQ: dict[str, Any] = {"kind": "fq_codel", "flows": 65_536}
_TC_FQ = "fq_codel flows 65536"
# The discipline, what `tc` calls it, and the arrivals. Asked to update PIE every 20 ms, two of its jiffies,
# the kernel does so every 30 ms: its timer wheel adds a jiffy so that no timer fires early.
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "codel": ({"kind": "codel"}, "codel", "varying"),
    "codel, steady": ({"kind": "codel"}, "codel", "steady"),
    "codel, ECN": ({"kind": "codel", "ecn": True}, "codel ecn", "varying, ECT"),
    "fq_codel": (_FQ, _TC_FQ, "varying"),
    "fq_codel, steady": (_FQ, _TC_FQ, "steady"),
    "fq_codel, ECN": (_FQ, _TC_FQ, "varying, ECT"),
    "fq_codel, a thousand flows": (_FQ, _TC_FQ, "thousand"),
    "fq_codel, quantum 256": ({**_FQ, "quantum": 256}, f"{_TC_FQ} quantum 256", "sizes"),
    "fq_codel, short": (
        {**_FQ, "limit": {"packets": 60}, "quantum": 300},
        f"{_TC_FQ} limit 60 quantum 300",
        "varying",
    ),
    "pie": ({"kind": "pie", "tupdate": 30_000_000}, "pie tupdate 20ms", "varying"),
    "pie, ECN": ({"kind": "pie", "tupdate": 30_000_000, "ecn": True}, "pie tupdate 20ms ecn", "varying, ECT"),
    "red": ({"kind": "red", **_RED, "probability": 100_000_000, "wlog": 5}, _TC_RED, "varying"),
    "red, ECN": (
        {"kind": "red", **_RED, "probability": 100_000_000, "wlog": 5, "ecn": True},
        f"{_TC_RED} ecn",
        "varying, ECT",
    ),
    "cake": (_CAKE, "cake bandwidth 10mbit besteffort", "varying"),
    "cake, steady": (_CAKE, "cake bandwidth 10mbit besteffort", "steady"),
    "cake, ECN": (_CAKE, "cake bandwidth 10mbit besteffort", "varying, ECT"),
    "cake, overhead": (
        {**_CAKE, "overhead": 48, "atm": "atm", "mpu": 96},
        "cake bandwidth 10mbit besteffort overhead 48 mpu 96 atm",
        "steady",
    ),
    "cake, classes": (
        {**_CAKE, "diffserv": "diffserv4"},
        "cake bandwidth 10mbit diffserv4",
        "classes",
    ),
    "cake, ACK filter": (
        {**_CAKE, "bandwidth": RATE // 10, "ack_filter": "on"},
        "cake bandwidth 1mbit besteffort ack-filter",
        "acks",
    ),
    "cake, ACK filter, aggressive": (
        {**_CAKE, "bandwidth": RATE // 10, "ack_filter": "aggressive"},
        "cake bandwidth 1mbit besteffort ack-filter-aggressive",
        "acks",
    ),
    "cake, memlimit": (
        {**_CAKE, "memlimit": {"bytes": 100 * 1514}},
        f"cake bandwidth 10mbit besteffort memlimit {100 * 2304}",
        "steady",
    ),
    "fq": ({"kind": "fq"}, "fq orphan_mask 65535", "varying"),
    "fq, maxrate": (
        {"kind": "fq", "maxrate": RATE // 10},
        "fq orphan_mask 65535 maxrate 1mbit",
        "varying",
    ),
    "drr": (
        {"kind": "drr", "limit": {"packets": 127}, "flows": 1024},
        "sfq limit 127 depth 127 quantum 1514",
        "steady",
    ),
    "tbf": (
        {
            "kind": "tbf",
            "rate": RATE,
            "burst": 15_000,
            "queue": {"kind": "droptail", "limit": {"bytes": 100_000}},
        },
        "tbf rate 10mbit burst 15000 limit 100000",
        "varying",
    ),
    "tbf, peak": (
        {
            "kind": "tbf",
            "rate": RATE // 10,
            "burst": 30_000,
            "peak": RATE,
            "queue": {"kind": "droptail", "limit": {"bytes": 100_000}},
        },
        "tbf rate 1mbit burst 30000 peakrate 10mbit mtu 1540 limit 100000",
        "slow",
    ),
    "cake, unlimited": (
        {"kind": "cake", "diffserv": "diffserv4"},
        "cake unlimited diffserv4",
        "classes",
    ),
    "cake, hosts": (
        {**_CAKE, "isolation": "dual-srchost"},
        "cake bandwidth 10mbit besteffort dual-srchost",
        "hosts",
    ),
    # Held out: ours was fitted to none of these.
    "cake, held out: precedence": (
        {**_CAKE, "bandwidth": 13_000_000, "diffserv": "precedence"},
        "cake bandwidth 13mbit precedence",
        "other classes",
    ),
    "cake, held out: precedence, 8 Mbit/s": (
        {**_CAKE, "bandwidth": 8_000_000, "diffserv": "precedence", "memlimit": {"bytes": 64_000_000}},
        "cake bandwidth 8mbit precedence memlimit 64000000",
        "other classes",
    ),
    "cake, held out: diffserv3, rtt 40 ms": (
        {**_CAKE, "diffserv": "diffserv3", "rtt": 40_000_000},
        "cake bandwidth 10mbit diffserv3 rtt 40ms",
        "other classes",
    ),
    "cake, held out: triple isolation": (
        {**_CAKE, "isolation": "triple-isolate"},
        "cake bandwidth 10mbit besteffort triple-isolate",
        "other hosts",
    ),
    "cake, held out: 1 Mbit/s": (
        {**_CAKE, "bandwidth": RATE // 10},
        "cake bandwidth 1mbit besteffort",
        "other slow",
    ),
    "cake, held out: bursts": (_CAKE, "cake bandwidth 10mbit besteffort", "other bursts"),
    "cake, held out: sparse": (_CAKE, "cake bandwidth 10mbit besteffort", "other sparse"),
    "cake, held out: ptm, ECN": (
        {**_CAKE, "overhead": 30, "atm": "ptm"},
        "cake bandwidth 10mbit besteffort overhead 30 ptm",
        "other varying, ECT",
    ),
}
# So many runs are averaged: PIE draws other numbers each time, which moves its drops by 4 %, and arrivals
# that come 0.1 ms earlier or later move the longest waits of fq_codel by a fifth.
RUNS = {
    "pie": 8,
    "pie, ECN": 8,
    "fq_codel": 6,
    "fq_codel, a thousand flows": 3,
    "cake": 6,
    "cake, classes": 4,
    "cake, held out: diffserv3, rtt 40 ms": 4,
    "cake, held out: ptm, ECN": 4,
    "cake, held out: precedence": 6,
}
LET_PASS = "cake, held out: bursts"
# The median differs by more, or from boot to boot, and is not judged: docs/fidelity.md.
WITHOUT_MEDIAN = ("cake, memlimit",)
SHARING = [
    name for name, (_, _, arrivals) in CASES.items() if arrivals.split()[-1] in ("classes", "hosts", "sparse")
]


def shapes(queue: dict[str, Any]) -> bool:
    """Whether it has a rate of its own; others stand behind a token bucket."""
    return queue["kind"] == "tbf" or "bandwidth" in queue or "maxrate" in queue


def commands(queue: dict[str, Any], words: str) -> list[list[str]]:
    """The commands for `tc`."""
    if shapes(queue):
        return [["root", "handle", "1:", *words.split()]]
    return [SHAPER, ["parent", "1:", "handle", "2:", *words.split()]]


def shaped(queue: dict[str, Any]) -> dict[str, Any]:
    """The same of ours."""
    if shapes(queue):
        return queue
    return {"kind": "tbf", "rate": RATE, "burst": BURST, "queue": queue}


class Side:
    """The departures, drops and marks of one side in a case."""

    def __init__(
        self,
        packets: list[tuple[int, int]],
        sent: list[int],
        left: list[int | None],
        tos: list[int | None],
    ) -> None:
        """Of packets, each of a flow and with its size in bytes."""
        self.drops: float = sum(time is None for time in left)
        self.marks: float = sum(value is not None and value & 3 == 3 for value in tos)
        waits = [time - start for start, time in zip(sent, left, strict=True) if time is not None]
        self.sojourns = np.sort(np.array(waits) / 1e6)
        # While arrivals go on: afterwards each flow gets what it has waiting.
        end = max(sent, default=0)
        self.bytes: Counter[int] = Counter()
        for (flow, size), time in zip(packets, left, strict=True):
            if time is not None and time <= end:
                self.bytes[flow] += size

    @classmethod
    def mean(cls, sides: list[Side]) -> Side:
        """All the packets of several runs, and the mean counts."""
        made = cls([], [], [], [])
        made.drops = sum(side.drops for side in sides) / len(sides)
        made.marks = sum(side.marks for side in sides) / len(sides)
        made.sojourns = np.sort(np.concatenate([side.sojourns for side in sides]))
        made.bytes = sum((side.bytes for side in sides), Counter())
        return made

    def quantiles(self) -> np.ndarray:
        """Sojourn times in ms that 10, 50 and 90 % of packets do not exceed."""
        return np.quantile(self.sojourns, [0.1, 0.5, 0.9])


def offer() -> str:
    """The program that offers packets to our queues, as `cargo test` builds it with those of all crates."""
    build = [
        "cargo",
        "build",
        "--workspace",
        "--example",
        "offer",
        "--locked",
        "--quiet",
        "--message-format",
        "json",
    ]
    answer = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True)
    made = [json.loads(line) for line in answer.stdout.splitlines()]
    [program] = [one["executable"] for one in made if one.get("target", {}).get("name") == "offer"]
    return str(program)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Side, Side]]:
    """By case, what the kernel did and what ours did."""
    why = uml.missing()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("queues")
    runs = {name: [f"{name} {run}" for run in range(RUNS.get(name, 1))] for name in CASES}
    theirs = [
        {
            "name": run,
            "qdisc": commands(queue, words),
            "arrivals": arrivals_of(arrivals, number),
            "drain": 6,
        }
        for name, (queue, words, arrivals) in CASES.items()
        for number, run in enumerate(runs[name], 1)
    ]
    kernel = uml.answers(Path(__file__).with_name("guest.py"), theirs, folder, MODULES)
    ours = [
        {
            "name": run,
            "seed": seed,
            "rate": None,
            "queue": shaped(queue),
            # At the times when the kernel was offered them: a reading of its clock takes 16 ns.
            "arrivals": [
                [sent, *packet]
                for sent, (_, *packet) in zip(kernel[run]["sent"], arrivals_of(arrivals, seed), strict=True)
            ],
        }
        for name, (queue, _, arrivals) in CASES.items()
        for seed, run in enumerate(runs[name], 1)
    ]
    answer = subprocess.run([offer()], input=json.dumps(ours), capture_output=True, text=True, check=True)
    mine = json.loads(answer.stdout)

    def side(done: dict[str, Any], name: str) -> Side:
        arrivals = CASES[name][2]
        packets = [
            [(flow, size) for _, flow, size, *_ in arrivals_of(arrivals, run)]
            for run in range(1, len(runs[name]) + 1)
        ]
        return Side.mean(
            [
                Side(of, kernel[run]["sent"], done[run]["left"], done[run]["tos"])
                for of, run in zip(packets, runs[name], strict=True)
            ]
        )

    return {name: (side(kernel, name), side(mine, name)) for name in CASES}


@pytest.mark.parametrize("case", [case for case in CASES if case != LET_PASS])
def test_as_many_packets_are_dropped_and_marked(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    kernel, ours = sides[case]
    assert kernel.drops + kernel.marks > 100
    assert ours.drops == pytest.approx(kernel.drops, rel=0.05, abs=15)
    assert ours.marks == pytest.approx(kernel.marks, rel=0.05, abs=15)


def test_bursts_shorter_than_the_interval_are_let_pass(sides: dict[str, tuple[Side, Side]]) -> None:
    # 1000 packets in 40 bursts, of each of which most wait for longer than the target.
    for side in sides[LET_PASS]:
        assert side.drops < 10
        assert side.quantiles()[1] > 10


@pytest.mark.parametrize("case", CASES)
def test_packets_wait_as_long(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    kernel, ours = sides[case]
    pairs = zip(ours.quantiles(), kernel.quantiles(), strict=True)
    judged = [pair for at, pair in enumerate(pairs) if at != 1 or case not in WITHOUT_MEDIAN]
    assert [one for one, _ in judged] == pytest.approx([other for _, other in judged], rel=0.15, abs=1.3)


@pytest.mark.parametrize("case", SHARING)
def test_flows_get_as_much(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    # Bytes are what is shared out. Packets vary more, with the sizes that are dropped: in five boots of the
    # kernel they were up to 5 % from ours where the bytes of four runs were within 1.3 %.
    kernel, ours = sides[case]
    assert kernel.bytes.keys() == ours.bytes.keys()
    for flow, amount in kernel.bytes.items():
        assert ours.bytes[flow] == pytest.approx(amount, rel=0.03), flow
