"""Features of a remote host, finding by finding."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tcplab.engine.remote.agents import RemoteAgents
from tcplab.engine.remote.connections import connect
from tcplab.engine.remote.findings import ALLOWED_CONTROLS, SYSCTLS
from tcplab.engine.remote.place import Place, PlaceError
from tcplab.testbed.agents import Json
from tcplab.testbed.doctor import Finding, Grade

_NAME = "host"
# Below it a path of 1 Gbit/s and 100 ms is not filled by a window that a flow asks for, B.
_AMPLE_BUFFER = 12_500_000


def examine(url: str) -> list[Finding]:
    """Connect, ask, and leave nothing there; raises PlaceError and TestbedError."""
    place = Place.read(url)
    if place.peer is not None:
        raise PlaceError(f"{url!r}: a host without tcplab says nothing about itself")
    connection = connect(_NAME, place)
    try:
        connection.prepare()
        connection.start()
        with tempfile.TemporaryDirectory() as unused:
            agents = RemoteAgents([connection], Path(unused))
            try:
                hello = agents.greet()[_NAME]
                [host] = agents.ask([(_NAME, {"do": "host", "sysctls": list(SYSCTLS)})])
                agents.compare_clocks()
                bound = agents.clocks[_NAME].best().length / 2
            finally:
                agents.close()
    finally:
        connection.close()
    found = findings(hello, host, service=connection.place.scheme == "tcplab")
    return [*found, Finding("clock", Grade.OK, f"known to within {bound / 1e6:.3g} ms")]


def _congestion_controls(able: Json, allowed: str | None) -> Finding:
    """Those that flows may name there; `allowed` are those of a user without CAP_NET_ADMIN."""
    name, there = "congestion controls", able["controls"]
    usable = there if able["net_admin"] or allowed is None else allowed.split()
    kept = [control for control in there if control not in usable]
    if not kept:
        return Finding(name, Grade.OK, ", ".join(there))
    hint = f"there: sudo sysctl -w {ALLOWED_CONTROLS}='{' '.join([*usable, *kept])}'"
    found = f"{', '.join(usable)}; this user may not choose {', '.join(kept)}"
    return Finding(name, Grade.WARN, found, hint)


def _captures(net_raw: bool, *, service: bool) -> Finding:
    name = "captures"
    if service:
        return Finding(name, Grade.WARN, "`tcplab serve` makes none", "connect by ssh for `capture`")
    if net_raw:
        return Finding(name, Grade.OK, "allowed")
    return Finding(name, Grade.WARN, "need CAP_NET_RAW", "log in as root for `capture`")


def _controls(loads: Any, *, service: bool) -> Finding:
    """Of `loads`: true, or why its kernel takes no controls."""
    name = "tcplab's controls"
    if service:
        return Finding(name, Grade.WARN, "`tcplab serve` loads none", "connect by ssh for tl_ controls")
    if loads is True:
        return Finding(name, Grade.OK, "can be loaded")
    return Finding(name, Grade.WARN, loads["message"], loads["hint"])


def findings(hello: Json, host: Json, *, service: bool) -> list[Finding]:
    """Findings of what the agent says of itself and of its host; `service`: `tcplab serve` runs there."""
    able = hello["capabilities"]
    found = [
        Finding("host", Grade.OK, f"{host['name']}: Linux {host['kernel']}, {host['machine']}"),
        Finding("CPUs", Grade.OK, f"{host['cpus']}, {host['cpu_model'] or 'model unknown'}"),
        Finding("agent", Grade.OK, f"version {hello['version']}"),
        _congestion_controls(able, host["sysctls"].get(ALLOWED_CONTROLS)),
    ]
    for setting, name in (("rmem_max", "receive buffers"), ("wmem_max", "send buffers")):
        maximum = able[setting]
        if maximum is None or maximum >= _AMPLE_BUFFER or able["net_admin"]:
            found.append(Finding(name, Grade.OK, "as large as a flow asks for"))
        else:
            hint = f"there: sudo sysctl -w net.core.{setting}={_AMPLE_BUFFER}"
            found.append(Finding(name, Grade.WARN, f"{maximum} B at most where a flow sets them", hint))
    found.append(_captures(able["net_raw"], service=service))
    found.append(_controls(host["loads_controls"], service=service))
    for name, one in host["interfaces"].items():
        if name != "lo":
            speed = f", {one['speed']} Mbit/s" if one["speed"] else ""
            found.append(Finding(f"interface {name}", Grade.OK, f"MTU {one['mtu']} B{speed}"))
    return found
