"""Whether a plan has the shape that readers of results rely on.

A plan that tcplab wrote has it. One from elsewhere, or from a damaged disk, is refused here with the place
that is wrong, rather than by whichever figure stumbles over it.
"""

from __future__ import annotations

from typing import Any, cast

from tcplab.plan.types import Plan
from tcplab.shapes import (
    ShapeError,
    by_name,
    each,
    either,
    fields,
    mapping,
    number,
    optional,
    text,
    whole,
    word,
)

# 400 days in nanoseconds, and rates that integers hold.
_LONGEST = 400 * 86_400 * 10**9
_TIME = whole(0, _LONGEST)
_STEP = optional(whole(1, _LONGEST))
_RATE = optional(number(0, 10**15))
_DATA = optional(either(mapping, each(lambda _: None)))

_DIRECTION = fields(
    {
        "rate": _RATE,
        "queue": fields({"kind": text, "limit": optional(mapping)}, ("kind",)),
        "delay": _TIME,
        "jitter": optional(mapping),
        "reorder": optional(mapping),
        "loss": _DATA,
        "trace": _DATA,
        "changes": each(fields({"at": _TIME, "rate": _RATE}, ("at",))),
    },
    ("queue", "delay"),
)
_ADDRESSES = optional(each(optional(text)))
_LINK = fields(
    {
        "name": text,
        "ends": each(text, 2, 2),
        "addresses": _ADDRESSES,
        "addresses6": _ADDRESSES,
        "mtu": optional(whole(68, 2**31)),
        "forward": _DIRECTION,
        "backward": _DIRECTION,
    },
    ("name", "ends", "forward", "backward"),
)
_NODE = fields({"name": text, "kind": text, "routes": by_name(text)}, ("name", "kind"))
_FLOW = fields(
    {
        "name": text,
        "kind": text,
        "from": text,
        "to": text,
        "start": _TIME,
        "stop": optional(_TIME),
        "streams": whole(0, 10**6),
        "cc": optional(either(text, fields({"name": text}, ("name",)))),
        "rate": _RATE,
        "payload": optional(whole(0, 2**31)),
        "bytes": optional(whole(0, 2**63 - 1)),
    },
    ("name", "kind", "from", "to"),
)
_PLAN = fields(
    {
        "name": optional(text),
        "description": optional(text),
        "seed": optional(whole(-(2**63), 2**64)),
        "duration": _TIME,
        "omit": optional(either(word("auto"), _TIME)),
        "nodes": each(_NODE),
        "links": each(_LINK),
        "flows": each(_FLOW),
        "sample": optional(fields(dict.fromkeys(("sockets", "queues", "flows", "hosts"), _STEP))),
        "capture": optional(mapping),
    },
    # A file that is cut lacks them.
    ("flows",),
)


def checked(data: dict[str, Any]) -> Plan:
    """The plan that data are; raises ShapeError with the first place that is not as tcplab writes it."""
    _PLAN(data)
    plan = cast("Plan", data)
    nodes = {node["name"] for node in plan.get("nodes", ())}
    for link in plan.get("links", ()):
        for end in link["ends"]:
            if nodes and end not in nodes:
                raise ShapeError(f"link {link['name']!r} ends at the unknown node {end!r}")
    for flow in plan.get("flows", ()):
        for end in (flow["from"], flow["to"]):
            if nodes and end not in nodes:
                raise ShapeError(f"flow {flow['name']!r} names the unknown node {end!r}")
    return plan
