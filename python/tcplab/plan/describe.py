"""A plan's settings in words. Rust says them (`crates/plan`): each kind describes itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcplab import _core

if TYPE_CHECKING:
    from tcplab.plan.types import Direction, Flow, Plan


@dataclass(frozen=True)
class DirectionWords:
    """One direction of a link, in words."""

    rate: str
    """`10 Mbit/s`, `no rate limit`, or a trace's mean"""
    delay: str
    queue: str
    """The discipline with its settings."""
    impairments: list[str]
    """In the order in which packets meet them."""
    changes: list[str]
    """Changes during the run, by time."""
    line: str
    """All of it."""


@dataclass(frozen=True)
class FlowWords:
    """Traffic of a flow."""

    traffic: str
    control: str
    """With the parameters that were given; empty: it has none."""
    time: str
    """When it runs."""


def describe_plan(plan: Plan) -> list[str]:
    """Lines that say what would run: network, traffic, measurement. Raises ValueError: not a plan."""
    lines: list[str] = json.loads(_core.describe("plan", json.dumps(plan)))
    return lines


def describe_direction(direction: Direction) -> DirectionWords:
    """A direction of a link in words; raises ValueError."""
    return DirectionWords(**json.loads(_core.describe("direction", json.dumps(direction))))


def describe_flow(flow: Flow) -> FlowWords:
    """A flow in words; raises ValueError."""
    return FlowWords(**json.loads(_core.describe("flow", json.dumps(flow))))


def limit_words(limit: Mapping[str, Any]) -> str:
    """A queue's limit: `100 packets`, `200 kB`, `50 ms`."""
    words: str = json.loads(_core.describe("limit", json.dumps(limit)))
    return words
