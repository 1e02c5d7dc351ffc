"""A plan: a scenario with every default filled in.

Times are ns, rates bit/s, sizes bytes, shares parts per billion. `crates/plan` defines and describes every
key; a test holds these types to its JSON Schema. They are types alone: a plan is plain JSON data, which
nothing changes once it is made. What Python does not look into, such as the settings of a queue, is carried
as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from typing_extensions import ReadOnly


DirectionKey = Literal["forward", "backward"]
"""Key of a direction in a link."""


class Limit(TypedDict, total=False):
    """How much may wait in a queue: one of the keys."""

    packets: ReadOnly[int]
    bytes: ReadOnly[int]
    time: ReadOnly[int]


class Queue(TypedDict):
    """A queue discipline of any kind, with further settings of its own."""

    kind: ReadOnly[str]
    limit: NotRequired[ReadOnly[Limit | None]]
    mark_above: NotRequired[ReadOnly[Limit]]


class Chance(TypedDict):
    """A random event that hits packets."""

    rate: ReadOnly[int]
    correlation: ReadOnly[int]


class Reorder(TypedDict):
    """Packets that overtake others."""

    chance: ReadOnly[Chance]
    by: ReadOnly[int | None]


class Jitter(TypedDict):
    """Variation of the delay."""

    distribution: ReadOnly[str]
    amount: ReadOnly[int]
    correlation_time: ReadOnly[int]


class Loss(TypedDict):
    """Which packets vanish."""

    model: ReadOnly[dict[str, Any]]
    before_queue: ReadOnly[bool]


class Trace(TypedDict):
    """A delivery trace."""

    opportunities_ms: ReadOnly[list[int]]


class Change(TypedDict):
    """New settings of a direction from a time on; an absent one stays."""

    at: ReadOnly[int]
    rate: NotRequired[ReadOnly[int]]
    loss: NotRequired[ReadOnly[Loss]]
    corrupt: NotRequired[ReadOnly[Chance]]
    duplicate: NotRequired[ReadOnly[Chance]]
    reorder: NotRequired[ReadOnly[Reorder]]
    jitter: NotRequired[ReadOnly[Jitter]]
    up: NotRequired[ReadOnly[bool]]
    limit: NotRequired[ReadOnly[Limit]]
    mark_above: NotRequired[ReadOnly[Limit]]
    delay: NotRequired[ReadOnly[int]]


class Direction(TypedDict):
    """Settings of one direction of a link."""

    rate: ReadOnly[int | None]
    queue: ReadOnly[Queue]
    delay: ReadOnly[int]
    jitter: ReadOnly[Jitter | None]
    reorder: ReadOnly[Reorder | None]
    loss: ReadOnly[Loss | None]
    corrupt: ReadOnly[Chance | None]
    duplicate: ReadOnly[Chance | None]
    up: ReadOnly[bool]
    trace: ReadOnly[Trace | None]
    overhead: NotRequired[ReadOnly[dict[str, Any]]]
    policer: NotRequired[ReadOnly[dict[str, Any]]]
    changes: ReadOnly[list[Change]]


class Link(TypedDict):
    """A link with its two directions; forward is from the first end to the second."""

    name: ReadOnly[str]
    ends: ReadOnly[list[str]]
    addresses: ReadOnly[list[str | None]]
    addresses6: NotRequired[ReadOnly[list[str | None]]]
    mtu: ReadOnly[int]
    medium: NotRequired[ReadOnly[str]]
    forward: ReadOnly[Direction]
    backward: ReadOnly[Direction]


class Node(TypedDict):
    """A host, switch or router."""

    name: ReadOnly[str]
    kind: ReadOnly[str]
    tcp: ReadOnly[dict[str, Any]]
    routes: ReadOnly[dict[str, str]]
    multipath: NotRequired[ReadOnly[dict[str, list[str]]]]
    sysctls: NotRequired[ReadOnly[dict[str, str]]]
    cpus: NotRequired[ReadOnly[list[int]]]
    offloads: NotRequired[ReadOnly[dict[str, bool]]]
    timing: NotRequired[ReadOnly[str]]
    nic: NotRequired[ReadOnly[dict[str, int]]]
    routing: NotRequired[ReadOnly[dict[str, Any]]]
    accelerate: NotRequired[ReadOnly[dict[str, Any]]]
    cache: NotRequired[ReadOnly[dict[str, int]]]


class Control(TypedDict):
    """A congestion control with the parameters that were given, and the C file it is compiled from."""

    name: ReadOnly[str]
    params: NotRequired[ReadOnly[dict[str, float]]]
    file: NotRequired[ReadOnly[str]]
    source: NotRequired[ReadOnly[str]]


class Pattern(TypedDict):
    """Pauses in a flow."""

    on: ReadOnly[int]
    off: ReadOnly[int]
    distribution: ReadOnly[str]


class Web(TypedDict):
    """The requests of an http flow."""

    objects: ReadOnly[int]
    sizes: ReadOnly[list[int]]
    popularity: ReadOnly[str]
    page: ReadOnly[int]
    ranges: ReadOnly[int]
    think: ReadOnly[int]
    count: ReadOnly[int | None]
    max_age: NotRequired[ReadOnly[int]]


# `from` is a word of Python's, so that this type cannot be a class.
_Ends = TypedDict("_Ends", {"from": "ReadOnly[str]", "to": "ReadOnly[str]"})


class Flow(_Ends):
    """One traffic source and sink; which of the other keys it has depends on its kind."""

    name: ReadOnly[str]
    kind: ReadOnly[str]
    start: ReadOnly[int]
    stop: ReadOnly[int | None]
    streams: ReadOnly[int]
    base_rtt: NotRequired[ReadOnly[int]]
    ip: NotRequired[ReadOnly[int]]
    dscp: NotRequired[ReadOnly[int]]
    port: NotRequired[ReadOnly[int]]
    cc: NotRequired[ReadOnly[Control]]
    sender: NotRequired[ReadOnly[dict[str, Any]]]
    receiver: NotRequired[ReadOnly[dict[str, Any]]]
    generator: NotRequired[ReadOnly[str]]
    bytes: NotRequired[ReadOnly[int | None]]
    pattern: NotRequired[ReadOnly[Pattern | None]]
    rate: NotRequired[ReadOnly[int]]
    payload: NotRequired[ReadOnly[int]]
    spacing: NotRequired[ReadOnly[str]]
    ect: NotRequired[ReadOnly[int]]
    request: NotRequired[ReadOnly[int]]
    response: NotRequired[ReadOnly[int]]
    think: NotRequired[ReadOnly[int]]
    count: NotRequired[ReadOnly[int | None]]
    web: NotRequired[ReadOnly[Web]]
    sizes: NotRequired[ReadOnly[list[int]]]
    iterations: NotRequired[ReadOnly[int]]
    warmup: NotRequired[ReadOnly[int]]
    interval: NotRequired[ReadOnly[int]]
    timeout: NotRequired[ReadOnly[int]]
    busy_poll: NotRequired[ReadOnly[bool]]


class Sample(TypedDict):
    """How often what is sampled; None: never."""

    sockets: ReadOnly[int | None]
    queues: ReadOnly[int | None]
    flows: ReadOnly[int | None]
    hosts: ReadOnly[int | None]
    packets: ReadOnly[bool]


class Capture(TypedDict):
    """Packets to capture."""

    what: ReadOnly[str]
    at: ReadOnly[str]
    nodes: ReadOnly[list[str]]


class Plan(TypedDict):
    """A plan, executed by an engine."""

    name: ReadOnly[str]
    description: NotRequired[ReadOnly[str]]
    seed: ReadOnly[int]
    repeat: NotRequired[ReadOnly[int]]
    vary: NotRequired[ReadOnly[bool]]
    omit: NotRequired[ReadOnly[int | str]]
    duration: ReadOnly[int]
    nodes: ReadOnly[list[Node]]
    links: ReadOnly[list[Link]]
    media: NotRequired[ReadOnly[list[dict[str, Any]]]]
    flows: ReadOnly[list[Flow]]
    sample: ReadOnly[Sample]
    capture: ReadOnly[Capture | None]
    emulator: NotRequired[ReadOnly[str]]
    convergence: NotRequired[ReadOnly[int]]
    verify: NotRequired[ReadOnly[bool]]
    phases: NotRequired[ReadOnly[dict[str, int]]]
    hosts_at: NotRequired[ReadOnly[dict[str, str]]]
    expect_path: NotRequired[ReadOnly[dict[str, Any]]]
