"""A run that overloaded the machine is made again; the best attempt is kept and all are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tcplab import runner
from tcplab.engine.base import Outcome, Problem, Progress, Status
from tcplab.plan.types import Plan
from tcplab.progress import Silent
from tcplab.results.manifest import Manifest, read_manifest
from tcplab.scenario import from_data

SCENARIO = {
    "tcplab": 1,
    "name": "repeated",
    "network": {"path": {"rate": "10 Mbit/s", "rtt": "10 ms"}},
    "flows": [{"name": "f", "kind": "tcp"}],
    "duration": "1 s",
}


class Machine:
    """An engine whose attempts come to what is given: an excess, or how they end."""

    name = "machine"
    exclusive = True

    def __init__(self, attempts: Sequence[float | Status]) -> None:
        self.attempts = list(attempts)
        self.made = 0

    def executed(self, plan: Plan) -> Plan:
        return plan

    def check(self, plan: Plan) -> list[Problem]:
        return []

    def preparing(self, plans: Sequence[Plan]) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        came = self.attempts[self.made]
        self.made += 1
        (run_dir / "attempt").write_text(str(self.made), encoding="ascii")
        if isinstance(came, Status):
            return Outcome(came, f"{came.value} in attempt {self.made}")
        facts = {"overload": f"{came} times too late"} if came > 1 else {}
        return Outcome(Status.DONE, facts=facts, excess=came)


def made_of(
    path: Path, attempts: Sequence[float | Status], maximum: int = 3
) -> tuple[runner.Finished, Manifest, str]:
    """The outcome, the manifest, and the number of the attempt whose files are kept."""
    engine = Machine(attempts)
    prepared = runner.prepare(from_data(SCENARIO), source="repeated", engine=engine)
    runner.claim(prepared, path / "out")
    (finished,) = runner.execute([(prepared, path / "out")], watcher=Silent(), attempts=maximum)
    run_dir = path / "out" / "run-1"
    assert engine.made == len(attempts)
    assert [entry.name for entry in run_dir.parent.iterdir() if entry.is_dir()] == ["run-1"]
    return finished, read_manifest(run_dir), (run_dir / "attempt").read_text(encoding="ascii")


@pytest.mark.parametrize(
    ("attempts", "kept"),
    [([2.0, 0.5], 2), ([2.0, 9.0, 0.1], 3), ([3.0, 2.0, 4.0], 2), ([2.0, 3.0, 4.0], 1)],
)
def test_the_least_overloaded_is_kept_and_all_are_named(
    tmp_path: Path, attempts: list[float], kept: int
) -> None:
    finished, manifest, files = made_of(tmp_path, attempts)
    assert finished.status is Status.DONE
    assert files == str(kept)
    assert [one.excess for one in manifest.attempts] == attempts
    assert [one.kept for one in manifest.attempts].index(True) == kept - 1
    best = attempts[kept - 1]
    assert manifest.overload == (f"{best} times too late" if best > 1 else None)
    (said,) = manifest.warnings
    assert said.startswith(f"kept attempt {kept} of {len(attempts)}; ")
    for number, excess in enumerate(attempts, 1):
        assert (f"attempt {number}: {excess} times too late" in said) == (number != kept)


def test_one_that_is_not_overloaded_is_made_once(tmp_path: Path) -> None:
    _, manifest, _ = made_of(tmp_path, [1.0])
    assert (manifest.attempts, manifest.warnings) == ([], [])


def test_one_attempt_is_enough_when_asked(tmp_path: Path) -> None:
    _, manifest, _ = made_of(tmp_path, [5.0], maximum=1)
    assert manifest.overload == "5.0 times too late"
    assert manifest.attempts == []


def test_a_failure_replaces_nothing_that_was_done(tmp_path: Path) -> None:
    finished, manifest, files = made_of(tmp_path, [2.0, Status.FAILED, 0.5])
    assert (finished.status, files) == (Status.DONE, "3")
    assert [one.status for one in manifest.attempts] == ["done", "failed", "done"]


def test_an_interruption_ends_it_and_keeps_what_was_done(tmp_path: Path) -> None:
    finished, manifest, files = made_of(tmp_path, [2.0, Status.INTERRUPTED])
    assert (finished.status, files) == (Status.INTERRUPTED, "1")
    assert manifest.status == "done"
    assert manifest.attempts[1].overload == "interrupted in attempt 2"
