"""The manifest: what ran, with what, on what, and how it ended."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tcplab.results.errors import ResultsError
from tcplab.safe_text import visible_data

FILE = "manifest.json"


class Host(BaseModel):
    """The machine a run was executed on. What could not be read is null."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = Field(None, description="Host name")
    kernel: str | None = Field(None, description="System, release, version, architecture, as uname has them")
    cpu: str | None = Field(None, description="CPU model")
    cores: int | None = Field(None, description="CPUs this process may use")
    memory: int | None = Field(None, description="Main memory, bytes")
    governor: str | None = Field(None, description="CPU frequency governor")
    sysctls: dict[str, str] = Field(default_factory=dict, description="net.ipv4.tcp_* and buffer limits")


class Attempt(BaseModel):
    """One execution of a run that was repeated because it was overloaded."""

    model_config = ConfigDict(extra="ignore")

    status: Literal["done", "interrupted", "failed"] = Field("done", description="How it ended")
    overload: str | None = Field(None, description="Why it was repeated or failed; null where all is well")
    excess: float = Field(0.0, description="How many times its limit the lateness was; overloaded above 1")
    kept: bool = Field(False, description="Whether the tables are of this one")


class Manifest(BaseModel):
    """One run's manifest.

    A run that has not finished is marked `interrupted` from its first moment on, so that even a killed
    process leaves a correctly marked run.
    """

    model_config = ConfigDict(extra="ignore")

    tcplab: str = Field("", description="Version of tcplab")
    engine: str = Field("", description="sim, kernel or remote")
    engine_version: str = Field("", description="Version of the engine")
    python: str = Field("", description="Python version")
    scenario: str = Field("", description="The scenario's name")
    seed: int = Field(0, description="Seed of every random stream of the run")
    repetition: int = Field(1, ge=1, description="Number of the repetition, from 1")
    phases: dict[str, int] = Field(
        default_factory=dict,
        description="How much later than in the plan each flow started, ns; empty: at the plan's times",
    )
    plan_digest: str = Field(
        "", description="SHA-256 of the plan without seed and phases: equal for repetitions"
    )
    started: str = Field("", description="When the run started, ISO 8601 with time zone")
    wall_duration: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="How long it took, seconds"
    )
    status: Literal["done", "interrupted", "failed"] = Field("interrupted", description="How it ended")
    message: str = Field("", description="Why it failed or was interrupted")
    warnings: list[str] = Field(default_factory=list, description="What the reader of the results must know")
    overload: str | None = Field(None, description="How the machine, not TCP, set the result; or null")
    attempts: list[Attempt] = Field(
        default_factory=list,
        description="Every execution of an overloaded run: status, overload, excess (of the limit), kept;"
        " empty where one was enough",
    )
    host: Host = Field(default_factory=Host, description="The machine")
    qdiscs: dict[str, str] = Field(
        default_factory=dict, description="Queue discipline by interface (real hosts)"
    )
    offloads: dict[str, list[str]] = Field(
        default_factory=dict, description="Offloads that were on, by interface (real hosts)"
    )
    facts: dict[str, Any] = Field(default_factory=dict, description="What the engine reports about itself")

    @field_validator("started")
    @classmethod
    def _is_a_time(cls, started: str) -> str:
        if started and datetime.fromisoformat(started).year < 1970:
            raise ValueError("no time since 1970")
        return started

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"


def read_manifest(run_dir: Path) -> Manifest:
    """Read a run directory's manifest.

    A directory without one belongs to a run that was killed before its first write: an interrupted manifest.
    Raises ResultsError when the file is not a manifest.
    """
    path = run_dir / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Manifest(status="interrupted", message="the run left no manifest")
    except OSError as error:
        raise ResultsError.from_os(path, error) from error
    except UnicodeDecodeError as error:
        raise ResultsError(path, f"not a manifest: {error}") from error
    try:
        manifest = Manifest.model_validate_json(text)
        return Manifest.model_validate(visible_data(manifest.model_dump(), lines=True))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ResultsError(path, f"not a manifest: {where}: {first['msg']}") from error


def plan_digest(plan: dict[str, Any]) -> str:
    """SHA-256 of a plan without what differs between repetitions: its seed and phases."""
    rest = {key: value for key, value in plan.items() if key not in ("seed", "phases")}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
