"""The contract of engines: each says beforehand which plans it cannot execute, and executes the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tcplab.plan.types import Plan
    from tcplab.scenario.errors import ScenarioError

ATTEMPTS = 3
"""Default number of executions of a run that is overloaded each time."""


@dataclass(frozen=True)
class Problem:
    """Something this engine, on this machine, cannot do with this plan."""

    where: str
    """Path in the plan, such as `flows.bulk.cc`."""
    message: str
    fix: str = ""
    """How to fix it: a command, or another setting."""
    fatal: bool = True
    """False for a warning: the run goes on and the manifest carries it."""
    at: ScenarioError | None = None
    """The place in the scenario's text; none of a default or of the machine."""
    is_input: bool = False
    """Whether a file of the scenario is wrong, rather than the machine or the engine unable."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    time: int
    """ns of the run's own time."""
    duration: int
    """ns the run will take at most."""
    goodput: dict[str, float] = field(default_factory=dict)
    """Per flow, bit/s over the last moments."""
    cwnd: dict[str, float] = field(default_factory=dict)
    """Per flow whose sender's sockets are sampled, segments: the mean over them."""
    srtt: dict[str, float] = field(default_factory=dict)
    """As `cwnd`, in ns."""


class Status(StrEnum):
    """How a run ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and what its manifest should say beyond what the caller knows."""

    status: Status
    message: str = ""
    warnings: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    """Engine-specific manifest entries: events processed, wall time, kernel settings, overload verdict."""
    excess: float = 0.0
    """How many times its limit the machine's lateness was: above 1 the run is overloaded."""
    wrong_input: bool = False
    """It failed because a file that the scenario names is wrong."""


class Engine(Protocol):
    """Executes plans."""

    name: str
    exclusive: bool
    """Two runs at the same time would disturb each other's results."""

    def executed(self, plan: Plan) -> Plan:
        """The plan as it will be executed: without what this engine leaves to the world."""

    def check(self, plan: Plan) -> list[Problem]:
        """Say what cannot be done here, and how to fix it; empty when all is well."""

    def preparing(self, plans: Sequence[Plan]) -> AbstractContextManager[None]:
        """Prepare, once for all, what several runs need, until the block ends. One plan for each run."""

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        """Execute the plan and write its tables (and captures) into `run_dir`.

        `progress` is to be called at least every 0.1 s or so; it raises KeyboardInterrupt when the run is to
        stop. What was recorded so far is then written and the outcome is INTERRUPTED. May be called from any
        thread, for several plans at a time.
        """
