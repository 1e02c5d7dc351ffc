"""The network part of the language: the `path` shorthand, nodes, links and what links do to packets."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from .fields import (
    Correlation,
    Count,
    InitialWindow,
    LinkRate,
    MarkingThreshold,
    Moment,
    Name,
    Packets,
    PositiveSize,
    PositiveTime,
    Probability,
    QueueLimit,
    Short,
    Strict,
    Switch,
    Text,
    Time,
    Window,
    distinct_times,
    refuse,
    text,
)
from .quantity import Dimension, QuantityError, format_quantity, positive_size, show


class Queue(Short):
    """The queue in front of a link direction's serialiser. Short form: the limit (`queue: 50 ms`)."""

    short: ClassVar[str] = "limit"

    kind: Literal["droptail"] = "droptail"
    """Queue discipline: `droptail` is first in, first out, and drops arrivals beyond the limit."""
    limit: QueueLimit
    """How much may wait, the packet being sent not counted: `625 packets`, `200 kB` (frame bytes), `50 ms`
    (time to drain at the link's present rate), `1.5 BDP`, or `unlimited`."""
    mark_above: MarkingThreshold | None = None
    """Step marking: a packet that arrives while more than this waits is marked *congestion experienced*,
    if its sender has negotiated ECN. In the units of `limit`; default: nothing is marked."""


class Chance(Short):
    """A random event that strikes packets. Short form: the rate (`corrupt: 0.1 %`)."""

    short: ClassVar[str] = "rate"

    rate: Probability
    """Mean share of packets struck."""
    correlation: Correlation = 0
    """How much a packet's fate resembles its predecessor's; the mean rate is kept."""


class GilbertElliott(Strict):
    """Bursts: a good and a bad state, each with its own loss probability."""

    p: Probability
    """Probability of going from good to bad, per packet."""
    r: Probability
    """Probability of going from bad to good, per packet; 1/r is the mean burst length in packets."""
    bad: Probability = 1_000_000_000
    """Loss probability in the bad state."""
    good: Probability = 0
    """Loss probability in the good state."""


class Loss(Short):
    """Which packets vanish; short form: the rate (`loss: 0.5 %`).

    One of `rate`, `gilbert_elliott`, `packets` and `every` must be given. Losses strike after serialisation
    unless `before_queue` is set.
    """

    short: ClassVar[str] = "rate"

    rate: Probability | None = None
    """Mean share of packets lost at random."""
    correlation: Correlation | None = None
    """How much a loss resembles its predecessor's fate; needs `rate`."""
    model: Literal["random", "netem"] | None = None
    """`random` (default) keeps the mean rate under correlation; `netem` repeats netem's recursion, which does
    not."""
    gilbert_elliott: GilbertElliott | None = None
    """Bursts after Gilbert and Elliott."""
    packets: Annotated[list[Count], Field(min_length=1)] | None = None
    """Exactly these packets of the direction, counted from 1."""
    every: Packets | None = None
    """One packet in every so many (`every: 1000 packets`)."""
    first: Count | None = None
    """With `every`: the number of the first packet lost, counted from 1; default: the period."""
    before_queue: Switch = False
    """Lose packets before they enter the queue, so that a lost packet uses no capacity."""

    @model_validator(mode="after")
    def _one_process(self) -> Loss:
        given = [
            key for key in ("rate", "gilbert_elliott", "packets", "every") if getattr(self, key) is not None
        ]
        if not given:
            raise refuse(
                "a loss needs one of `rate`, `gilbert_elliott`, `packets` and `every`", "loss: 0.5 %"
            )
        if len(given) > 1:
            raise refuse(f"a loss has one process, but `{given[0]}` and `{given[1]}` are given")
        for key, needed in (("correlation", "rate"), ("model", "rate"), ("first", "every")):
            if getattr(self, key) is not None and getattr(self, needed) is None:
                raise refuse(f"`{key}` goes with `{needed}`, which is not given")
        seen: set[int] = set()
        for number in self.packets or ():
            if number in seen:
                raise refuse(f"packet {number} is in the list twice")
            seen.add(number)
        return self


class Reorder(Short):
    """Packets that overtake others; without it order is kept. Short form: the rate (`reorder: 1 %`)."""

    short: ClassVar[str] = "rate"

    rate: Probability
    """Share of packets that skip `by` of the delay."""
    correlation: Correlation = 0
    """How much a packet's fate resembles its predecessor's."""
    by: PositiveTime | None = None
    """How much of the delay they skip; default: all of it."""


# Internet delays vary chiefly on time scales of 0.1 s to 1 s (V. Paxson, "End-to-end Internet packet
# dynamics", IEEE/ACM Transactions on Networking 7(3), 1999): the shorter, of which a short run sees more.
CORRELATION_TIME = 100_000_000
# The delay falls at most half as fast as time passes (`crates/link/src/excursions.rs`). Below 10 amounts most
# excursions of normal jitter would last longer than asked for.
JITTER_MEMORY = 10
# Below, a link would take noticeable time to catch up after a pause.
LEAST_CORRELATION_TIME = 100_000


class Jitter(Short):
    """Random variation of the delay, with the same mean and spread at any packet rate.

    Short form: the amount (`jitter: 2 ms`).
    """

    short: ClassVar[str] = "amount"

    amount: Time
    """Half width (uniform), standard deviation (normal) or mean excess (pareto)."""
    distribution: Literal["uniform", "normal", "pareto"] = "uniform"
    """Shape of the variation."""
    correlation_time: PositiveTime | None = None
    """Time in which the delay's autocorrelation falls to 1/e; default: 100 ms, or 10 times the amount where
    that is longer. It has no meaning with `reorder`, which makes each packet's delay its own."""

    @model_validator(mode="after")
    def _slow_enough(self) -> Jitter:
        least = max(JITTER_MEMORY * self.amount, LEAST_CORRELATION_TIME)
        if self.amount and self.correlation_time is not None and self.correlation_time < least:
            given, minimum = (format_quantity(ns, Dimension.TIME) for ns in (self.correlation_time, least))
            raise refuse(
                f"`correlation_time` of {given} is too short: the minimum for this jitter is {minimum}, "
                "so that packets keep their order; with `reorder` each packet's delay is its own",
                f"correlation_time: {minimum}",
            )
        return self

    @property
    def memory(self) -> int:
        """The correlation time in ns, the default where none is given."""
        return self.correlation_time or max(CORRELATION_TIME, JITTER_MEMORY * self.amount)


class Impairments(Strict):
    """Settings of a link direction that may also change during the run."""

    rate: LinkRate = None
    """Serialisation rate of Ethernet frames (IP length + 14 bytes), or `unlimited`."""
    loss: Loss | None = None
    """Packets lost after serialisation (or before the queue, with `before_queue`)."""
    corrupt: Chance | None = None
    """Packets damaged after serialisation; the receiver discards them."""
    duplicate: Chance | None = None
    """Packets delivered twice."""
    reorder: Reorder | None = None
    """Packets that overtake others."""
    jitter: Jitter | None = None
    """Random variation of the delay in time; order is kept unless `reorder` is set."""
    up: Switch = True
    """A link that is down drops what is offered to it and what waits in its queue."""


class LinkChange(Impairments):
    """New settings of a link from a time on; what is not named stays as it is."""

    queue: Queue | None = None
    """New queue limit."""
    delay: Time | None = None
    """New one-way propagation delay."""


class PathChange(Impairments):
    """New settings of the path from a time on; what is not named stays as it is."""

    queue: Queue | None = None
    """New limit of the forward queue, and where named, new marking threshold."""
    rtt: Time | None = None
    """New base round-trip time, half in each direction."""


class Direction(Impairments):
    """What one direction of a link does.

    In this order: queue, serialisation at `rate`, loss, corruption and duplication, propagation `delay`
    with `jitter`.
    """

    queue: Queue | None = None
    """The queue in front of the serialiser; default: 1000 packets, droptail."""
    delay: Time = 0
    """One-way propagation delay."""
    trace: Text | None = None
    """File of delivery opportunities in mahimahi's format, instead of `rate`; relative to the scenario."""
    at: Annotated[dict[Moment, LinkChange], BeforeValidator(distinct_times)] = Field(default_factory=dict)
    """Settings that change during the run, by time."""


def mtu(value: Any) -> int:
    """An MTU in bytes: at least 576, which every IPv4 host must take (RFC 791, section 3.1)."""
    try:
        size = positive_size(value)
    except QuantityError as error:
        raise refuse(error.message, error.suggestion) from None
    if not 576 <= size <= 65_535:
        raise refuse(f"{show(value)} must be from 576 B to 65535 B", "1500 B")
    return size


Mtu = Annotated[
    int,
    BeforeValidator(mtu),
    WithJsonSchema(
        {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(B|kB|KiB)$", "examples": ["1500 B", "9000 B"]}
    ),
]


def _switch_word(value: Any) -> Any:
    """`true` and `false` mean `on` and `off` wherever those are words."""
    return ("on" if value else "off") if isinstance(value, bool) else value


def _cpus(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < 8192:
            raise refuse(f"{show(item)} is not the number of a CPU")
    return items


def _sysctls(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    texts = {}
    for key, setting in value.items():
        if setting is None or isinstance(setting, dict | list):
            raise refuse(f"the sysctl `{key}` needs a value")
        texts[key] = text(str(int(setting)) if isinstance(setting, bool) else str(setting))
    return texts


class HostSettings(Strict):
    """The settings of a host's TCP; defaults are Linux's."""

    window: Window | None = None
    """Send and receive buffer of every socket, as SO_SNDBUF and SO_RCVBUF; default: auto-tuned."""
    send_buffer: Window | None = None
    """Send buffer alone."""
    receive_buffer: Window | None = None
    """Receive buffer alone."""
    send_buffer_max: PositiveSize | None = None
    """Largest auto-tuned send buffer (`tcp_wmem[2]`, 4 MiB)."""
    receive_buffer_initial: PositiveSize | None = None
    """Receive buffer where auto-tuning starts (`tcp_rmem[1]`, 128 KiB)."""
    receive_buffer_max: PositiveSize | None = None
    """Largest auto-tuned receive buffer (`tcp_rmem[2]`, 6 MiB)."""
    mss: PositiveSize | None = None
    """Largest TCP payload announced, options not counted; default: the link's MTU minus 40 B."""
    initial_window: InitialWindow | None = None
    """Initial congestion window (`10 packets`, RFC 6928)."""
    ecn: Annotated[Literal["off", "on", "passive"], BeforeValidator(_switch_word)] | None = None
    """Explicit congestion notification: `off`, `on` (offered), `passive` (accepted when offered; default)."""
    sack: Switch | None = None
    """Selective acknowledgments (default on)."""
    timestamps: Switch | None = None
    """TCP timestamps, RFC 7323 (default on)."""
    delayed_ack: Switch | None = None
    """Delayed acknowledgments (default on)."""
    tso: Switch | None = None
    """TCP segmentation offload: bursts leave the host as one (default on)."""
    gso: Switch | None = None
    """Generic segmentation offload: the same, done in software (default on)."""
    gro: Switch | None = None
    """Generic receive offload: neighbouring segments are merged, fewer ACKs are sent (default off)."""
    nagle: Switch | None = None
    """Nagle's algorithm (default on; off is TCP_NODELAY)."""
    pacing: Switch | None = None
    """Pace every control, as the fq queue discipline does (default off: only controls that ask for it)."""
    rto_min: PositiveTime | None = None
    """Least retransmission timeout (default 200 ms)."""
    slow_start_after_idle: Switch | None = None
    """Slow start after an idle period (default on)."""
    sysctls: Annotated[dict[Text, str], BeforeValidator(_sysctls)] = Field(default_factory=dict)
    """Kernel settings by name, for engines with a kernel."""
    cpus: Annotated[
        list[int],
        BeforeValidator(_cpus),
        WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
    ] = Field(default_factory=list)
    """CPUs the host's processes are pinned to (`1` or `[0, 1]`), for engines with real ones."""


# RFC 6793; 0, 65535 and the last one are reserved (RFC 7607, RFC 7300).
Asn = Annotated[int, Field(ge=1, le=4_294_967_294)]


class Bgp(Strict):
    """BGP-4 (RFC 4271): a session with every neighbour that has it; announces the router's own networks."""

    as_: Asn = Field(alias="as")
    """Number of the autonomous system."""


class Routing(Strict):
    """Routing protocols of a router, run by FRR in a lab of `tcplab topo`. Defaults are the protocols'."""

    bgp: Bgp | None = None
    """BGP."""


class Node(HostSettings, Short):
    """A host, switch or router; TCP settings are for hosts. Short form: the name of a host."""

    short: ClassVar[str] = "name"

    name: Name
    """Name of the node."""
    kind: Literal["host", "switch", "router"] = "host"
    """`host` sends and receives, `switch` forwards within a subnet, `router` between subnets."""
    routing: Routing | None = None
    """Routing protocols of a router, in place of static routes."""


class Link(Direction):
    """A point-to-point link.

    Its settings hold for both directions; `forward` (from the first end to the second) and `backward` say
    what differs.
    """

    name: Name | None = None
    """Name of the link; default: its ends, joined by `-`."""
    ends: Annotated[list[Name], Field(min_length=2, max_length=2)]
    """The two nodes it joins."""
    mtu: Mtu = 1500
    """Largest IP packet."""
    forward: Direction = Direction()
    """Settings from the first end to the second, where they differ."""
    backward: Direction = Direction()
    """Settings from the second end to the first, where they differ."""


class PathNetwork(Impairments):
    """The classic dumbbell, reduced to its bottleneck: hosts `left` and `right` joined by the link `path`."""

    rtt: Time
    """Base round-trip time, half in each direction."""
    queue: Queue | None = None
    """The forward bottleneck queue; default: 1 BDP, droptail."""
    trace: Text | None = None
    """File of forward delivery opportunities in mahimahi's format, instead of `rate`; relative to the
    scenario."""
    at: Annotated[dict[Moment, PathChange], BeforeValidator(distinct_times)] = Field(default_factory=dict)
    """Settings that change during the run, by time (`20 s: {rate: 20 Mbit/s}`)."""
    mtu: Mtu = 1500
    """Largest IP packet."""
    reverse: Direction = Direction()
    """The way back; default: same rate and delay, no impairments, a queue of 10000 packets."""
    left: HostSettings = HostSettings()
    """Settings of the host `left`, which sends unless a flow says otherwise."""
    right: HostSettings = HostSettings()
    """Settings of the host `right`."""
    per_flow: Switch = False
    """Give each flow a path of its own with the same settings: hosts `left-FLOW` and `right-FLOW`, link
    `path-FLOW`. So flows can be compared that do not meet."""


class Network(Strict):
    """The network: either `path`, or `nodes` and `links`."""

    path: PathNetwork | None = None
    """Shorthand for two hosts and one bottleneck link."""
    hosts: HostSettings = HostSettings()
    """Settings of all hosts, unless a host says otherwise."""
    nodes: list[Node] = Field(default_factory=list)
    """Hosts, switches and routers."""
    links: list[Link] = Field(default_factory=list)
    """Point-to-point links between them."""

    @model_validator(mode="after")
    def _one_form(self) -> Network:
        if self.path is not None and (self.nodes or self.links):
            raise refuse("a network is either a `path`, or `nodes` and `links`, not both")
        if self.path is None and not self.nodes:
            raise refuse("a network needs a `path`, or `nodes` and `links`")
        return self
