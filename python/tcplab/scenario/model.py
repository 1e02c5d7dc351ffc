"""A scenario: network, traffic, and what to measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema

from .document import Document
from .fields import Count, Interval, Name, Omit, PositiveMoment, Seed, Short, Strict, Switch, Text, refuse
from .flows import Flow
from .network import Network
from .quantity import show


class Sample(Strict):
    """How often what is sampled; `off`: never."""

    sockets: Interval = 10_000_000
    """Every sending TCP socket (default 10 ms)."""
    queues: Interval = 10_000_000
    """Every link direction's queue (default 10 ms)."""
    flows: Interval = 100_000_000
    """Every stream's counters (default 100 ms)."""
    hosts: Interval = 100_000_000
    """Every host's CPU and memory, on real hosts (default 100 ms)."""
    packets: Switch = False
    """Record every packet event of every link (default off)."""


class Capture(Short):
    """What is captured as pcapng. Short form: how much (`capture: headers`)."""

    short: ClassVar[str] = "what"

    what: Literal["none", "headers", "full"] = "headers"
    """`none`, `headers` (Ethernet, IP and transport), or `full` packets."""
    at: Literal["wire", "host"] = "wire"
    """`wire`: MTU-size packets, from the link; `host`: as tcpdump on the host sees them, TSO and GRO
    super-packets included."""
    nodes: Annotated[list[Name], Field(min_length=1)] | None = None
    """Nodes whose interfaces are captured; default: every host."""


def _version(value: Any) -> int:
    if value != 1 or isinstance(value, bool):
        raise refuse(f"{show(value)} is not a version of the scenario language", "1")
    return 1


class Scenario(Strict):
    """What happens in one test."""

    tcplab: Annotated[int, BeforeValidator(_version), WithJsonSchema({"const": 1})]
    """Version of the scenario language: 1."""
    name: Name
    """Name of the scenario."""
    description: Text = ""
    """Free text, shown in the report."""
    network: Network
    """The network."""
    flows: Annotated[list[Flow], Field(min_length=1)]
    """The traffic."""
    duration: PositiveMoment | None = None
    """The run ends here; default: when the last flow stops, or after 30 s if no flow says when."""
    timeout: PositiveMoment = 600_000_000_000
    """Without `duration`: how long flows that end by bytes or count may take (default 10 min)."""
    sample: Sample = Sample()
    """How often what is sampled."""
    omit: Omit = None
    """Warm-up that steady-state figures exclude: a time, or `auto` (default), found by MSER-5."""
    emulator: Literal["tcplab", "netem"] = "tcplab"
    """What makes links of a real kernel's network: tcplab's emulator (default), or netem."""
    capture: Capture = Capture(what="none")
    """What is captured (default none)."""
    repeat: Count = 1
    """Number of runs, each with its own seed."""
    vary: Switch = True
    """From the second run on, each flow starts later by a random phase of up to its base RTT (default on)."""
    seed: Seed = 1
    """Seed of every random stream of the first run; each repetition takes the next."""

    _document: Document | None = PrivateAttr(default=None)
    _base: Path = PrivateAttr(default_factory=Path)

    @property
    def document(self) -> Document | None:
        """The text it was read from."""
        return self._document

    @property
    def base(self) -> Path:
        """The directory that the files it names are relative to."""
        return self._base

    def read_from(self, document: Document, base: Path) -> Scenario:
        """The same scenario, knowing the text it was read from."""
        self._document = document
        self._base = base.absolute()
        return self
