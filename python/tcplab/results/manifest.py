"""The manifest: what ran, with what, on what, and how it ended."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from dataclasses import fields as fields_of
from datetime import MAXYEAR, UTC, datetime
from pathlib import Path
from typing import Any

from tcplab.plan.types import Plan
from tcplab.results.errors import ResultsError, require_directory
from tcplab.safe_text import visible_data
from tcplab.shapes import (
    Shape,
    ShapeError,
    by_name,
    each,
    fields,
    mapping,
    number,
    optional,
    switch,
    text,
    whole,
    word,
)

FILE = "manifest.json"

_STATUS = ("done", "interrupted", "failed")


def _moment(value: Any) -> None:
    """A time since 1970, or nothing."""
    text(value)
    try:
        # The last year has moments that other time zones have no date for.
        known = not value or 1970 <= datetime.fromisoformat(value).year < MAXYEAR
    except ValueError:
        known = False
    if not known:
        raise ShapeError(f"{value!r} is not a time since 1970")


def _shape_of(entries: type) -> Shape:
    """The shape of a dataclass in the file."""
    return fields({entry.name: entry.metadata["shape"] for entry in fields_of(entries)})


def _entry(doc: str, shape: Shape) -> dict[str, Any]:
    """Meaning of an entry of the manifest, and its shape in the file."""
    return {"doc": doc, "shape": shape}


_WHOLE = optional(whole(0, 2**63))


@dataclass
class Host:
    """The machine a run was executed on. Entries that could not be read are null."""

    name: str | None = field(default=None, metadata=_entry("Host name", optional(text)))
    kernel: str | None = field(
        default=None,
        metadata=_entry("System, release, version, architecture, as uname has them", optional(text)),
    )
    cpu: str | None = field(default=None, metadata=_entry("CPU model", optional(text)))
    cores: int | None = field(default=None, metadata=_entry("CPUs this process may use", _WHOLE))
    memory: int | None = field(default=None, metadata=_entry("Main memory, bytes", _WHOLE))
    governor: str | None = field(default=None, metadata=_entry("CPU frequency governor", optional(text)))
    sysctls: dict[str, str] = field(
        default_factory=dict, metadata=_entry("net.ipv4.tcp_* and buffer limits", by_name(text))
    )


@dataclass
class Attempt:
    """One execution of a run that was repeated because it was overloaded."""

    status: str = field(default="done", metadata=_entry("Outcome", word(*_STATUS)))
    overload: str | None = field(
        default=None, metadata=_entry("Why it was repeated or failed; null where all is well", optional(text))
    )
    excess: float = field(
        default=0.0,
        metadata=_entry("How many times its limit the lateness was; overloaded above 1", number()),
    )
    kept: bool = field(default=False, metadata=_entry("Whether the tables are of this one", switch))


@dataclass
class Manifest:
    """One run's manifest.

    A run that has not finished is marked `interrupted` from its first moment on, so that even a killed
    process leaves a correctly marked run.
    """

    tcplab: str = field(default="", metadata=_entry("Version of tcplab", text))
    engine: str = field(default="", metadata=_entry("sim, kernel or remote", text))
    engine_version: str = field(default="", metadata=_entry("Version of the engine", text))
    python: str = field(default="", metadata=_entry("Python version", text))
    scenario: str = field(default="", metadata=_entry("The scenario's name", text))
    seed: int = field(default=0, metadata=_entry("Seed of every random stream of the run", whole(0, 2**64)))
    repetition: int = field(default=1, metadata=_entry("Number of the repetition, from 1", whole(1, 2**63)))
    phases: dict[str, int] = field(
        default_factory=dict,
        metadata=_entry(
            "Delay of each flow's start against the plan, ns; empty: at the plan's times",
            by_name(whole(0, 2**63)),
        ),
    )
    plan_digest: str = field(
        default="",
        metadata=_entry("SHA-256 of the plan without seed and phases: equal for repetitions", text),
    )
    started: str = field(
        default="", metadata=_entry("When the run started, ISO 8601 with time zone", _moment)
    )
    wall_duration: float | None = field(
        default=None, metadata=_entry("Duration, seconds", optional(number(0)))
    )
    status: str = field(default="interrupted", metadata=_entry("Outcome", word(*_STATUS)))
    message: str = field(default="", metadata=_entry("Why it failed or was interrupted", text))
    warnings: list[str] = field(
        default_factory=list, metadata=_entry("Warnings for the reader of the results", each(text))
    )
    overload: str | None = field(
        default=None, metadata=_entry("Why the machine, not TCP, limited the result; or null", optional(text))
    )
    attempts: list[Attempt] = field(
        default_factory=list,
        metadata=_entry(
            "Every execution of an overloaded run: status, overload, excess (of the limit), kept;"
            " empty where one was enough",
            each(_shape_of(Attempt)),
        ),
    )
    host: Host = field(default_factory=Host, metadata=_entry("The machine", _shape_of(Host)))
    qdiscs: dict[str, str] = field(
        default_factory=dict, metadata=_entry("Queue discipline by interface (real hosts)", by_name(text))
    )
    offloads: dict[str, list[str]] = field(
        default_factory=dict,
        metadata=_entry("Offloads that were on, by interface (real hosts)", by_name(each(text))),
    )
    facts: dict[str, Any] = field(default_factory=dict, metadata=_entry("Reports of the engine", mapping))

    @property
    def faults(self) -> list[str]:
        """Why its figures are not those of a whole run on an idle machine, such as `interrupted: ...`."""
        found = [] if self.status == "done" else [f"{self.status}: {self.message}"]
        return [*found, f"overloaded: {self.overload}"] if self.overload else found

    def to_data(self) -> dict[str, Any]:
        """The entries as plain data."""
        return asdict(self)

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(_finite(self.to_data()), indent=2, ensure_ascii=False) + "\n"


def check(manifest: Manifest) -> None:
    """Raises ShapeError, a ValueError, for entries that no reader would take."""
    _shape_of(Manifest)(_finite(manifest.to_data()))


def _finite(data: Any) -> Any:
    """The data with null for what JSON cannot write."""
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def read_manifest(run_dir: Path) -> Manifest:
    """Read a run directory's manifest.

    A directory without one belongs to a run that was killed before its first write: an interrupted manifest.
    Raises ResultsError when the file is not a manifest.
    """
    path = run_dir / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        _shape_of(Manifest)(data)
    except FileNotFoundError:
        require_directory(run_dir)
        return Manifest(status="interrupted", message="the run left no manifest")
    except OSError as error:
        raise ResultsError.unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(path, f"not a manifest: {error}") from error
    known = _known(Manifest, visible_data(data, lines=True))
    host = Host(**_known(Host, known.pop("host", {})))
    attempts = [Attempt(**_known(Attempt, one)) for one in known.pop("attempts", [])]
    return Manifest(**known, host=host, attempts=attempts)


def _known(of: type, data: dict[str, Any]) -> dict[str, Any]:
    """The entries that a file of this version has."""
    names = {entry.name for entry in fields_of(of)}
    return {key: value for key, value in data.items() if key in names}


def moment(started: str) -> datetime:
    """When a manifest says that its run started; of one that does not say, before all others."""
    if not started:
        return datetime.min.replace(tzinfo=UTC)
    found = datetime.fromisoformat(started)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def local_time(started: str) -> str:
    """The same in the reader's time zone."""
    return f"{moment(started).astimezone():%Y-%m-%d %H:%M:%S}" if started else ""


def plan_digest(plan: Plan) -> str:
    """SHA-256 of a plan without what differs between repetitions: its seed and phases."""
    rest = {key: value for key, value in plan.items() if key not in ("seed", "phases")}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
