"""The remote engine: the plan's hosts are real ones, reached over SSH; the path between them is what it is.

How it works and what it needs: docs/remote.md.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from tcplab.engine.base import Outcome, Problem, Progress, Status
from tcplab.engine.conduct import RunMonitor, roles_of
from tcplab.engine.kernel_tables import write_tables
from tcplab.engine.remote import impair, path
from tcplab.engine.remote.agents import RemoteAgents
from tcplab.engine.remote.check import hosts_of, how_to_place, problems
from tcplab.engine.remote.connections import AT_ONCE, Connection, address_of, connect, own_address
from tcplab.engine.remote.endpoints import ends_of, ports_of
from tcplab.engine.remote.findings import SYSCTLS, Findings
from tcplab.engine.remote.kept import keeping
from tcplab.engine.remote.place import Place, PlaceError
from tcplab.engine.remote.reachability import Reached
from tcplab.plan.types import Flow, Node, Plan
from tcplab.testbed.agents import Event, Json
from tcplab.testbed.controls import Loaded, load, wanted_at
from tcplab.testbed.errors import TestbedError

# From the command to start to the start itself, ns, besides twice the longest exchange.
_LEAD = 200_000_000


class RemoteEngine:
    """Runs plans on real hosts."""

    name = "remote"
    exclusive = True

    def __init__(self, places: Mapping[str, Place] | None = None) -> None:
        """`places` says where hosts of a plan are, by their names, whatever the plan says of it.

        None: whoever runs it can say so only in the scenario.
        """
        self._places = dict(places or {})
        self._only_in_scenario = places is None

    @classmethod
    def at(cls, urls: Mapping[str, str]) -> RemoteEngine:
        """Real hosts by their names in the scenario; raises PlaceError."""
        return cls({name: Place.read(url) for name, url in urls.items()})

    def executed(self, plan: Plan) -> Plan:
        """Its hosts and flows; its links only where real hosts impair what they send."""
        places = self._known_places(plan)
        if impair.applied(plan, places):
            return plan
        used = hosts_of(plan)
        links = impair.executed(plan, places)["links"]
        nodes: list[Node] = [
            {**node, "routes": node["routes"] if links else {}}
            for node in plan["nodes"]
            if links or node["name"] in used
        ]
        return {
            **plan,
            "nodes": nodes,
            "links": links,
            "flows": [_of_real_hosts(flow) for flow in plan["flows"]],
        }

    def check(self, plan: Plan) -> list[Problem]:
        """Say what cannot be done, before any host is asked."""
        return list(problems(plan, self._places, only_in_scenario=self._only_in_scenario))

    @contextmanager
    def preparing(self, plans: Sequence[Plan]) -> Iterator[None]:
        """Send the agent once to each host of several of these runs."""
        used = [self._known_places(plan).get(name) for plan in plans for name in hosts_of(plan)]
        with keeping([place for place in used if place is not None]):
            yield

    def _known_places(self, plan: Plan) -> dict[str, Place]:
        """Those that can be understood, by name."""
        try:
            return self._places_of(plan)
        except PlaceError:
            return self._places

    def _places_of(self, plan: Plan) -> dict[str, Place]:
        """All that are known, by name; raises PlaceError."""
        given = {name: Place.read(url) for name, url in plan.get("hosts_at", {}).items()}
        return given | self._places

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        """Run the plan in real time; KeyboardInterrupt out of `progress` ends it early with what there is."""
        began = time.monotonic()
        findings = Findings(plan)
        places = self._places_of(plan)
        connections: list[Connection] = []
        try:
            progress(Progress(0, plan["duration"]))
            used = {name: places[name] for name in hosts_of(plan)}
            for name, place in used.items():
                if place.peer is None:
                    connections.append(connect(name, place))
            execution = _Execution(
                plan, run_dir.resolve(), progress, findings, connections, used, self._places
            )
            status, message = execution.carry_out()
        except TestbedError as problem:
            status, message = Status.FAILED, str(problem)
        finally:
            for connection in connections:
                connection.close()
        findings.facts["hosts_at"] = {name: place.url for name, place in places.items()}
        findings.facts["wall_time"] = time.monotonic() - began
        write_tables(plan, run_dir, {})
        return Outcome(status, message, tuple(dict.fromkeys(findings.warnings)), findings.facts)


class _Execution:
    """One run of one plan."""

    def __init__(
        self,
        plan: Plan,
        run_dir: Path,
        progress: Callable[[Progress], None],
        findings: Findings,
        connections: list[Connection],
        places: Mapping[str, Place],
        given: Mapping[str, Place],
    ) -> None:
        """`places` are those of all hosts of flows, `connections` go to those that have an agent.

        Those in `given` do not stand in the scenario.
        """
        self._plan = plan
        self._places = places
        self._given = given
        self._ends = {flow["name"]: ends_of(flow, places) for flow in plan["flows"]}
        self._run_dir = run_dir
        self._progress = progress
        self._findings = findings
        self._connections = connections
        self._addresses: dict[str, str] = {}
        self._own: dict[str, str | None] = {}
        self._ports: dict[str, list[int]] = {}
        self._controls: dict[str, Loaded] = {}

    def carry_out(self) -> tuple[Status, str]:
        """Connect, prepare, run, and say how it ended. Raises TestbedError when it cannot go on."""
        began = time.monotonic()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # All are tried; the first that fails is reported.
            for taken in [pool.submit(one.prepare) for one in self._connections]:
                taken.result()
        for connection in self._connections:
            connection.start()
        agents = RemoteAgents(self._connections, self._run_dir)
        try:
            hellos = agents.greet()
            self._findings.facts["engine_version"] = next(iter(hellos.values()))["version"]
            self._describe(agents)
            self._configure(agents)
            self._impair(agents)
            self._measure_paths(agents)
            agents.compare_clocks()
            self._capture(agents)
            self._findings.facts["setup_time"] = time.monotonic() - began
            start = self._start(agents)
            reached = Reached(self._plan["flows"], self._ends, self._plan["duration"])

            def note(event: Event) -> None:
                reached.note(event)
                self._findings.note(event)

            monitor = RunMonitor(self._plan, agents, self._progress, note, roles=self._roles())
            status, message = monitor.follow(start, agents.alive)
            if status is Status.DONE:
                # The path is idle now: short exchanges compare the clocks at the end best.
                with suppress(TestbedError):
                    agents.compare_clocks()
            self._findings.ended(agents, start, self._plan["duration"])
            if status is not Status.INTERRUPTED:
                blocked = reached.blocked(self._addresses, self._places, self._ports)
                if blocked is not None and (status is Status.DONE or reached.was_reported(message)):
                    return Status.FAILED, str(blocked)
            return status, message
        finally:
            agents.close()

    def _roles(self) -> dict[str, tuple[str, ...]]:
        """The roles in each flow that agents have, and that end by themselves: a peer's end is nobody's."""
        found = {}
        for flow in self._plan["flows"]:
            ending = roles_of(flow)
            found[flow["name"]] = tuple(
                role
                for role, host in self._ends[flow["name"]].by_role()
                if role in ending and self._places[host].peer is None
            )
        return found

    def _describe(self, agents: RemoteAgents) -> None:
        names = [one.name for one in self._connections]
        described: dict[str, Json] = {}
        for connection, host in zip(
            self._connections,
            agents.ask((name, {"do": "host", "sysctls": list(SYSCTLS)}) for name in names),
            strict=True,
        ):
            name = connection.name
            facts = {key: value for key, value in host.items() if key not in ("event", "id", "reached")}
            self._own[name] = host["reached"]
            address = connection.place.address or self._own[name]
            if address is not None:
                self._addresses[name] = address
            elif connection.place.scheme != "local":
                raise TestbedError(f"the address of {name} is unknown", self._addressed(name))
            described[name] = facts
        for name, place in self._places.items():
            if place.peer is not None:
                self._addresses[name] = self._own[name] = address_of(place.host)
                self._findings.facts.setdefault("peers", {})[name] = self._addresses[name]
        own = self._own_address()
        for one in self._connections:
            if one.place.scheme == "local":
                self._addresses.setdefault(one.name, own)
                self._own[one.name] = self._own[one.name] or self._addresses[one.name]
            self._findings.described(one.name, {**described[one.name], "address": self._addresses[one.name]})
        self._check_addresses()
        self._check_versions()

    def _own_address(self) -> str:
        """The address from which this machine reaches the others."""
        other = next((name for name, place in self._places.items() if place.scheme != "local"), None)
        if other is None:
            return "127.0.0.1"
        place = self._places[other]
        try:
            return own_address(place.address or place.host)
        except TestbedError:
            # A name of ssh_config(5), which ssh alone knows; or one that only a jump host knows.
            return own_address(self._addresses[other])

    def _impair(self, agents: RemoteAgents) -> None:
        asked = list(impair.commands(self._plan, self._places, self._addresses))
        answers = agents.ask(asked)
        self._findings.facts["impaired"] = {
            name: answer["commands"] for (name, _), answer in zip(asked, answers, strict=True)
        }

    def _measure_paths(self, agents: RemoteAgents) -> None:
        found = path.measure(agents, self._ends.values(), self._addresses, self._own, self._places)
        self._findings.facts["paths"] = found
        expected = self._plan.get("expect_path")
        if expected:
            for one in found:
                path.compare(one, expected)

    def _check_addresses(self) -> None:
        """Nobody elsewhere reaches a loopback address, or, without an interface, a link-local one."""
        loops = {name: ipaddress.ip_address(address).is_loopback for name, address in self._addresses.items()}
        if any(loops.values()) and not all(loops.values()):
            name = next(name for name, loop in loops.items() if loop)
            where = f"{self._addresses[name]}, where no other host reaches it"
            raise TestbedError(f"{name} was reached at {where}", self._addressed(name))
        for name in (ends.other for ends in self._ends.values()):
            address = self._addresses[name]
            if ":" in address and ipaddress.ip_address(address).is_link_local:
                where = f"{address}, a link-local address: flows need another"
                raise TestbedError(f"{name} was reached at {where}", self._addressed(name))

    def _check_versions(self) -> None:
        """Flows have the version of IP of the address at which a host is reached."""
        for flow in self._plan["flows"]:
            name = self._ends[flow["name"]].other
            address = self._addresses[name]
            if flow["ip"] == 6 and ":" not in address:
                said = f"{flow['name']}: runs over IPv4, not IPv6: {name} is reached at {address}"
                hint = f" ({self._addressed(name)})" if self._places[name].peer is None else ""
                self._findings.warnings.append(f"{said}{hint}")

    def _addressed(self, name: str) -> str:
        """How to give a host the address at which the others reach it."""
        where, _, query = self._places[name].url.partition("?")
        others = [one for one in query.split("&") if one and not one.startswith("address=")]
        url = f"{where}?{'&'.join(['address=ADDRESS', *others])}"
        return how_to_place(name, url, in_scenario=name not in self._given)

    def _configure(self, agents: RemoteAgents) -> None:
        """Prepare every agent: first the servers, whose ports their clients must know."""
        nodes = {node["name"]: node for node in self._plan["nodes"]}
        agents.ask(
            (
                one.name,
                {
                    "do": "configure",
                    "node": one.name,
                    "cpus": list(one.place.cpus) or nodes[one.name]["cpus"],
                },
            )
            for one in self._connections
        )
        for name in agents.alive:
            self._controls[name] = load(agents, wanted_at(self._plan, name), name)
        flows = self._plan["flows"]
        self._findings.facts["controls"] = {
            flow["name"]: self._controls[flow["from"]].name(flow["cc"])
            for flow in flows
            if flow.get("cc") and flow["from"] in self._controls
        }
        ports = self._ports = ports_of(flows, self._ends, self._places)
        served = [
            flow for flow in flows if (server := self._ends[flow["name"]].server) and server in agents.alive
        ]
        answers = agents.ask(self._flow(flow, "server", ports.get(flow["name"], [])) for flow in served)
        ports |= {flow["name"]: answer["ports"] for flow, answer in zip(served, answers, strict=True)}
        agents.ask(self._flow(flow, "client", ports.get(flow["name"], [])) for flow in flows)
        sample = self._plan["sample"]
        agents.ask(
            (
                name,
                {
                    "do": "probe",
                    "sockets": sample["sockets"],
                    "hosts": sample.get("hosts"),
                    "machine": True,
                    "controls": self._controls[name].states,
                },
            )
            for name in agents.alive
        )

    def _capture(self, agents: RemoteAgents) -> None:
        """Prepare captures, after the probes of the paths, which do not belong to the run."""
        capture = self._plan.get("capture")
        if capture:
            agents.ask(
                (name, {"do": "capture", "what": capture["what"], "peers": self._peers(name)})
                for name in capture["nodes"]
                if name in agents.alive
            )

    def _peers(self, name: str) -> list[str]:
        """The addresses that a host's flows run to and from."""
        ends = ((flow["from"], flow["to"]) for flow in self._plan["flows"])
        others = dict.fromkeys(other for pair in ends if name in pair for other in pair if other != name)
        return [self._addresses[other] for other in others]

    def _flow(self, flow: Flow, role: str, ports: list[int]) -> tuple[str, Json]:
        """Which host has this role in a flow, and its command."""
        ours = dict(flow)
        ends = self._ends[flow["name"]]
        host = ends.client if role == "client" else str(ends.server)
        if flow.get("cc"):
            ours["cc"] = {"name": self._controls[host].name(flow["cc"])}
        generator = ends.generator or flow.get("generator", "native")
        listens = ends.server or flow["to"]
        address = self._addresses[listens]
        if role == "server" and address != self._own[listens]:
            # Behind a translation of addresses the host does not have the one it is reached at.
            address = "::" if ":" in address else "0.0.0.0"  # noqa: S104
        return host, {
            "do": "flow",
            "role": role,
            "address": address,
            "ports": ports,
            "sample": self._plan["sample"]["flows"],
            "seed": self._plan["seed"],
            "generator": None if generator == "native" else generator,
            "reverse": ends.reverse,
            "endless": ends.endless,
            "target": self._places[listens].target,
            "flow": ours,
        }

    def _start(self, agents: RemoteAgents) -> int:
        """Set the zero of time for everyone; returns it, ns on our CLOCK_MONOTONIC."""
        now = time.monotonic_ns()
        at = now + _LEAD + 2 * max(clock.best().length for clock in agents.clocks.values())
        offsets = {name: clock.offset_at(now) for name, clock in agents.clocks.items()}
        duration = self._plan["duration"]
        agents.ask(
            (name, {"do": "start", "at": at + offset, "duration": duration})
            for name, (offset, _) in offsets.items()
        )
        self._findings.started({name: bound for name, (_, bound) in offsets.items()})
        return at


def _of_real_hosts(flow: Flow) -> Flow:
    """A flow whose propagation nobody knows."""
    known = {key: value for key, value in flow.items() if key != "base_rtt"}
    return cast("Flow", known)
