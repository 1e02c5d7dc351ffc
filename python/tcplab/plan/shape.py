"""Whether a plan has the shape that readers of results rely on.

A plan that tcplab wrote has it. One from elsewhere, or from a damaged disk, is refused here with the place
that is wrong, rather than by whichever figure stumbles over it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

# 400 days in nanoseconds, and rates that integers hold.
_Time = Annotated[int, Field(ge=0, le=400 * 86_400 * 10**9)]
_Step = Annotated[int, Field(ge=1, le=400 * 86_400 * 10**9)]
_Rate = Annotated[int | float, Field(ge=0, le=10**15)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Queue(_Part):
    kind: str
    limit: dict[str, Any] | None = None


class _Change(_Part):
    at: _Time
    rate: _Rate | None = None


class _Direction(_Part):
    rate: _Rate | None = None
    queue: _Queue
    delay: _Time
    jitter: dict[str, Any] | None = None
    reorder: dict[str, Any] | None = None
    loss: dict[str, Any] | list[Any] | None = None
    trace: dict[str, Any] | list[Any] | None = None
    changes: list[_Change] = []


class _Link(_Part):
    name: str
    ends: Annotated[list[str], Field(min_length=2, max_length=2)]
    addresses: list[str | None] | None = None
    addresses6: list[str | None] | None = None
    mtu: Annotated[int, Field(ge=68, le=2**31)] | None = None
    forward: _Direction
    backward: _Direction


class _Node(_Part):
    name: str
    kind: str
    routes: dict[str, str] = {}


class _Control(_Part):
    name: str


class _Flow(_Part):
    name: str
    kind: str
    start_node: Annotated[str, Field(alias="from")]
    to: str
    start: _Time = 0
    stop: _Time | None = None
    streams: Annotated[int, Field(ge=0, le=10**6)] = 1
    cc: _Control | str | None = None
    rate: _Rate | None = None
    payload: Annotated[int, Field(ge=0, le=2**31)] | None = None
    bytes: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None


class _Sample(_Part):
    sockets: _Step | None = None
    queues: _Step | None = None
    flows: _Step | None = None
    hosts: _Step | None = None


class _Plan(_Part):
    name: str | None = None
    description: str | None = None
    seed: int | None = None
    duration: _Time = 0
    omit: _Time | str | None = None
    nodes: list[_Node] = []
    links: list[_Link] = []
    flows: list[_Flow] = []
    sample: _Sample | None = None
    capture: dict[str, Any] | None = None


def mistake(plan: dict[str, Any]) -> str | None:
    """The first place of a plan that is not as tcplab writes it, and what is wrong there; None: none."""
    try:
        checked = _Plan.model_validate(plan)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg'].lower()}"
    nodes = {node.name for node in checked.nodes}
    for link in checked.links:
        for end in link.ends:
            if nodes and end not in nodes:
                return f"link {link.name!r} ends at {end!r}, and no node is called so"
    for flow in checked.flows:
        for end in (flow.start_node, flow.to):
            if nodes and end not in nodes:
                return f"flow {flow.name!r} names {end!r}, and no node is called so"
    return None
