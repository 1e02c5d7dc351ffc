"""netem on real hosts: what the scenario's links do to packets is done by the host that sends them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tcplab.engine.base import Problem
from tcplab.engine.remote.place import Place
from tcplab.plan.paths import DIRECTIONS, Hop, path, settings
from tcplab.plan.types import Direction, DirectionKey, Plan
from tcplab.testbed.agents import Json
from tcplab.testbed.netem import netems, unlike

# A direction that does nothing.
_NOTHING: dict[str, Any] = {
    "rate": None,
    "queue": {"kind": "droptail", "limit": None},
    "delay": 0,
    **dict.fromkeys(("jitter", "reorder", "loss", "corrupt", "duplicate", "trace")),
    "up": True,
    "changes": [],
}


def applied(plan: Plan, places: Mapping[str, Place]) -> bool:
    """Whether all links that flows pass are applied: every host of a flow impairs what it sends."""
    ends = {flow[end] for flow in plan["flows"] for end in ("from", "to")}
    return all(name in places and places[name].impair for name in ends)


def executed(plan: Plan, places: Mapping[str, Place]) -> Plan:
    """The plan with what is applied: links do nothing in directions in which nobody impairs."""
    done = {
        hop
        for name, place in places.items()
        if place.impair
        for way in _directions(plan, name)
        for hop in way.hops
    }

    def direction(link: Mapping[str, Any], which: DirectionKey) -> Direction:
        return cast(
            "Direction", link[which] if Hop(link["name"], which) in done else {**link[which], **_NOTHING}
        )

    links = [{**link, **{which: direction(link, which) for which in DIRECTIONS}} for link in plan["links"]]
    return cast("Plan", {**plan, "links": links if done else []})


def commands(
    plan: Plan, places: Mapping[str, Place], addresses: Mapping[str, str]
) -> Iterator[tuple[str, Json]]:
    """The command for each host that impairs what it sends."""
    for name in addresses:
        if not places[name].impair:
            continue
        towards = [
            {"address": addresses[way.target], "netem": found}
            for way in _directions(plan, name)
            if (found := netems(way.mtu, way.direction))
        ]
        if towards:
            yield name, {"do": "impair", "towards": towards}


def problems(plan: Plan, places: Mapping[str, Place]) -> Iterator[Problem]:
    """Settings that netem cannot apply, or applies in another way."""
    impairing = [name for name, place in places.items() if place.impair]
    for name in impairing:
        for way in _directions(plan, name):
            if len(way.shaping) > 1:
                links = ", ".join(hop.link for hop in way.shaping)
                message = f"netem takes one link's part, and more of them do more than delay: {links}"
                yield Problem(f"nodes.{name}", message, "leave out `impair`, or all but one link's settings")
                continue
            hop = way.shaping[0] if way.shaping else way.hops[0]
            for one in unlike(way.mtu, way.direction):
                where = f"links.{hop.link}.{hop.direction}.{one.key}"
                hint = "leave out `impair`, or this setting" if one.refused else one.hint
                yield Problem(where, one.message, hint, fatal=one.refused)
    if impairing and not applied(plan, places):
        yield Problem(
            "network.hosts_at",
            f"only what {', '.join(impairing)} sends is impaired: the reverse path is not changed",
            "give each host `impair: on`",
            fatal=False,
        )


@dataclass(frozen=True)
class _Direction:
    """From a host to another."""

    target: str
    hops: list[Hop]
    shaping: list[Hop]
    """Those that do more than delay."""
    mtu: int
    direction: Direction
    """The settings of all, where one at most does more than delay."""


def _directions(plan: Plan, name: str) -> Iterator[_Direction]:
    """The ways from a host to those that flows join it with."""
    pairs = [(flow["from"], flow["to"]) for flow in plan["flows"]]
    mtus = {link["name"]: int(link["mtu"]) for link in plan["links"]}
    for target in dict.fromkeys(other for pair in pairs if name in pair for other in pair if other != name):
        hops = path(plan, name, target)
        if not hops:
            continue
        mtu = min(mtus[hop.link] for hop in hops)
        directions = {hop: settings(plan, hop) for hop in hops}
        shaping = [
            hop
            for hop, one in directions.items()
            if netems(mtu, cast("Direction", {**one, "delay": 0, "reorder": None}))
        ]
        delay = sum(one["delay"] for one in directions.values())
        direction = {**directions[shaping[0] if shaping else hops[0]], "delay": delay}
        yield _Direction(target, hops, shaping, mtu, cast("Direction", direction))
