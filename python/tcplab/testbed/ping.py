"""Whether nodes of a network answer each other: asked once, or awaited while routing protocols converge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from tcplab.plan.types import Plan
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import Layout

Ask = Callable[[dict[str, Any]], dict[str, Any]]
Pair = tuple[str, str, str]
"""Who asks whom, at which address."""
# How long routing protocols may take where a plan does not say, ns, and a look at them, s.
_CONVERGENCE, _LOOK = 60_000_000_000, 0.5


def pairs_of(layout: Layout, ends: Iterable[tuple[str, str, int]]) -> list[Pair]:
    """The pairs of some ends (from, to, version of IP); those that have an address of this version."""
    found = ((source, to, layout.arrival(source, to).ip(version)) for source, to, version in ends)
    return list(dict.fromkeys((source, to, address) for source, to, address in found if address is not None))


def silent(ask: Ask, pairs: Iterable[Pair], patience: float) -> tuple[list[Pair], float]:
    """Those of the pairs that do not answer within `patience` seconds, and the seconds that it took."""
    pairs = list(pairs)
    asked: dict[str, list[str]] = {}
    for source, _, address in pairs:
        asked.setdefault(source, []).append(address)
    answer = ask({"do": "reach", "pairs": asked, "timeout": round(patience * 1000)})
    unreachable = answer["unreachable"]
    return [pair for pair in pairs if pair[2] in unreachable.get(pair[0], ())], answer["seconds"]


def await_routes(
    plan: Plan, layout: Layout, ask: Ask, hint: str, meanwhile: Callable[[], None] = lambda: None
) -> float:
    """Wait until the ends of every flow reach each other; returns the seconds that it took.

    `meanwhile` is called again and again. Raises TestbedError after the time that the plan gives.
    """
    began = time.monotonic()
    patience = plan.get("convergence", _CONVERGENCE) / 1e9
    ends = [(flow["from"], flow["to"], flow["ip"]) for flow in plan["flows"]]
    # Both ways: a route there says nothing of one back.
    waiting = pairs_of(layout, [*ends, *((to, source, ip) for source, to, ip in ends)])
    while waiting := silent(ask, waiting, _LOOK)[0]:
        meanwhile()
        if time.monotonic() - began > patience:
            source, to, address = waiting[0]
            raise TestbedError(
                f"{to} ({address}) does not answer {source} within {patience:g} s: no route", hint
            )
    return time.monotonic() - began
