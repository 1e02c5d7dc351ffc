"""Deviations of the kernel's netem from a plan; `crates/lab` knows them, and gives tc its commands."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tcplab import _core
from tcplab.plan.types import Direction


@dataclass(frozen=True)
class Unlike:
    """A deviation of netem from the plan."""

    key: str
    """Of the link direction."""
    message: str
    hint: str
    refused: bool
    """False: it does something like it."""


def netems(mtu: int, direction: Direction) -> list[list[str]]:
    """Arguments of each netem that a packet passes in a direction, the outer one first."""
    return _core.netems(mtu, json.dumps(direction))


def unlike(mtu: int, direction: Direction) -> list[Unlike]:
    """Settings of a direction that netem cannot do, or does in another way."""
    return [Unlike(**one) for one in json.loads(_core.netem_unlike(mtu, json.dumps(direction)))]
