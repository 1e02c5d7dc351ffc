"""Writing a run: a directory that is correctly marked at every moment of its life."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.plan.types import Plan
from tcplab.plan.yaml_text import dump_plan_yaml
from tcplab.results.errors import ResultsError
from tcplab.results.files import write_text
from tcplab.results.host import describe_host
from tcplab.results.manifest import FILE, Manifest, check, plan_digest

if TYPE_CHECKING:
    import polars as pl

SCENARIO_FILE = "scenario.yaml"
PLAN_FILE = "plan.yaml"
REPORT_FILE = "report.html"
CONTROLS = "controls"
"""Where in a result directory the C files of controls are."""
# Facts of an engine that have an entry of their own in the manifest.
_OWN_PLACE = ("overload", "qdiscs", "offloads", "engine_version")


STUDY_INDEX = "study.json"
"""Its presence makes a directory a study's."""
TAKEN = "already holds results; give another directory with --output, or remove it"


class TakenError(ResultsError):
    """A directory already holds results."""


def create_result_dir(path: Path, scenario_text: str) -> Path:
    """Make a result directory holding the scenario as given.

    Raises ResultsError when it cannot be written or has files that would be replaced, a TakenError when it
    already holds results.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        foreign = in_the_way(path, SCENARIO_FILE, REPORT_FILE, CONTROLS)
        # Looked at last: another process makes its run directory before its other files.
        taken = holds_runs(path) or (path / STUDY_INDEX).exists()
        if foreign and not taken:
            raise ResultsError(path, foreign)
        if not taken:
            try:
                # Of processes that come at once, one makes it.
                run_dir_of(path, 1).mkdir()
            except FileExistsError:
                taken = True
    except OSError as error:
        raise ResultsError.from_os(path, error) from error
    if taken:
        raise TakenError(path, TAKEN)
    write_text(path / SCENARIO_FILE, scenario_text)
    return path


def in_the_way(path: Path, *names: str) -> str:
    """Complaint about a directory with files that results would replace; empty without any of these names."""
    found = next((name for name in names if (path / name).exists()), None)
    return f"already has a file {found}; give another directory with --output" if found else ""


def holds_runs(path: Path) -> bool:
    """Whether a directory is a result or a run already."""
    return any(path.glob("run-*")) or (path / FILE).exists()


def run_dir_of(result_dir: Path, repetition: int) -> Path:
    """The run directory of a repetition, counted from 1."""
    return result_dir / f"run-{repetition}"


class RunWriter:
    """Fills one run directory.

    From the first moment on the directory holds the plan and a manifest that says `interrupted`;
    `finish` (or `write_manifest`) replaces it by the final one.
    """

    def __init__(self, run_dir: Path, plan: Plan, *, engine: str = "", repetition: int = 1) -> None:
        self.run_dir = Path(run_dir)
        try:
            self.run_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError.from_os(self.run_dir, error) from error
        if (self.run_dir / FILE).exists():
            raise ResultsError(self.run_dir, "already holds a run")
        write_text(self.run_dir / PLAN_FILE, dump_plan_yaml(plan))
        self.manifest = Manifest(
            tcplab=_version(),
            engine=engine,
            python=platform.python_version(),
            scenario=str(plan.get("name", "")),
            seed=int(plan.get("seed", 0)),
            repetition=repetition,
            phases=plan.get("phases") or {},
            plan_digest=plan_digest(plan),
            started=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
            message="the run did not finish",
            host=describe_host(),
        )
        self.write_manifest(self.manifest)

    def write_table(self, name: str, frame: pl.DataFrame) -> Path:
        """Write one table; see `tcplab.results.tables.write_table`."""
        from tcplab.results.tables import write_table

        return write_table(self.run_dir, name, frame)

    def write_manifest(self, manifest: Manifest) -> Path:
        """Write the manifest, whole or not at all; raises ResultsError."""
        path = self.run_dir / FILE
        write_text(path, manifest.to_json())
        self.manifest = manifest
        return path

    def finish(
        self,
        status: str,
        *,
        message: str = "",
        wall_duration: float | None = None,
        warnings: tuple[str, ...] | list[str] = (),
        facts: dict[str, Any] | None = None,
    ) -> Manifest:
        """Write the final manifest.

        `facts` are the engine's; those with a place of their own in the manifest (`overload`, `qdiscs`,
        `offloads`, `engine_version`) are put there.
        """
        rest = dict(facts or {})
        own = {key: rest.pop(key) for key in _OWN_PLACE if key in rest}
        manifest = replace(
            self.manifest,
            **own,
            status=status,
            message=message,
            wall_duration=wall_duration,
            warnings=[*self.manifest.warnings, *warnings],
            facts=rest,
        )
        check(manifest)
        self.write_manifest(manifest)
        return manifest


def _version() -> str:
    try:
        return version("tcplab")
    except PackageNotFoundError:
        return "0.1.0 (not installed)"
