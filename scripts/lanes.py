"""Scenarios of many lanes: pairs of hosts, each with a link of its own, measured in one run on both engines.

A lane is one situation: a control alone, a control beside CUBIC, a host setting. Lanes of one group share a
run, so a group of seven takes as long as one. What a group came to on the kernel is kept in a file: a
measurement that was interrupted goes on where it was. The simulator is run anew each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcplab.results import Run

# Figures leave out the beginning of a run, seconds.
WARM_UP = 5
# Runs of which the median is taken, and how often an overloaded one is made. Disturbed ones do not count.
REPETITIONS, ATTEMPTS = 3, 2
GOODPUT, RTT, RETRANSMITTED = 0.05, 0.10, 1.5
# Fewer segments than this are too few for their ratio to mean anything.
FEW = 20
COLUMNS = [
    *("situation", "flow", "kernel Mbit/s", "sim Mbit/s", "kernel RTT ms", "sim RTT ms"),
    *("kernel retransmitted", "sim retransmitted", "runs", "sim off by"),
]

RunIt = Callable[..., Run]
Figures = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Lane:
    """One situation: its flows go over a link of their own."""

    name: str
    flows: list[dict[str, Any]]
    link: dict[str, Any] = field(default_factory=dict)
    hosts: dict[str, Any] = field(default_factory=dict)
    right: dict[str, Any] | None = None
    """Settings of the receiving host, where they differ."""


@dataclass(frozen=True)
class Group:
    """Lanes that are measured in one run."""

    name: str
    lanes: list[Lane]
    rate: str = "10 Mbit/s"
    rtt_ms: int = 40
    queue: str = "1 BDP"
    seconds: int = 20

    def scenario(self, engine: str) -> dict[str, Any]:
        """The scenario of the group. On the kernel its own controls are used where it has them."""
        nodes: list[dict[str, Any]] = []
        links: list[dict[str, Any]] = []
        flows: list[dict[str, Any]] = []
        for number, lane in enumerate(self.lanes):
            left, right = f"l{number}", f"r{number}"
            nodes += [{"name": left, **lane.hosts}, {"name": right, **(lane.right or lane.hosts)}]
            link = {"ends": [left, right], "name": f"lane{number}", "delay": f"{self.rtt_ms / 2:g} ms"}
            link |= {"rate": self.rate, "queue": self.queue, "reverse": {"queue": "10000 packets"}}
            links.append(link | lane.link)
            for index, flow in enumerate(lane.flows):
                own = {"name": f"f{number}-{index}", "from": left, "to": right} | flow
                if own["from"] == "right":
                    own |= {"from": right, "to": left}
                if engine == "kernel" and "cc" in own:
                    own["cc"] = KERNEL_NAMES.get(own["cc"], own["cc"])
                flows.append(own)
        network = {"nodes": nodes, "links": links}
        return {
            "tcplab": 1,
            "name": "lanes",
            "network": network,
            "flows": flows,
            "duration": f"{self.seconds} s",
            # Twenty hosts sampled every 10 ms would keep the receivers from a CPU that they share.
            "sample": {"sockets": "100 ms", "queues": "100 ms", "hosts": "100 ms"},
        }


# The kernel's own controls; of the others it runs ours.
KERNEL_NAMES = {"bbr1": "bbr"}


def rows(groups: list[Group], folder: Path, run: RunIt, kept: Path) -> Iterator[list[str]]:
    """The rows of all groups; the kernel's figures measured or remembered."""
    done: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for group in groups:
        given = group.scenario("kernel")
        key = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]
        if key not in done:
            done[key] = _on_the_kernel(given, folder, run)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(done, indent=1), encoding="utf-8")
        kernel = done[key]
        # Repetitions have the same losses and starts in both engines.
        every = _figures(run(group.scenario("sim"), "sim", folder, repeat=REPETITIONS))
        simulated = _medians([every[number] for number in kernel["counted"]])
        for number, lane in enumerate(group.lanes):
            for index, flow in enumerate(lane.flows):
                name = f"f{number}-{index}"
                yield _row(group, lane, flow, name, kernel, simulated)


def _on_the_kernel(given: dict[str, Any], folder: Path, run: RunIt) -> dict[str, Any]:
    """Medians of the repetitions that nothing disturbed; of all, and marked, where there were none."""
    done = run(given, "kernel", folder, repeat=REPETITIONS, attempts=ATTEMPTS)
    clean = [number for number, each in done.manifests.items() if not each.overload]
    counted = clean or list(done.manifests)
    each = [figures for number, figures in _figures(done).items() if number in counted]
    spread = {
        flow: [min(one[flow]["goodput"] for one in each), max(one[flow]["goodput"] for one in each)]
        for flow in each[0]
    }
    return {"figures": _medians(each), "spread": spread, "counted": counted, "clean": len(clean)}


def _medians(each: list[Figures]) -> Figures:
    return {
        flow: {key: float(np.median([one[flow][key] for one in each])) for key in figures}
        for flow, figures in each[0].items()
    }


def _figures(run: Run) -> dict[int, Figures]:
    """By repetition and flow, after the warm-up."""
    found: dict[int, Figures] = {}
    steady = pl.col("time") > WARM_UP * 1e9
    for number in run.manifests:
        found[number] = {}
        for flow in run.flows["flow"].unique().sort():
            one = (pl.col("flow") == flow) & steady
            intervals = run.intervals.filter(one, repetition=number)
            srtt = run.sockets.filter(one, repetition=number)["srtt"].drop_nulls()
            measured = float(intervals["time"].max() - WARM_UP * 1e9)  # type: ignore[operator]
            count = float(intervals["retransmits"].sum())
            found[number][flow] = {
                "goodput": float(intervals["bytes_received"].sum()) * 8e3 / measured,
                "rtt": float(np.mean(srtt.to_numpy())) / 1e6 if len(srtt) else 0.0,
                "count": count,
                "share": count / max(float(intervals["bytes_sent"].sum()) / 1448, 1),
            }
    return found


def _row(
    group: Group, lane: Lane, flow: dict[str, Any], name: str, kernel: dict[str, Any], simulated: Figures
) -> list[str]:
    one, other = kernel["figures"][name], simulated[name]
    low, high = kernel["spread"][name]
    runs = f"{kernel['clean']} of {REPETITIONS}" + ("" if kernel["clean"] else " (disturbed)")
    return [
        f"{group.name}: {lane.name}",
        flow.get("cc", flow["kind"]) + (f" x {flow['streams']}" if "streams" in flow else ""),
        f"{one['goodput']:.2f} ({low:.2f} to {high:.2f})",
        f"{other['goodput']:.2f}",
        f"{one['rtt']:.1f}",
        f"{other['rtt']:.1f}",
        f"{100 * one['share']:.3f} %",
        f"{100 * other['share']:.3f} %",
        runs,
        verdict(other, one),
    ]


def verdict(one: dict[str, float], other: dict[str, float]) -> str:
    """The figures outside their tolerance, in bold; nothing if all are within."""
    found = []
    for key, tolerance, unit in (("goodput", GOODPUT, "goodput"), ("rtt", RTT, "RTT")):
        if other[key] and abs(off := one[key] / other[key] - 1) > tolerance:
            found.append(f"{unit} {off:+.1%}")
    if max(one["count"], other["count"]) >= FEW:
        if 0 in (one["count"], other["count"]):
            found.append("retransmitted against none")
        elif not 1 / RETRANSMITTED <= (factor := one["share"] / other["share"]) <= RETRANSMITTED:
            found.append(f"retransmitted x {factor:.2g}")
    return f"**{', '.join(found)}**" if found else ""
