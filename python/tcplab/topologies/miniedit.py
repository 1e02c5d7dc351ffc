"""MiniEdit's `.mn`: JSON with hosts, switches and links, which have Mininet's options."""

from __future__ import annotations

import json
from typing import Any

from tcplab.topologies.imported import Imported, name_of, time_of, unreadable

# MiniEdit's name for a switch that forwards packets, not frames.
_ROUTER = "legacyRouter"
# Options that change what happens in the network, and have no place in a scenario.
_OF_HOSTS = (
    "ip",
    "defaultRoute",
    "cpu",
    "cores",
    "vlanInterfaces",
    "externalInterfaces",
    "startCommand",
    "stopCommand",
    "privateDirectory",
)
_OF_SWITCHES = ("dpid", "switchIP", "netflow", "sflow", "externalInterfaces", "startCommand", "stopCommand")
_OF_LINKS = ("bw", "delay", "loss", "jitter", "max_queue_size")
# Its check boxes save "0" where they are off.
_CHECK_BOXES = ("netflow", "sflow")


def read(text: str, name: str) -> Imported:
    """The scenario of a file's text; raises an UnreadableError."""
    try:
        data = json.loads(text)
        made = Imported(name_of(name))
        for host in data["hosts"]:
            _node(made, host["opts"], "host", _OF_HOSTS)
        for switch in data["switches"]:
            is_router = switch["opts"].get("switchType") == _ROUTER
            _node(made, switch["opts"], "router" if is_router else "switch", _OF_SWITCHES)
        for link in data["links"]:
            made.links.append(_link(made, link))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise unreadable("MiniEdit file", problem) from None
    if data.get("controllers"):
        made.left_out.append("controllers: switches learn by themselves")
    return made


def _node(made: Imported, options: dict[str, Any], kind: str, unsaid: tuple[str, ...]) -> None:
    name = name_of(str(options["hostname"]))
    made.nodes.append({"name": name, "kind": kind})
    is_off = [key for key in _CHECK_BOXES if options.get(key) == "0"]
    made.left_out += [f"{name}: {key}" for key in unsaid if options.get(key) and key not in is_off]


def _link(made: Imported, link: dict[str, Any]) -> dict[str, Any]:
    ends = [name_of(str(link[key])) for key in ("src", "dest")]
    options = link.get("opts") or {}
    found: dict[str, Any] = {"ends": ends}
    if options.get("bw"):
        found["rate"] = f"{options['bw']} Mbit/s"
    for key in ("delay", "jitter"):
        if options.get(key):
            found[key] = time_of(str(options[key]))
            if str(options[key]).strip().isdigit():
                # As tc(8) reads it; most people mean milliseconds.
                name = "-".join(ends)
                made.notes.append(f"link {name}: {key} {options[key]} has no unit: taken as {found[key]}")
    if options.get("loss"):
        found["loss"] = f"{options['loss']} %"
    if options.get("max_queue_size"):
        found["queue"] = f"{options['max_queue_size']} packets"
    made.left_out += [
        f"link {'-'.join(ends)}: {key}" for key in options if options[key] and key not in _OF_LINKS
    ]
    return found
