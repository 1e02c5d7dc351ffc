"""Findings of a run on real hosts, for its manifest."""

from __future__ import annotations

import json
from typing import Any

from tcplab import _core
from tcplab.engine.kernel_facts import held_up
from tcplab.engine.remote.agents import RemoteAgents
from tcplab.plan.types import Plan
from tcplab.testbed.agents import Event, Json

# A start that is uncertain by more is worth a warning, ns.
_UNCERTAIN = 1_000_000

ALLOWED_CONTROLS = "net.ipv4.tcp_allowed_congestion_control"
"""The congestion controls that a process without CAP_NET_ADMIN may choose."""

SYSCTLS = (
    *(name for name, _ in _core.tcp_sysctls("{}")),
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    ALLOWED_CONTROLS,
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_notsent_lowat",
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
)
"""Settings of a host that decide over its TCP."""


class Findings:
    """Facts and warnings, gathered while a run goes on."""

    def __init__(self, plan: Plan) -> None:
        self._nodes = {node["name"]: node for node in plan["nodes"]}
        self.facts: dict[str, Any] = {"nodes": {}}
        self.warnings: list[str] = []

    def described(self, name: str, host: Json) -> None:
        """A host has said what it is."""
        self.facts.setdefault("hosts", {})[name] = host
        # On a real host they are its administrator's.
        for setting, wanted in _core.tcp_sysctls(json.dumps(self._nodes[name]["tcp"])):
            has = host["sysctls"].get(setting)
            if has is not None and has != wanted:
                self.warnings.append(f"{name}: {setting} is {has} there; the scenario asks for {wanted}")

    def started(self, uncertain: dict[str, int]) -> None:
        """The start is set; how far it may be off at each host, ns."""
        for name, bound in uncertain.items():
            if bound > _UNCERTAIN:
                self.warnings.append(f"{name}: its start is known to within {bound / 1e6:.1f} ms only")

    def note(self, event: Event) -> None:
        """Take what an agent has said."""
        if event.name == "warning":
            hint = event.content.get("hint")
            said = f"{event.agent}: {event.content['message']}"
            self.warnings.append(f"{said} ({hint})" if hint else said)
        elif event.name == "done":
            self.facts["nodes"][event.agent] = event.content["facts"]
            if why := held_up(event.agent, event.content["facts"]):
                self.warnings.append(why)
            self.warnings += [
                f"{event.agent}: {interface} dropped {count} outgoing packets (of all programs)"
                for interface, count in event.content["facts"].get("dropped", {}).items()
            ]

    def ended(self, agents: RemoteAgents, start: int, duration: int) -> None:
        """Findings from the connections."""
        clocks = {}
        for name, clock in agents.clocks.items():
            if clock.count == 0:
                continue
            (first, first_bound), (last, last_bound) = (
                clock.offset_at(instant) for instant in (start, start + duration)
            )
            drift = clock.drift()
            clocks[name] = {
                "offset_at_start": first,
                "offset_at_start_bound": first_bound,
                "offset_at_end": last,
                "offset_at_end_bound": last_bound,
                "drift": drift.rate if drift else None,
                "drift_bound": drift.bound if drift else None,
                "exchanges": clock.count,
                "shortest_exchange": clock.best().length,
                # Packets are timed by CLOCK_REALTIME.
                "realtime_at_start": start + first + agents.realtime_leads[name][0],
                "realtime_at_end": start + duration + last + agents.realtime_leads[name][-1],
            }
        self.facts["clocks"] = clocks
        self.facts["received_from_hosts"] = dict(agents.received)
