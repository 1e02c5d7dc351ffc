"""What a run on the kernel found out about itself and the machine, for its manifest."""

from __future__ import annotations

from typing import Any

from tcplab.engine.base import Plan
from tcplab.engine.ways import goes_both_ways
from tcplab.testbed.agents import Event, Json
from tcplab.testbed.controls import Loaded
from tcplab.testbed.layout import Layout
from tcplab.testbed.testbed import EMULATOR, Testbed

# Settings of a host that decide over its TCP, besides those a plan sets.
_SYSCTLS = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_limit_output_bytes",
    "net.core.default_qdisc",
)

# A sender or receiver that was ready to run and had no CPU for more than this share of a quarter of a second,
# and an emulator that was later than this, ns, or than this share of the RTT, disturbed the run even if
# the verdict over all packets is good.
_WAITED = 0.25
_STALL, _STALL_SHARE = 5_000_000, 0.1


class Findings:
    """Facts, warnings and losses, gathered while a run goes on."""

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self._plan = plan
        self._layout = layout
        self.facts: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.losses: dict[tuple[str, int], int] = {}
        """True losses of payload's directions, by flow and stream."""
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
                if node["kind"] == "host"
            },
        }

    def note(self, event: Event) -> None:
        """Take what an agent has said."""
        if event.name == "warning":
            mend = event.content.get("mend")
            self.warnings.append(
                f"{event.agent.lstrip(':')}: {event.content['message']}" + (f" ({mend})" if mend else "")
            )
        elif event.name == "done" and event.agent == EMULATOR:
            self._emulated(event.content["facts"])
        elif event.name == "done":
            self._node(event.agent, event.content["facts"])

    def to_facts(self) -> dict[str, Any]:
        """For the manifest."""
        return {**self.facts, "nodes": self._nodes}

    def _node(self, node: str, facts: Json) -> None:
        self._nodes[node] = facts
        for interface, seen in facts.get("captures", {}).items():
            if seen.get("drops"):
                self.warnings.append(
                    f"{node}: the capture of {interface} missed {seen['drops']} of"
                    f" {seen['drops'] + seen['packets']} packets"
                )
        self.warnings += held_up(node, facts)
        missed = facts.get("socket_samples", {}).get("missed", 0)
        taken = facts.get("socket_samples", {}).get("taken", 0)
        if missed > 0.01 * (missed + taken):
            self.warnings.append(
                f"{node}: {missed} of {missed + taken} socket samples were left out: sampling took too long"
            )

    def _emulated(self, facts: Json) -> None:
        losses = facts.pop("losses", [])
        both_ways = {flow["name"] for flow in self._plan["flows"] if goes_both_ways(flow)}
        # The emulator counts by the way to the server, and the server of one way is the receiver.
        self.losses = {
            (one["flow"], int(one["stream"])): int(one["to_server"])
            + (int(one["from_server"]) if one["flow"] in both_ways else 0)
            for one in losses
        }
        self.facts["emulator"] = facts
        rtts = {
            link["name"]: link["forward"]["delay"] + link["backward"]["delay"] for link in self._plan["links"]
        }
        self.warnings += stood_still(facts, rtts)
        if facts.get("overloaded"):
            self.facts["overload"] = _verdict(facts)


def _verdict(facts: Json) -> str:
    late = facts["lateness"]
    said = []
    if facts.get("overflows"):
        said.append(f"{facts['overflows']} packets found no room between a node and the emulator")
    share = late.get("late_share", 0.0)
    if share:
        said.append(f"{share:.1%} of the packets were delivered too late")
    return f"{' and '.join(said) or 'the emulator was too slow'}: the machine, not TCP, set the result"


def held_up(node: str, facts: Json) -> list[str]:
    """Whether a thread of a flow had to wait so long for a CPU that the run was disturbed."""
    worst = facts.get("waiting", {}).get("worst")
    if worst is None or worst["share"] <= _WAITED:
        return []
    return [
        f"{node}: {worst['thread']} was held up: for {worst['waited'] * 1e3:.0f} ms of the"
        f" {worst['waited'] / worst['share'] * 1e3:.0f} ms before {worst['time']:.2f} s it was ready to run"
        " and had no CPU (end other programs, or run fewer flows at once)"
    ]


def stood_still(facts: Json, rtts: dict[str, int]) -> list[str]:
    """Whether the emulator was so late, be it once, that a link looked as if it had stopped."""
    said = []
    for name, link in facts["links"].items():
        late = max(link[way]["lateness"]["max"] for way in ("forward", "backward"))
        if late > max(_STALL, _STALL_SHARE * rtts[name]):
            said.append(
                f"link {name} stood still for up to {late / 1e6:.0f} ms, as the emulator had no CPU: what it"
                " carried then arrived late and at once (end other programs; `top` shows as `st` what the"
                " host of a virtual machine took)"
            )
    return said
