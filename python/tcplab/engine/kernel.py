"""The kernel engine: the plan's hosts are network namespaces, their TCP is this machine's Linux.

How it works and what it needs: docs/kernel-engine.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.engine import kernel_ecn, kernel_routing
from tcplab.engine.base import Outcome, Problem, Progress, Status
from tcplab.engine.conduct import RunMonitor
from tcplab.engine.kernel_check import problems
from tcplab.engine.kernel_facts import Findings
from tcplab.engine.kernel_tables import name_captures, write_tables
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow, Plan
from tcplab.results.manifest import plan_digest
from tcplab.testbed import controls, verification
from tcplab.testbed.agents import Json
from tcplab.testbed.cpus import divide
from tcplab.testbed.errors import InputFileError, TestbedError
from tcplab.testbed.flows import fixed_ports
from tcplab.testbed.layout import lay_out
from tcplab.testbed.probe import probe
from tcplab.testbed.testbed import CONTROLS, EMULATOR, Testbed

# From the command to start to the start itself, ns: time for it to reach every agent.
_LEAD, _LEAD_PER_AGENT = 100_000_000, 4_000_000
# A cache takes this port's connections beside those of http flows, whoever the client is.
_HTTP = 80


class KernelEngine:
    """Runs plans on this machine's own TCP."""

    name = "kernel"
    exclusive = True

    def executed(self, plan: Plan) -> Plan:
        """All of it, but classic ECN where this kernel has no accurate ECN."""
        if kernel_ecn.asks(plan) and probe().accecn:
            return kernel_ecn.without(plan)
        return plan

    def check(self, plan: Plan) -> list[Problem]:
        """Say what this machine cannot do of the plan, and how to fix it."""
        return problems(plan)

    def preparing(self, plans: Sequence[Plan]) -> AbstractContextManager[None]:
        """Its runs have nothing in common."""
        return nullcontext()

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        """Run the plan in real time; KeyboardInterrupt out of `progress` ends it early with what there is."""
        began = time.monotonic()
        execution = _Execution(plan, run_dir, progress)
        status, message, wrong_input = Status.DONE, "", False
        try:
            with execution.bed, execution.cpus:
                status, message = execution.carry_out()
        except TestbedError as problem:
            status, message = Status.FAILED, str(problem)
            wrong_input = isinstance(problem, InputFileError)
        findings = execution.findings
        findings.facts["wall_time"] = time.monotonic() - began
        write_tables(plan, run_dir, findings.losses, execution.routing_events)
        name_captures(run_dir, execution.layout)
        warnings = tuple(dict.fromkeys(findings.warnings))
        return Outcome(status, message, warnings, findings.to_facts(), findings.excess, wrong_input)


class _Execution:
    """One run of one plan."""

    def __init__(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> None:
        self.plan = plan
        self.run_dir = run_dir.resolve()
        self.progress = progress
        self.layout = lay_out(plan)
        self.routers = kernel_routing.routers(plan)
        self.bed = Testbed(
            self.layout, loads_controls=bool(controls.wanted(plan)), machines=frozenset(self.routers)
        )
        self.loaded = controls.Loaded({})
        self.findings = Findings(plan, self.layout)
        self.hosts = {node["name"]: node for node in plan["nodes"]}
        self.cpus = divide(plan["nodes"], emulated=bool(self.layout.emulated))
        self.ports: dict[str, list[int]] = {}
        self.identifiers: dict[str, list[int]] = {}
        """Those of the ICMP echo requests of each stream of a flow of pings."""
        self.zero = 0
        """When traffic started, ns since 1970."""

    def carry_out(self) -> tuple[Status, str]:
        """Bring up, run, and say how it ended. Raises TestbedError when it cannot go on."""
        began = time.monotonic()
        self.bed.start()
        self.loaded = controls.load(self.bed.agents, controls.wanted(self.plan))
        self.progress(Progress(0, self.plan["duration"]))
        if self.layout.emulated:
            self.bed.agents.ask([(EMULATOR, self._emulation())])
        self.bed.build()
        if verification.wanted_before(self.plan):
            self.findings.facts["verification"] = self.bed.certify(plan_digest(self.plan))
        built = time.monotonic()
        if self.routers:
            try:
                self.findings.facts |= kernel_routing.converge(
                    self.plan, self.bed, self.run_dir, self.progress
                )
            except KeyboardInterrupt:
                return Status.INTERRUPTED, "stopped before the routes had converged"
            finally:
                kernel_routing.keep_logs(self.plan, self.bed, self.run_dir)
        else:
            self.bed.verify((flow["from"], flow["to"], flow["ip"]) for flow in self.plan["flows"])
        routed = time.monotonic()
        self._configure()
        self.findings.came_up(self.bed, self.loaded, time.monotonic() - routed + built - began)
        start = self._start()
        # CLOCK_MONOTONIC and the time of day, which logs have, at once.
        self.zero = start + time.time_ns() - time.monotonic_ns()
        emulator = EMULATOR if self.layout.emulated else None
        try:
            monitor = RunMonitor(self.plan, self.bed.agents, self.progress, self.findings.note, emulator)
            ending = monitor.follow(start, self._acting())
            if self.routers and ending[0] is Status.DONE:
                kernel_routing.expect_all(self.bed)
            return ending
        finally:
            kernel_routing.keep_logs(self.plan, self.bed, self.run_dir)

    def routing_events(self, like: pl.DataFrame) -> pl.DataFrame:
        """Changes of adjacencies and sessions, in the columns of `like`."""
        return kernel_routing.events(self.run_dir, self.layout, self.zero, like)

    def _emulation(self) -> Json:
        capture = self.plan.get("capture")
        wire = capture if capture and capture["at"] == "wire" else None

        def end(interface: Any) -> Json:
            return {
                "node": interface.node,
                "pid": self.bed.pids[interface.node],
                "interface": interface.name,
                "mac": interface.mac,
                "mtu": interface.mtu,
                "tso": interface.offloads.get("tso", True) or interface.offloads.get("gso", True),
                "gro": interface.offloads.get("gro", True),
                "capture": wire is not None and interface.node in wire["nodes"],
            }

        return {
            "do": "configure",
            "seed": self.plan["seed"],
            "dir": str(self.run_dir),
            "cpus": self.cpus.emulator,
            "links": [
                {
                    "name": wire_.name,
                    "ends": [end(interface) for interface in wire_.ends],
                    "forward": wire_.plan["forward"],
                    "backward": wire_.plan["backward"],
                    "medium": wire_.plan.get("medium"),
                    "carrier": wire_.routed,
                }
                for wire_ in self.layout.emulated
            ],
            "media": self.plan.get("media", []),
            "sample": {key: self.plan["sample"].get(key) for key in ("queues", "flows", "packets")},
            "capture": wire["what"] if wire else None,
        }

    def _configure(self) -> None:
        """Prepare every agent: first the servers, whose ports their clients must know."""
        agents = self.bed.agents
        agents.ask(
            (
                name,
                {
                    "do": "configure",
                    "node": name,
                    "dir": str(self.run_dir),
                    "cpus": node["cpus"] or self.cpus.nodes,
                },
            )
            for name, node in self.hosts.items()
        )
        served = [flow for flow in self.plan["flows"] if kind_of(flow).served]
        answers = agents.ask((flow["to"], self._flow(flow, "server", fixed_ports(flow))) for flow in served)
        self.ports = {flow["name"]: answer["ports"] for flow, answer in zip(served, answers, strict=True)}
        flows = self.plan["flows"]
        answers = agents.ask(
            (flow["from"], self._flow(flow, "client", self.ports.get(flow["name"], []))) for flow in flows
        )
        answered = zip(flows, answers, strict=True)
        self.identifiers = {
            flow["name"]: answer["ports"] for flow, answer in answered if not kind_of(flow).served
        }
        agents.ask(self._accelerators())
        agents.ask(self._caches())
        agents.ask(self._probes())
        capture = self.plan.get("capture")
        if capture and capture["at"] == "host":
            asked = {"do": "capture", "what": capture["what"], "interfaces": []}
            agents.ask((node, asked) for node in capture["nodes"])

    def _flow(self, flow: Flow, role: str, ports: list[int]) -> Json:
        arrival = self.layout.arrival(flow["from"], flow["to"])
        ours = dict(flow)
        if flow.get("cc"):
            ours["cc"] = {**flow["cc"], "name": self.loaded.name(flow["cc"])}
        generator = flow.get("generator", "native")
        return {
            "do": "flow",
            "role": role,
            "address": arrival.ip(flow["ip"]),
            "ports": ports,
            "sample": self.plan["sample"]["flows"],
            "seed": self.plan["seed"],
            "prompt": bool(self.layout.emulated),
            "generator": None if generator == "native" else generator,
            "flow": ours,
        }

    def _probes(self) -> list[tuple[str, Json]]:
        sample = self.plan["sample"]
        flows = self.plan["flows"]
        kinds = {flow["name"]: kind_of(flow) for flow in flows}
        senders = {flow["from"] for flow in flows if kinds[flow["name"]].connected}
        senders |= {flow["to"] for flow in flows if kinds[flow["name"]].both_ways}
        commands = []
        for number, name in enumerate(self.hosts):
            # One of them looks after what belongs to no node.
            first = number == 0
            emulator = {"emulator": self.bed.pids[EMULATOR]} if first and self.layout.emulated else {}
            commands.append(
                (
                    name,
                    {
                        "do": "probe",
                        "sockets": sample["sockets"] if name in senders else None,
                        "hosts": sample.get("hosts"),
                        "routes": name in self.routers,
                        "machine": first,
                        "processes": emulator,
                        "controls": self.loaded.states,
                    },
                )
            )
        return commands

    def _start(self) -> int:
        """Set the zero of time for everyone; returns it, ns on CLOCK_MONOTONIC."""
        names = self._acting()
        at = time.monotonic_ns() + _LEAD + _LEAD_PER_AGENT * len(names)
        command = {"do": "start", "at": at, "duration": self.plan["duration"]}
        streams = self._destinations(self.ports)
        probes = [{**probe, "icmp": True} for probe in self._destinations(self.identifiers)]
        self.bed.agents.ask(
            (name, {**command, "streams": streams + probes} if name == EMULATOR else command)
            for name in names
        )
        return at

    def _destinations(self, ports: Mapping[str, Sequence[int]]) -> list[Json]:
        """Where each stream's server listens, at the given ports by flow."""
        return [
            {
                "flow": name,
                "stream": stream,
                "address": self.layout.arrival(flow["from"], flow["to"]).ip(flow["ip"]),
                "port": port,
            }
            for flow in self.plan["flows"]
            for name in (flow["name"],)
            for stream, port in enumerate(ports.get(name, []))
        ]

    def _accelerators(self) -> list[tuple[str, Json]]:
        streams = self._destinations(self.ports)
        return [
            (
                name,
                {
                    "do": "accelerate",
                    "accelerator": self._accelerator(node["accelerate"]),
                    "streams": streams,
                    "sample": self.plan["sample"]["sockets"],
                },
            )
            for name, node in self.hosts.items()
            if node.get("accelerate") is not None
        ]

    def _accelerator(self, settings: Json) -> Json:
        """An accelerator's settings, with its controls' names in the kernel and hosts by address."""
        hosts = [
            address
            for host in settings.get("hosts", ())
            for interface in self.layout.interfaces(host)
            for version in (4, 6)
            if (address := interface.ip(version)) is not None
        ]
        return {**settings, **controls.legs(settings, self.loaded), "hosts": hosts}

    def _caches(self) -> list[tuple[str, Json]]:
        cached = {flow["name"] for flow in self.plan["flows"] if "web" in flow}
        streams = [stream for stream in self._destinations(self.ports) if stream["flow"] in cached]
        return [
            (
                name,
                {
                    "do": "cache",
                    "cache": node["cache"],
                    # Beside an accelerator it takes http flows, with that one's legs.
                    **controls.legs(node.get("accelerate") or {}, self.loaded),
                    "ports": [_HTTP],
                    "streams": streams,
                    "sample": self.plan["sample"]["sockets"],
                },
            )
            for name, node in self.hosts.items()
            if node.get("cache") is not None
        ]

    def _acting(self) -> set[str]:
        """The agents that have a part in the run itself."""
        return self.bed.agents.alive - {CONTROLS}
