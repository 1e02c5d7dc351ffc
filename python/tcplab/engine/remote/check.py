"""Problems of running a plan on real hosts that are known before any of them is contacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcplab.engine.base import Problem
from tcplab.engine.remote import impair
from tcplab.engine.remote.place import Place, PlaceError
from tcplab.engine.remote.ssh import ssh_missing
from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow, Plan
from tcplab.testbed.controls import load_command, ours_elsewhere
from tcplab.testbed.errors import TestbedError


def hosts_of(plan: Plan) -> list[str]:
    """The hosts that a flow begins or ends at, in the plan's order."""
    used = {flow[end] for flow in plan["flows"] for end in ("from", "to")}
    return [node["name"] for node in plan["nodes"] if node["name"] in used]


def how_to_place(name: str, url: str, *, in_scenario: bool) -> str:
    """How to say where a host is."""
    return f"network.hosts_at.{name}: {url}" if in_scenario else f"--at '{name}={url}'"


def problems(plan: Plan, places: Mapping[str, Place], *, only_in_scenario: bool) -> Iterator[Problem]:
    """Problems and warnings; with `only_in_scenario` hints name the scenario, not the option `--at`."""
    used = hosts_of(plan)
    known = dict(places)
    for name, url in plan.get("hosts_at", {}).items():
        try:
            known.setdefault(name, Place.read(url))
        except PlaceError as problem:
            yield Problem(f"network.hosts_at.{name}", str(problem))
            known.pop(name, None)
    missing = ssh_missing()
    if missing and any(place.scheme == "ssh" for place in known.values()):
        yield Problem("engine", missing, "sudo apt-get install openssh-client")
    for name in used:
        if name not in places and name not in plan.get("hosts_at", {}):
            fix = how_to_place(name, "ssh://USER@HOST", in_scenario=only_in_scenario)
            yield Problem(f"nodes.{name}", f"no address is given for the host {name}", fix)
    for name in known:
        if name not in used:
            yield Problem(
                f"nodes.{name}", f"no flow begins or ends at {name!r}", f"hosts are: {', '.join(used)}"
            )
    for flow in plan["flows"]:
        yield from _control(flow, [known[end] for end in (flow["from"], flow["to"]) if end in known])
        if flow.get("port") is not None:
            where, fix = f"flows.{flow['name']}.port", "say which a host lets through: ?ports=5300-5399"
            yield Problem(where, "remote hosts choose the ports of flows", fix, fatal=False)
        if flow["from"] in known and flow["to"] in known:
            yield from _ends(flow, known[flow["from"]], known[flow["to"]])
    for node in plan["nodes"]:
        if node.get("nic") and node["name"] in used:
            where = f"nodes.{node['name']}.nic"
            yield Problem(
                where, "the interface of a remote host cannot be changed", "leave out `nic`", fatal=False
            )
    yield from _tests_at_a_time(plan, known)
    yield from _captures(plan, known)
    yield from impair.problems(plan, known)
    if impair.applied(plan, known):
        return
    yield Problem(
        "links",
        "the path between the hosts is real: rates, delays and queues of the scenario are not applied",
        fatal=False,
    )


def _tests_at_a_time(plan: Plan, places: Mapping[str, Place]) -> Iterator[Problem]:
    """Flows that come to an iperf3 server while it makes another test."""
    flows = sorted(plan["flows"], key=lambda flow: flow["start"])
    busy: dict[str, Flow] = {}
    for flow in flows:
        for end in ("from", "to"):
            place = places.get(flow[end])
            if place is None or place.scheme != "iperf3":
                continue
            before = busy.setdefault(flow[end], flow)
            stop = before.get("stop") or plan["duration"]
            if before is not flow and before.get("bytes") is None and flow["start"] < stop:
                message = f"iperf3 serves one test at a time: {before['name']} runs until {stop / 1e9:g} s"
                yield Problem(f"flows.{flow['name']}", message, "start it later, or use another server")
            busy[flow[end]] = flow


def _captures(plan: Plan, places: Mapping[str, Place]) -> Iterator[Problem]:
    capture = plan.get("capture")
    nodes = capture["nodes"] if capture else ()
    served = [name for name in nodes if name in places and places[name].scheme == "tcplab"]
    others = ", ".join(name for name in nodes if name not in served)
    for name in served:
        fix = f"capture at the others: nodes: [{others}]" if others else "connect by ssh"
        yield Problem("capture", f"{name} runs `tcplab serve`, which makes no captures", fix)


def _ends(flow: Flow, source: Place, destination: Place) -> Iterator[Problem]:
    """Problems that follow from where a flow's hosts are."""
    where = f"flows.{flow['name']}"
    if source.peer is not None and destination.peer is not None:
        yield Problem(
            where, "neither of its hosts has an agent", "give one a URL with ssh:, tcplab: or local:"
        )
        return
    for place, sends in ((source, True), (destination, False)):
        if place.peer is None:
            continue
        if not kind_of(flow).served and not sends:
            continue
        obstacle = place.peer.obstacle(flow, sends=sends)
        if obstacle is not None:
            yield Problem(f"{where}.{'from' if sends else 'to'}", obstacle)
    if not destination.initiate or source.peer is not None or not kind_of(flow).served:
        return
    if source.initiate:
        fix = f"make {flow['from']} or {flow['to']} reachable, and leave out its `initiate`"
        yield Problem(where, "both of its hosts initiate: neither can accept a connection", fix)
    elif not kind_of(flow).bulk_tcp or flow.get("generator", "native") != "native":
        what = flow["generator"] if kind_of(flow).bulk_tcp else flow["kind"]
        fix = f"let it run from {flow['to']} to {flow['from']}, or leave out `initiate`"
        yield Problem(
            f"{where}.to", f"{flow['to']} initiates, and a flow of {what} begins at its source", fix
        )


def _control(flow: Flow, at: Sequence[Place]) -> Iterator[Problem]:
    cc = flow.get("cc")
    if not cc:
        return
    where = f"flows.{flow['name']}.cc"
    control = ours_elsewhere(cc)
    if control is not None and control.source is not None:
        try:
            load_command(control)
        except TestbedError as problem:
            yield Problem(where, problem.message, problem.hint)
    elif control is not None and any(place.peer is None and place.scheme == "tcplab" for place in at):
        yield Problem(
            where, f"{cc['name']}: `tcplab serve` loads no controls", "choose a control that the host has"
        )
    elif control is None and cc.get("params"):
        names = ", ".join(cc["params"])
        fix = f"leave them out, or use tl_{cc['name']}"
        yield Problem(where, f"a host's own {cc['name']} takes no parameters ({names})", fix)
