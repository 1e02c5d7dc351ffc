"""Findings of a kernel run about itself and the machine, for its manifest."""

from __future__ import annotations

from typing import Any

from tcplab import _core
from tcplab.engine import accelerators
from tcplab.plan.flow_direction import goes_both_ways
from tcplab.plan.kinds import kind_of, node_kind
from tcplab.plan.types import Plan
from tcplab.quantities import plural
from tcplab.testbed.agents import Event, Json
from tcplab.testbed.controls import Loaded
from tcplab.testbed.layout import Layout
from tcplab.testbed.testbed import EMULATOR, Testbed

# Settings of a host that decide over its TCP.
_SYSCTLS = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    *(name for name, _ in _core.tcp_sysctls("{}")),
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "net.core.default_qdisc",
)

# A sender or receiver that was ready to run and had no CPU for more than this share of a quarter of a second
# is overload even where no packet was late: such runs were 10 to 27 % low.
_WAITED = 0.25


class Findings:
    """Facts, warnings and losses, gathered while a run goes on."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self._plan = plan
        self._layout = layout
        self.facts: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.losses: dict[tuple[str, int], int] = {}
        """True losses of payload's directions, by flow and stream."""
        self.excess = 0.0
        """How many times its limit the worst was: the emulator's lateness, or a thread's wait for a CPU."""
        self._overload: list[str] = []
        self._nodes: dict[str, Json] = {}

    def came_up(self, bed: Testbed, loaded: Loaded, seconds: float) -> None:
        """The network stands."""
        first = next(iter(bed.hellos.values()), {})
        self.facts |= {
            "engine_version": first.get("version", ""),
            "setup_time": seconds,
            "controls": {
                flow["name"]: loaded.name(flow["cc"]) for flow in self._plan["flows"] if flow.get("cc")
            },
            "interfaces": {
                f"{end.node}.{end.name}": {
                    "link": wire.name,
                    "address": end.address,
                    "address6": end.address6,
                    "mac": end.mac,
                    "device": "tap" if wire.emulated else "veth",
                }
                for wire in self._layout.wires
                for end in wire.ends
            },
            "offloads": bed.offloads,
            "qdiscs": bed.qdiscs,
            "node_sysctls": {
                node["name"]: bed.sysctls(node["name"], sorted({*_SYSCTLS, *node["sysctls"]}))
                for node in self._plan["nodes"]
                if node_kind(node["kind"]).ends_flows
            },
        }

    def note(self, event: Event) -> None:
        """Take what an agent has said."""
        if event.name == "warning":
            hint = event.content.get("hint")
            self.warnings.append(
                f"{event.agent.lstrip(':')}: {event.content['message']}" + (f" ({hint})" if hint else "")
            )
        elif event.name == "done" and event.agent == EMULATOR:
            self._emulated(event.content["facts"])
        elif event.name == "done":
            self._node(event.agent, event.content["facts"])

    def to_facts(self) -> dict[str, Any]:
        """For the manifest."""
        said = {"overload": f"{' and '.join(self._overload)}: {_RESULT}"} if self._overload else {}
        return {**self.facts, **said, "nodes": self._nodes}

    def _node(self, node: str, facts: Json) -> None:
        self._nodes[node] = facts
        for interface, seen in facts.get("captures", {}).items():
            if seen.get("drops"):
                self.warnings.append(
                    f"{node}: the capture of {interface} missed {seen['drops']} of"
                    f" {seen['drops'] + seen['packets']} packets"
                )
        if said := held_up(node, facts):
            self._overload.append(said)
            self.excess = max(self.excess, facts["waiting"]["worst"]["share"] / _WAITED)
        for interface, count in self._dropped(node, facts).items():
            self._overload.append(
                f"{plural(count, 'packet')} of {node} dropped at {interface}:"
                " the queue of arrivals at the other end was full (net.core.netdev_max_backlog)"
            )
            self.excess = max(self.excess, 1 + count)
        limits = "its `connections`, its `memory` or the limit of open files (ulimit -Hn)"
        self.warnings += accelerators.full(node, facts.get("accelerator", {}), limits)
        missed = facts.get("socket_samples", {}).get("missed", 0)
        taken = facts.get("socket_samples", {}).get("taken", 0)
        if missed > 0.01 * (missed + taken):
            self.warnings.append(
                f"{node}: {missed} of {missed + taken} socket samples were left out: sampling took too long"
            )

    def _dropped(self, node: str, facts: Json) -> Json:
        """Packets that a node's interfaces dropped. The emulator counts those on the way to it."""
        direct = {
            end.name
            for wire in self._layout.wires
            for end in wire.ends
            if end.node == node and not end.emulated
        }
        return {name: count for name, count in facts.get("dropped", {}).items() if name in direct}

    def _emulated(self, facts: Json) -> None:
        losses = facts.pop("losses", [])
        # Of a probe a reply may be lost as well.
        both_ways = {
            flow["name"]
            for flow in self._plan["flows"]
            if goes_both_ways(flow) or not kind_of(flow).moves_payload
        }
        # The emulator counts by the way to the server, and the server of one way is the receiver.
        self.losses = {
            (one["flow"], int(one["stream"])): int(one["to_server"])
            + (int(one["from_server"]) if one["flow"] in both_ways else 0)
            for one in losses
        }
        self.facts["emulator"] = facts
        self.excess = max(self.excess, facts["excess"])
        if facts["overloaded"]:
            self._overload += late(facts)


# A larger share of late packets is overload.
_LATE_SHARE = 0.01
_RESULT = "the machine, not TCP, limited the result"


def late(facts: Json) -> list[str]:
    """Why the emulator's facts say overloaded."""
    said = []
    if facts["overflows"]:
        said.append(f"{facts['overflows']} packets dropped between a node and the emulator")
    share = facts["lateness"]["late_share"]
    if share > _LATE_SHARE:
        said.append(f"{100 * share:.1f} % of the packets were delivered late")
    said += [
        f"link {name} stalled for up to {way['lateness']['max'] / 1e6:.0f} ms"
        for name, link in facts["links"].items()
        for way in [max(link.values(), key=lambda one: one["lateness"]["stall"])]
        if way["lateness"]["stall"] > 1
    ]
    return said


def held_up(node: str, facts: Json) -> str | None:
    """Why a node's facts say overloaded: a thread of a flow that waited too long for a CPU."""
    worst = facts.get("waiting", {}).get("worst")
    if worst is None or worst["share"] <= _WAITED:
        return None
    return (
        f"{node}: {worst['thread']} was held up: for {worst['waited'] * 1e3:.0f} ms of the"
        f" {worst['waited'] / worst['share'] * 1e3:.0f} ms before {worst['time']:.2f} s it was ready to run"
        " and had no CPU"
    )
