"""A run that overloaded the machine is repeated: the best attempt is kept, and its manifest names all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tcplab.engine.base import ATTEMPTS, Outcome, Status

Execute = Callable[[Path], tuple[Outcome, float]]
"""Executes a run into a directory, with its manifest; the outcome, and how long it took in seconds."""


@dataclass(frozen=True)
class _Made:
    """An attempt that was made."""

    number: int
    outcome: Outcome

    @property
    def is_overloaded(self) -> bool:
        return self.outcome.status is Status.DONE and self.outcome.excess > 1


def best_of(
    execute: Execute, run_dir: Path, attempts: int = ATTEMPTS, note: Callable[[str], None] | None = None
) -> tuple[Outcome, float]:
    """Execute a run into `run_dir`, again while it is overloaded, `attempts` times at most.

    The directory then holds the attempt that was not overloaded, or the least overloaded. One that fails or
    is interrupted replaces none that was done; an interruption is the outcome nevertheless. `note` learns of
    each repetition. Returns the outcome and the seconds of all attempts; raises what `execute` raises.
    """
    outcome, wall = execute(run_dir)
    kept = _Made(1, outcome)
    made = [kept]
    while kept.is_overloaded and len(made) < attempts and made[-1].outcome.status is not Status.INTERRUPTED:
        if note is not None:
            said = made[-1].outcome.message or made[-1].outcome.facts.get("overload", "")
            note(f"attempt {len(made)} of {attempts}: {said}; repeating")
        beside = run_dir.with_name(f".{run_dir.name}.attempt")
        try:
            outcome, seconds = execute(beside)
            made.append(_Made(len(made) + 1, outcome))
            wall += seconds
            if outcome.status is Status.DONE and outcome.excess < kept.outcome.excess:
                kept = made[-1]
                shutil.rmtree(run_dir)
                beside.rename(run_dir)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    if len(made) > 1:
        _name(run_dir, made, kept)
    if made[-1].outcome.status is Status.INTERRUPTED:
        return replace(kept.outcome, status=Status.INTERRUPTED, message=made[-1].outcome.message), wall
    return kept.outcome, wall


def _name(run_dir: Path, made: list[_Made], kept: _Made) -> None:
    """Write all attempts into the manifest of the one that was kept."""
    from tcplab.results.files import write_text
    from tcplab.results.manifest import FILE, Attempt, read_manifest

    manifest = read_manifest(run_dir)
    manifest.attempts = [
        Attempt(
            status=one.outcome.status.value,
            overload=one.outcome.facts.get("overload") or one.outcome.message or None,
            excess=one.outcome.excess,
            kept=one is kept,
        )
        for one in made
    ]
    why = "; ".join(
        f"attempt {number}: {one.overload}" for number, one in enumerate(manifest.attempts, 1) if not one.kept
    )
    manifest.warnings.append(f"kept attempt {kept.number} of {len(made)}; {why}")
    write_text(run_dir / FILE, manifest.to_json())
