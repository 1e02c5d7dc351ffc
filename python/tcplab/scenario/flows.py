"""The traffic part of the language."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from .fields import (
    Count,
    IpVersion,
    Moment,
    Name,
    Number,
    PositiveMoment,
    PositiveSize,
    PositiveTime,
    Rate,
    Size,
    Streams,
    Strict,
    Switch,
    Text,
    Time,
    Warmup,
    Window,
)
from .sizes import Sizes, read_sizes


class Control(Strict):
    """A congestion control; short form: its name.

    Any further key is one of its parameters (`{name: cubic, beta: 0.8}`).
    """

    name: Text
    """Name of the control, or the path of a C file relative to the scenario (`./mine.c`)."""
    params: dict[Text, Number] = Field(default_factory=dict)
    """Parameters that differ from their defaults."""

    @model_validator(mode="before")
    @classmethod
    def _collect(cls, read: Any) -> Any:
        if isinstance(read, str):
            return {"name": read}
        if not isinstance(read, dict) or isinstance(read.get("params"), dict):
            return read
        params = {key: value for key, value in read.items() if key != "name"}
        return {"name": read["name"], "params": params} if "name" in read else {"params": params}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "anyOf": [
                {"type": "string", "examples": ["cubic", "reno", "bbr1", "./mine.c"]},
                {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                    "additionalProperties": {"type": "number"},
                },
            ],
        }


class Pattern(Strict):
    """Pauses in a flow: it sends for `on`, is silent for `off`, and so on."""

    on: PositiveMoment
    """Mean time of sending."""
    off: PositiveMoment
    """Mean time of silence."""
    distribution: Literal["constant", "exponential"] = "constant"
    """Whether both times are always their mean, or exponentially distributed."""


class AnyFlow(Strict):
    """What every flow has."""

    name: Name
    """Name of the flow, by which results and `--set` call it."""
    from_: Name | None = Field(default=None, alias="from")
    """Sending node (for request and ping: the one that asks); default on a path: `left`."""
    to: Name | None = None
    """Receiving node; default on a path: `right`."""
    start: Moment = 0
    """When the flow starts."""
    duration: PositiveMoment | None = None
    """How long it goes on; default: until the end of the scenario."""
    stop: Moment | None = None
    """When it stops, instead of `duration`."""
    streams: Streams = 1
    """Number of parallel connections or sources."""
    ip: IpVersion = 4
    """Version of IP that carries it: 4 (default) or 6."""


class SocketSettings(Strict):
    """Settings of a flow's sockets, instead of its hosts'."""

    window: Window | None = None
    """Send buffer of the sender and receive buffer of the receiver."""
    send_buffer: Window | None = None
    """Send buffer alone, at both ends."""
    receive_buffer: Window | None = None
    """Receive buffer alone, at both ends."""
    mss: PositiveSize | None = None
    """Largest TCP payload of a segment, options not counted (TCP_MAXSEG)."""
    nagle: Switch | None = None
    """Nagle's algorithm (off is TCP_NODELAY)."""


class TcpFlow(AnyFlow, SocketSettings):
    """A bulk transfer over TCP."""

    kind: Literal["tcp"]
    """A bulk transfer over TCP."""
    cc: Control = Control(name="cubic")
    """Congestion control (default cubic)."""
    bytes: PositiveSize | None = None
    """Bytes per stream; default: as many as the time allows."""
    pattern: Pattern | None = None
    """Pauses."""
    generator: Literal["native", "iperf3"] = "native"
    """Program that makes the traffic where it is real."""


class UdpFlow(AnyFlow):
    """Datagrams at a rate."""

    kind: Literal["udp"]
    """Datagrams at a rate."""
    rate: Rate
    """Rate of UDP payload per stream."""
    payload: PositiveSize | None = None
    """Payload of a datagram; default: what fills the path's MTU (1472 B; 1452 B over IPv6)."""
    bytes: PositiveSize | None = None
    """Payload per stream; default: as much as the time allows."""
    pattern: Pattern | None = None
    """Pauses."""
    generator: Literal["native", "iperf3"] = "native"
    """Program that makes the traffic where it is real."""


class RequestFlow(AnyFlow, SocketSettings):
    """A client that asks, waits for the answer, thinks and asks again, on one TCP connection a stream."""

    kind: Literal["request"]
    """Requests and responses over TCP."""
    cc: Control = Control(name="cubic")
    """Congestion control of both ends (default cubic)."""
    request: PositiveSize
    """Size of a request."""
    response: PositiveSize
    """Size of a response."""
    think: Time = 0
    """Pause between a response and the next request."""
    count: Count | None = None
    """Requests per stream; default: as many as the time allows."""


class EchoFlow(AnyFlow, SocketSettings):
    """Clients that send messages, size after size, and wait for each to come back, on a connection each."""

    kind: Literal["echo"]
    """Messages echoed over TCP."""
    cc: Control = Control(name="cubic")
    """Congestion control of both ends (default cubic)."""
    streams: Streams = Field(default=1, alias="clients")
    """Clients at the same time, each with a connection (default 1)."""
    sizes: Sizes = read_sizes("1..65536")
    """Sizes of messages: `1..65536` (doubling), a list, or one; a number is bytes (default 1..65536)."""
    iterations: Count = 1000
    """Messages of each size (default 1000)."""
    warmup: Warmup = 0
    """How many of the first messages of each size are left out of the statistics (default none)."""
    interval: Time = 0
    """Least time from one message to the next (default none: at once)."""
    timeout: PositiveMoment = 10_000_000_000
    """How long a message may take to come back where it is real (default 10 s)."""
    busy_poll: Switch = False
    """Both ends poll instead of sleeping where they are real (default off)."""


class PingFlow(AnyFlow):
    """Echo requests, as ICMP."""

    kind: Literal["ping"]
    """Echo requests, as ICMP."""
    interval: PositiveTime = 100_000_000
    """Time between two probes (default 100 ms)."""
    payload: Size = 56
    """Payload of a probe (default 56 B)."""
    count: Count | None = None
    """How many; default: as many as the time allows."""


Flow = Annotated[TcpFlow | UdpFlow | RequestFlow | EchoFlow | PingFlow, Field(discriminator="kind")]
KINDS = {"tcp": TcpFlow, "udp": UdpFlow, "request": RequestFlow, "echo": EchoFlow, "ping": PingFlow}
