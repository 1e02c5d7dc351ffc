"""What can be said against running a plan on real hosts before any of them is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tcplab.cc.plans import source_of
from tcplab.engine.base import Plan, Problem
from tcplab.engine.remote.place import Place, PlaceError
from tcplab.engine.remote.ssh import ssh_missing
from tcplab.testbed.agents import Json


def hosts_of(plan: Plan) -> list[str]:
    """The hosts that a flow begins or ends at, in the plan's order."""
    used = {flow[end] for flow in plan["flows"] for end in ("from", "to")}
    return [node["name"] for node in plan["nodes"] if node["name"] in used]


def problems(plan: Plan, places: Mapping[str, Place]) -> Iterator[Problem]:
    """What stands in the way, and what the user should know."""
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
            fix = f"--at {name}=ssh://USER@HOST"
            yield Problem(f"nodes.{name}", f"it is not said which host {name} is", fix)
    for name in known:
        if name not in used:
            yield Problem(
                f"nodes.{name}", f"no flow begins or ends at {name!r}", f"hosts are: {', '.join(used)}"
            )
    for flow in plan["flows"]:
        yield from _control(flow)
        if flow["kind"] == "http":
            where = f"flows.{flow['name']}.kind"
            yield Problem(
                where, "real hosts have no http traffic yet", "use `--engine sim`, or `kind: request`"
            )
    for node in plan["nodes"]:
        if node.get("nic") and node["name"] in used:
            where = f"nodes.{node['name']}.nic"
            yield Problem(where, "a remote host's interface is what it is", "leave out `nic`", fatal=False)
    yield Problem(
        "links",
        "the path between the hosts is what it is: rates, delays and queues of the scenario are not applied",
        fatal=False,
    )


def _control(flow: Json) -> Iterator[Problem]:
    cc = flow.get("cc")
    if not cc:
        return
    where = f"flows.{flow['name']}.cc"
    if str(cc["name"]).startswith("tl_") or source_of(cc) is not None:
        yield Problem(
            where, f"{cc['name']} is not loaded into remote hosts", "choose a control that the host has"
        )
    elif cc.get("params"):
        names = ", ".join(cc["params"])
        yield Problem(where, f"a host's own {cc['name']} takes no parameters ({names})", "leave them out")
