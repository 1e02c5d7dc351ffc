"""The compiled extension: the simulator for `tcplab.engine.sim`, the agent for `tcplab.testbed`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from tcplab.scenario.errors import ScenarioError
from tcplab.scenario.reading import Controls

class Progress:
    """How far a simulation has come."""

    @property
    def time(self) -> int:
        """Simulated time, ns."""

    @property
    def duration(self) -> int:
        """Simulated time at which the run ends at the latest, ns."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    @property
    def goodput(self) -> dict[str, float]:
        """Goodput of each flow since the last call, bit/s."""

class Simulation:
    """A simulation of one plan.

    Raises ValueError if the plan cannot be read, `tcplab.engine.errors.PlanError` if it cannot be simulated,
    OSError if a capture cannot be written.
    """

    def __init__(
        self,
        plan_json: str,
        capture_dir: str | PathLike[str] | None = None,
        libraries: Mapping[str, str] | None = None,
    ) -> None: ...
    def advance(self, wall_ms: int) -> Progress:
        """Simulate for `wall_ms` milliseconds of real time, until a table is full, or until the run ends."""

    def take_full(self) -> dict[str, bytes]:
        """Give the rows of full tables by name, as Arrow IPC files, and forget them.

        Rows of flows are in the order in which their streams ended.
        """

    def finish(self) -> dict[str, bytes]:
        """Give the tables by name, as Arrow IPC files, without rows that were taken; close the captures.

        Works before the end too.
        """

    def facts(self) -> dict[str, Any]:
        """Tell what has been done so far: events, packets, and simulated time in ns.

        `accelerators` has for each its node's number in the plan, and its connections by their fate:
        accepted, refused, passed.
        """

class CaptureError(ValueError):
    """The file is not a capture that can be read."""

class FilterError(ValueError):
    """A filter that cannot be read: message, place and length of the mistake in characters."""

class PacketList:
    """The packets of a capture, one by one.

    Raises OSError if the file cannot be read, CaptureError if it is not a capture, FilterError.
    """

    def __init__(
        self, path: str | PathLike[str] | None = None, filter_text: str | None = None, width: int = 0
    ) -> None: ...
    def heading(self) -> str:
        """Name the columns."""

    def lines(self, count: int) -> str:
        """Give the next `count` packets, a line each; fewer at the end."""

    def rows(self, count: int) -> list[tuple[int, int, str, str, str, int, str, int | None, str]]:
        """Give the next `count` packets.

        Of each: number, ns since the first, source, destination, protocol, length, info, flow, note.
        """

    def details(self, number: int) -> dict[str, Any] | None:
        """Give a packet that has not been passed yet, field by field; None if there is none."""

    def facts(self) -> dict[str, Any]:
        """Tell what was read so far, and how the capture ended."""

def check_filter(text: str) -> None:
    """Raise FilterError unless the text is a filter."""

class Flows:
    """The flows of a capture, small until they are asked for."""

    def __len__(self) -> int: ...
    def get(self, place: int) -> dict[str, Any]:
        """Give the flow at a place, from 0. Raises IndexError."""

    def place_of(self, number: int) -> int | None:
        """Give the place of the flow with this number; None if there is none."""

    def columns(self, begin: int, end: int) -> dict[str, Any]:
        """Give the flows from one place to before another as a table.

        `flows` is an Arrow IPC file of the columns that vary, each once; absent where none does. `columns`
        has each column's name, a kind and a value: kind "column" and a place in the file, or "integer",
        "real", "truth" or "text" and the one value in all rows.
        """

def summarise(
    path: str | PathLike[str] | None = None, filter_text: str | None = None, cores: int = 1
) -> tuple[Flows, dict[str, Any]]:
    """Give the flows of a capture that the filter means, and what was read of it; None: standard input.

    Raises OSError if the file cannot be read, CaptureError if it is not a capture, FilterError.
    """

def match_ends(
    first: str | PathLike[str],
    second: str | PathLike[str],
    same_clock: bool = False,
    known_clock: tuple[int, float, int, int] | None = None,
) -> dict[str, Any]:
    """Match the captures of both ends packet by packet; `pairs` is an Arrow IPC file.

    `known_clock` is the second clock's lead over the first: offset (ns), skew, the first clock's time of it
    (ns since 1970), and the offset's bound (ns).

    Raises OSError if a file cannot be read, CaptureError if it is not a capture.
    """

def follow(
    path: str | PathLike[str] | None = None, flows: list[int] | None = None, maximum: int = 50_000_000
) -> tuple[dict[str, tuple[str, bytes]], dict[str, Any]]:
    """Give every packet of these flows (None: of all) as columns, and what was read.

    A column is numpy's code of its type, and its bytes.

    Raises OSError if the file cannot be read, CaptureError if it is not a capture.
    """

def agent_main(arguments: list[str]) -> int:
    """Be the agent that the arguments say until its input ends; returns its exit code."""

def version() -> str:
    """Tell the simulator's version."""

def controls() -> list[str]:
    """Name the congestion controls the simulator has."""

def control(name: str, library: str | None = None) -> dict[str, Any]:
    """Tell what a control says of itself; raises ValueError when it is none."""

def control_files(name: str) -> tuple[dict[str, str], str | None]:
    """Give the C headers of controls by name, and the C file of a built-in one."""

class Document:
    """A scenario's or study's YAML text, read; raises `ScenarioErrors`, as its methods do."""

    def __init__(self, text: bytes, name: str) -> None: ...
    @staticmethod
    def of(data: object, name: str) -> Document:
        """Make a document of data from a program; raises ValueError where it nests too deep."""

    def part(self, path: Sequence[str | int]) -> Document | None:
        """Give the part at a path."""

    def plain(self, path: Sequence[str | int]) -> Any:
        """Give the value at a path as plain data; None if there is none."""

    def holds(self, path: Sequence[str | int]) -> bool:
        """Tell whether there is a value at a path."""

    def mistake(
        self, path: Sequence[str | int], message: str, suggestion: str = "", *, at_key: bool = False
    ) -> ScenarioError:
        """Make a mistake at a path: at its value, or at its key."""

    def plan(self, folder: str | PathLike[str], sets: list[str], controls: Controls | None = None) -> str:
        """Give the plan of the scenario as JSON; files that it names are relative to `folder`."""

    def located(self, place: str, message: str, sets: list[str]) -> ScenarioError | None:
        """Make a mistake at what a place in the plan, such as `flows.bulk.cc`, comes from, if it does."""

    def renamed_keys(self, sets: list[str]) -> list[str]:
        """A warning for each key, also of overrides, that has a new name."""

    def study(self) -> str:
        """Give a study's own keys as JSON, with every default filled in."""

def mistake_text(
    file: str,
    line: int,
    column: int,
    path: str,
    value: str,
    message: str,
    suggestion: str,
    source: str,
    width: int,
) -> str:
    """Give a mistake as people read it."""

def schema(of: str) -> str:
    """Give the JSON Schema of a `scenario`, a `study` or a `plan`."""

def warnings(plan: str) -> list[str]:
    """Tell what a person should know about a plan (JSON) before running it."""

def tables() -> list[tuple[str, str, list[str], list[str], list[tuple[str, str, str, str]]]]:
    """Give the result tables: name, what it has a row for, columns that are never null, all columns.

    Of a column its name, type, unit and what it holds.
    """

def describe(what: str, text: str) -> str:
    """Tell in words (JSON) what a `plan`, or its part, does: a `direction`, a `flow` or a `limit` (JSON)."""

def tcp_sysctls(settings: str) -> list[tuple[str, str]]:
    """Give the sysctls, with their values, that a node's TCP settings in a plan (JSON) ask of a host."""

def repetition(plan: str, number: int) -> str:
    """Give the plan (JSON) of a repetition, counted from 1."""

def with_phases(plan: str) -> str:
    """Give the plan (JSON) in which each flow starts later by its phase."""

def estimate(plan: str) -> str:
    """Give what one run of a plan (JSON) takes, as JSON; raises ValueError."""

def traffic_kinds() -> str:
    """Give what holds for all traffic of each kind, as JSON."""

def node_kinds() -> str:
    """Give what holds for all nodes of each kind, as JSON."""

def lay_out(plan: str, emulate_all: bool) -> str:
    """Give what each namespace of a plan (JSON) holds, as JSON; raises ValueError."""

def netems(mtu: int, direction: str) -> list[list[str]]:
    """Give each netem's arguments for a link direction (JSON), the outer one first; raises ValueError."""

def netem_unlike(mtu: int, direction: str) -> str:
    """Give what of a link direction (JSON) netem does not do as the plan says, as JSON; raises ValueError."""

def effective_loss(rate: float, correlation: float) -> float:
    """Give the share of packets lost in the long run by netem's recursion."""

def len_on_wire(overhead: str, frame_len: int) -> int:
    """Give the bytes on the wire of a frame, with a link direction's overhead (JSON); raises ValueError."""

def value(kind: str, data: object) -> str:
    """Read a value of a kind as JSON in base units; raises QuantityError, ValueError for an unknown kind."""

def quantity_of(text: str) -> tuple[str, float]:
    """Give a quantity's dimension and its value in the base unit; raises QuantityError."""

def units() -> list[tuple[str, list[str]]]:
    """Give the units of each dimension."""

def plan_yaml(text: str) -> str:
    """Give a plan's YAML text as JSON; raises ValueError."""
