"""TCP of a real kernel in virtual time, and the simulator: the same transfers on both.

The kernel is User-mode Linux: hosts take no time there, and nothing rests on how fast this machine is. So
whatever differs is TCP or a queue. tests/witness compares some of these cases; `fidelity.py transfers
shares requests` puts all of them into docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import tcplab
from tcplab.testbed.tests import uml

GUEST = Path(__file__).resolve().parents[1] / "tests" / "witness" / "transfers.py"
MODULES = [
    "ipv6",
    "veth",
    "sch_ingress",
    "sch_netem",
    "sch_tbf",
    "sch_fq_codel",
    "sch_codel",
    "sch_cake",
    "sch_pie",
    "sch_red",
]
MODULES += ["act_gact", "cls_matchall", "tcp_bbr", "tcp_dctcp", "tcp_htcp", "tcp_illinois", "tcp_vegas"]
MODULES += ["tcp_westwood"]
# Those whose published algorithm is the kernel's: its hybla counts ACKs, its westwood has filters of its own.
KERNEL_NAMES = {"bbr1": "bbr"}
CONTROLS = ("reno", "cubic", "bbr1", "htcp", "illinois", "vegas")
# Between the starts of streams: those that start together lose together, in step with each other for long.
APART_MS = 370
# How flows share depends on BBR's phase, which is random, and on which of them a full queue hits. So means
# are compared, over runs whose streams start at other distances.
STARTS_MS = (370, 410, 450, 490, 530, 570)
# The kernel's defaults on a machine with memory enough, which this one has not.
SYSCTLS = {
    "tcp_rmem": "4096 131072 6291456",
    "tcp_wmem": "4096 16384 4194304",
    "tcp_no_metrics_save": 1,
    "tcp_sack": 1,
    "tcp_timestamps": 1,
    "tcp_ecn": 2,
    "tcp_slow_start_after_idle": 1,
}


@dataclass(frozen=True)
class Case:
    """One path and one flow, for both sides."""

    rate: int
    """In Mbit/s."""
    rtt: int
    """In ms."""
    queue: Any
    """As in a scenario, behind a token bucket of this rate (`cake` has its own)."""
    tc: list[str]
    """The same, as `tc` has it."""
    controls: tuple[str, ...]
    """One for each flow."""
    drop_every: int = 0
    host: dict[str, Any] = field(default_factory=dict)
    """Settings of both hosts."""
    sysctls: dict[str, Any] = field(default_factory=dict)
    """The same, for the kernel."""
    ip: int = 4
    both_ways: bool = False
    """Every second stream goes the other way, through a queue of its own."""
    request: tuple[int, int, int] | None = None
    """Each stream is a client that asks: bytes of a request and of its response, and ms to think between."""
    bursts: bool = False
    """Hosts send bursts of several segments, as with segmentation offload."""
    buffer: int | None = None
    """Of sending and receiving at both hosts, in bytes. Linux 6.1 tunes them otherwise than the simulator."""
    seconds: int = 20
    starts: tuple[int, ...] = (APART_MS,)
    """The distances of the streams' starts, one for each run, in ms."""

    def scenario(self, apart: int) -> dict[str, Any]:
        """Streams start `apart` ms after each other, and each run has random numbers of its own."""
        rate = f"{self.rate} Mbit/s"
        queue = self.queue
        if not (isinstance(queue, dict) and "bandwidth" in queue):
            queue = {"kind": "tbf", "rate": rate, "burst": "3 kB", "queue": queue}
        path: dict[str, Any] = {"rate": "10 Gbit/s", "rtt": f"{self.rtt} ms", "queue": queue}
        if self.both_ways:
            path["reverse"] = {"queue": queue}
        if self.drop_every:
            path["loss"] = {"every": f"{self.drop_every} packets", "before_queue": True}
        flows: list[dict[str, Any]] = []
        for number, control in enumerate(self.controls):
            flow = {"name": f"f{number}", "cc": control, "ip": self.ip, "start": f"{number * apart} ms"}
            if self.request:
                asked, answered, think = self.request
                flow |= {"kind": "request", "request": f"{asked} B", "response": f"{answered} B"}
                flow |= {"think": f"{think} ms"}
            else:
                flow |= {"kind": "tcp"}
            # Responses, too, go through the queue from left to right.
            if self.request or (self.both_ways and number % 2):
                flow |= {"from": "right", "to": "left"}
            flows.append(flow)
        host = self.host if self.bursts else {"tso": "off", "gso": "off", **self.host}
        if self.buffer:
            host = {**host, "send_buffer": f"{self.buffer} B", "receive_buffer": f"{self.buffer} B"}
        return {
            "tcplab": 1,
            "name": "transfers",
            "seed": 1 + self.starts.index(apart),
            "network": {"path": path, "hosts": host},
            "flows": flows,
            "duration": f"{self.seconds} s",
        }

    def guest(self, name: str, apart: int) -> dict[str, Any]:
        """The same for tests/witness/transfers.py."""
        bucket = f"root handle 1: tbf rate {self.rate}mbit burst 3000 limit 1000000000"
        shaped = [self.tc] if self.tc[0] == "root" else [bucket.split(), ["parent", "1:1", *self.tc]]
        return {
            "name": name,
            "queue": shaped,
            "delay": self.rtt / 2,
            "drop_every": self.drop_every,
            "sysctls": {**SYSCTLS, **self.sysctls},
            "controls": [KERNEL_NAMES.get(control, control) for control in self.controls],
            "apart": apart / 1e3,
            "ip": self.ip,
            "both_ways": self.both_ways,
            "bursts": self.bursts,
            "request": self.request,
            "buffer": self.buffer,
            "seconds": self.seconds,
        }


def droptail(rate: int, rtt: int, share: float, *controls: str, **more: Any) -> Case:
    """A buffer of a share of the bandwidth-delay product."""
    limit = int(rate * 1e3 / 8 * rtt * share)
    return Case(rate, rtt, f"{limit} B", ["bfifo", "limit", str(limit + 1514)], controls, **more)


LOSS: dict[str, Any] = {"drop_every": 500}
NO_SACK: dict[str, Any] = {"host": {"sack": "off"}, "sysctls": {"tcp_sack": 0}}
NO_TIMESTAMPS: dict[str, Any] = {"host": {"timestamps": "off"}, "sysctls": {"tcp_timestamps": 0}}
WITH_ECN: dict[str, Any] = {"host": {"ecn": "on"}, "sysctls": {"tcp_ecn": 1}}
CAKE: dict[str, Any] = {"kind": "cake", "bandwidth": "20 Mbit/s"}
CAKE_TC = ["root", "cake", "bandwidth", "20mbit"]
CODEL_ECN: dict[str, Any] = {"kind": "codel", "ecn": True}
MARKING, MARKING_TC = {**CODEL_ECN, "ce_threshold": "2 ms"}, ["codel", "ecn", "ce_threshold", "2ms"]
# As a switch that marks above 65 packets of 100 Mbit/s.
SWITCH = {**CODEL_ECN, "target": "1 s", "ce_threshold": "7.9 ms"}
SWITCH_TC = ["codel", "target", "1s", "ecn", "ce_threshold", "7900us"]
# The kernel's timers tick every 10 ms, which makes 20 ms of PIE's 15.
PIE, PIE_TC = {"kind": "pie", "tupdate": "20 ms"}, ["pie", "tupdate", "20ms"]

# Vegas compares round trips, so it depends on each ACK. Those that report a growing window come otherwise in
# that kernel: its receive window grows as in Linux 6.1, ours as in 6.18.
FIXED_BUFFERS: dict[str, dict[str, Any]] = {"vegas": {"buffer": 6_000_000}}

CASES: dict[str, Case] = {
    **{
        f"{one} alone": droptail(20, 40, 1, one, **FIXED_BUFFERS.get(one, {}))
        for one in (*CONTROLS, "westwood")
    },
    **{
        f"{one}, one packet in 500 lost": droptail(20, 40, 1, one, **LOSS, **FIXED_BUFFERS.get(one, {}))
        for one in CONTROLS
    },
    "htcp, 100 Mbit/s, 400 ms, one packet in 1200 lost": droptail(
        100, 400, 1, "htcp", drop_every=1200, buffer=6_000_000, seconds=30
    ),
    "reno, half a BDP": droptail(20, 40, 0.5, "reno"),
    "cubic, half a BDP": droptail(20, 40, 0.5, "cubic"),
    "cubic, 21 packets": droptail(100, 10, 0.25, "cubic"),
    **{f"{one}, bursts": droptail(20, 40, 1, one, bursts=True) for one in ("reno", "cubic", "bbr1")},
    "reno without timestamps": droptail(20, 40, 1, "reno", **LOSS, **NO_TIMESTAMPS),
    "cubic without timestamps": droptail(20, 40, 1, "cubic", **LOSS, **NO_TIMESTAMPS),
    "cubic without SACK": droptail(20, 40, 1, "cubic", **LOSS, **NO_SACK),
    "cubic, IPv6": droptail(20, 40, 1, "cubic", ip=6),
    "codel, 4 reno": Case(20, 40, "codel", ["codel"], ("reno",) * 4, starts=STARTS_MS[:3]),
    "codel, 4 cubic": Case(20, 40, "codel", ["codel"], ("cubic",) * 4),
    "fq_codel, 4 cubic": Case(20, 40, "fq_codel", ["fq_codel"], ("cubic",) * 4),
    "cake, 4 cubic": Case(20, 40, CAKE, CAKE_TC, ("cubic",) * 4),
    "pie, 4 cubic": Case(20, 40, PIE, PIE_TC, ("cubic",) * 4),
    "codel that marks, 2 cubic": Case(20, 40, CODEL_ECN, ["codel", "ecn"], ("cubic",) * 2, **WITH_ECN),
    "marks above 2 ms, 2 dctcp": Case(20, 40, MARKING, MARKING_TC, ("dctcp",) * 2, **WITH_ECN),
}


def beside(share: float, *controls: str, **more: Any) -> Case:
    """Two flows behind one droptail queue, for a minute."""
    return droptail(20, 40, share, *controls, seconds=60, starts=STARTS_MS, **more)


SHARES: dict[str, Case] = {
    **{
        f"{one} beside {other}, {share:g} BDP": beside(share, one, other)
        for one, other in [("reno", "bbr1"), ("cubic", "bbr1"), ("reno", "cubic")]
        for share in (0.5, 1, 2)
    },
    "bbr1 beside bbr1, 1 BDP": beside(1, "bbr1", "bbr1"),
    **{
        f"{one} beside cubic, 2 BDP": beside(2, one, "cubic", **FIXED_BUFFERS.get(one, {}))
        for one in ("htcp", "illinois", "vegas", "westwood")
    },
    "dctcp beside dctcp, bursts": Case(
        100, 5, SWITCH, SWITCH_TC, ("dctcp",) * 2, bursts=True, seconds=60, starts=STARTS_MS, **WITH_ECN
    ),
    # Data one way and the other: each flow's acknowledgments wait in the other's queue.
    **{f"{one} both ways, 1 BDP": beside(1, one, one, both_ways=True) for one in ("reno", "cubic", "bbr1")},
}

# Clients that ask a server beyond the queue: small and large answers, idle times longer than the RTO, losses.
REQUESTS: dict[str, Case] = {
    "100 B, 1 kB": droptail(20, 40, 1, "cubic", request=(100, 1000, 0)),
    "100 B, 100 kB": droptail(20, 40, 1, "cubic", request=(100, 100_000, 0)),
    "100 B, 1 MB": droptail(20, 40, 1, "cubic", request=(100, 1_000_000, 0)),
    "100 B, 100 kB, 1 s between": droptail(20, 40, 1, "cubic", request=(100, 100_000, 1000)),
    "100 kB, 100 B": droptail(20, 40, 1, "cubic", request=(100_000, 100, 0)),
    "100 B, 100 kB, one in 50 lost": droptail(
        20, 40, 1, "cubic", request=(100, 100_000, 0), drop_every=50, seconds=60
    ),
}


@dataclass(frozen=True)
class Side:
    """Figures of one side, by run and stream."""

    goodput: np.ndarray
    """In Mbit/s, as the other two of this shape: one row a run, one column a stream."""
    retransmitted: np.ndarray
    """In segments."""
    srtt: np.ndarray
    """In ms: the mean of the smoothed RTT; of requests, no end's in particular."""
    responses: np.ndarray
    """In ms: how long each request took that was answered, of all runs and streams."""

    @classmethod
    def of(cls, runs: list[Side]) -> Side:
        """Runs put together."""
        return cls(
            np.concatenate([run.goodput for run in runs]),
            np.concatenate([run.retransmitted for run in runs]),
            np.concatenate([run.srtt for run in runs]),
            np.concatenate([run.responses for run in runs]),
        )


def both_sides(cases: Mapping[str, Case], folder: Path) -> dict[str, tuple[Side, Side]]:
    """By case, the kernel's and ours; `folder` gets what they leave."""
    runs = [(f"{name} {apart}", case, apart) for name, case in cases.items() for apart in case.starts]
    asked = [case.guest(label, apart) for label, case, apart in runs]
    # Ten times as long as on an idle machine.
    seconds = 120 + sum(case.seconds for _, case, _ in runs)
    kernel = uml.answers(GUEST, asked, folder, MODULES, seconds=seconds)
    theirs, ours = {}, {}
    for number, (label, case, apart) in enumerate(runs):
        theirs[label] = _theirs(kernel[label], case)
        ours[label] = _ours(case, apart, folder / f"run-{number}")
    return {
        name: (
            Side.of([theirs[f"{name} {apart}"] for apart in case.starts]),
            Side.of([ours[f"{name} {apart}"] for apart in case.starts]),
        )
        for name, case in cases.items()
    }


def _theirs(done: dict[str, list[float]], case: Case) -> Side:
    return Side(
        np.array([done["received"]]) * (8e-6 / case.seconds),
        np.array([done["retransmitted"]]),
        np.array([done["srtt"]]),
        np.array(done["responses"]),
    )


def _ours(case: Case, apart: int, out: Path) -> Side:
    run = tcplab.run(case.scenario(apart), output=out)
    flows = run.flows.sort("flow")
    srtt = run.sockets.group_by("flow").agg(pl.col("srtt").mean()).sort("flow")["srtt"] / 1e6
    return Side(
        flows["bytes_received"].to_numpy()[None] * (8e-6 / case.seconds),
        flows["retransmits"].to_numpy()[None],
        srtt.to_numpy()[None],
        run.echoes["rtt"].to_numpy() / 1e6 if case.request else np.array([]),
    )


Row = list[str]
TRANSFERS_COLUMNS = [
    *("case", "Mbit/s: kernel", "sim", "", "retransmitted: kernel", "sim"),
    *("mean SRTT ms: kernel", "sim"),
]
SHARES_COLUMNS = ["case", "Mbit/s: kernel", "sim", "retransmitted: kernel", "sim"]
REQUESTS_COLUMNS = ["case", "answered: kernel", "sim", "ms: kernel", "sim"]


def transfers(folder: Path) -> Iterator[Row]:
    """Flows that are alike."""
    for name, (kernel, ours) in both_sides(CASES, folder).items():
        rates = [one.goodput.sum(1).mean() for one in (kernel, ours)]
        yield [
            name,
            *(f"{rate:.2f}" for rate in rates),
            f"{(rates[1] / rates[0] - 1) * 100:+.1f} %",
            *(f"{one.retransmitted.sum(1).mean():.0f}" for one in (kernel, ours)),
            *(f"{one.srtt.mean():.1f}" for one in (kernel, ours)),
        ]


def shares(folder: Path) -> Iterator[Row]:
    """Flows that share a queue, or go both ways: means of all runs, and the standard deviation of a run."""
    for name, (kernel, ours) in both_sides(SHARES, folder).items():
        both = (kernel, ours)
        means = [
            [
                f"{rate:.2f} ± {spread:.2f}"
                for rate, spread in zip(one.goodput.mean(0), one.goodput.std(0, ddof=1), strict=True)
            ]
            for one in both
        ]
        counts = [[f"{count:.0f}" for count in one.retransmitted.mean(0)] for one in both]
        yield [name, *(" and ".join(each) for each in (*means, *counts))]


def requests(folder: Path) -> Iterator[Row]:
    """How many requests were answered, and how long 50, 90 and 99 % of them took at most."""
    for name, (kernel, ours) in both_sides(REQUESTS, folder).items():
        both = (kernel.responses, ours.responses)
        quantiles = [[f"{took:.1f}" for took in np.quantile(one, [0.5, 0.9, 0.99])] for one in both]
        yield [name, *(str(len(one)) for one in both), *(", ".join(each) for each in quantiles)]
