"""Executing a study: what is missing is made, in a randomised order, and the results become one data set."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tcplab.plan.types import Plan
from tcplab.results.errors import ResultsError
from tcplab.runner import UnsupportedError, stopping_on_signals, usable_cores
from tcplab.study.grid import Cell
from tcplab.study.load import Study
from tcplab.study.pool import Executor, LocalPool
from tcplab.study.store import Done, Store
from tcplab.study.task import Made, Task, refuse

if TYPE_CHECKING:
    from tcplab.engine.base import Problem

# Reading a plan, starting an engine and writing the tables, seconds: for the estimate of a dry run.
_SIM_SPEED = 100.0
_RUN_COST = {"sim": 0.3, "kernel": 2.5}


@dataclass(frozen=True)
class Job:
    """One run of one cell."""

    cell: Cell
    repetition: int


@dataclass(frozen=True)
class Tasks:
    """The tasks of a study: those to be done, and those done before."""

    missing: tuple[Job, ...]
    """In the order in which they are to be made."""
    done: tuple[Job, ...] = ()
    changed: tuple[Job, ...] = ()
    """Made from other inputs than the study now has: these are among the missing, too."""
    damaged: tuple[Job, ...] = ()
    """Their files are not as they were written: these are among the missing, too."""
    failed: tuple[Job, ...] = ()
    """They were tried, and are tried again: these are among the missing, too."""


class Watcher(Protocol):
    """Is notified of how a study goes on."""

    def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
        """A run is over: the `number`th of the `of` to be made."""


@dataclass
class Outcome:
    """The outcome of a study."""

    cells: tuple[Cell, ...]
    """Its cells, with the one that combines the best of each axis."""
    done: list[Done] = field(default_factory=list)
    interrupted: bool = False
    wall: float = 0.0
    """Seconds."""
    spent: float = 0.0
    """Sum of the runs' times, seconds; `wall` times the workers exceeds it by the cost of scheduling."""

    @property
    def status(self) -> str:
        """interrupted, failed when any run did, or done."""
        if self.interrupted:
            return "interrupted"
        return "failed" if any(one.status == "failed" for one in self.done) else "done"


def work(study: Study, store: Store, cells: Sequence[Cell] | None = None) -> Tasks:
    """The tasks that a resumed study (or some of its cells) still has to do."""
    from tcplab import engine as engines
    from tcplab.results.manifest import plan_digest

    jobs = [Job(cell, number + 1) for number in range(study.repeat) for cell in (cells or study.cells)]
    if study.file.order == "random":
        # Whole repetitions one after the other, each in an order of its own: a study cut short has all
        # cells equally often, and drift falls on all alike.
        rng = random.Random(study.file.seed)  # noqa: S311 - an order, not a secret
        size = len(jobs) // max(study.repeat, 1)
        blocks = [jobs[start : start + size] for start in range(0, len(jobs), size or 1)]
        for block in blocks:
            rng.shuffle(block)
        jobs = [job for block in blocks for job in block]
    digests = {job.cell.id: "" for job in jobs}
    for job in jobs:
        executed = engines.load(job.cell.engine).executed
        digests[job.cell.id] = digests[job.cell.id] or plan_digest(executed(study.plan_of(job.cell)))
    states = [store.state(job.cell, job.repetition, digests[job.cell.id]) for job in jobs]
    pairs = list(zip(jobs, states, strict=True))
    return Tasks(
        missing=tuple(job for job, state in pairs if state != "done"),
        done=tuple(job for job, state in pairs if state == "done"),
        changed=tuple(job for job, state in pairs if state == "changed"),
        damaged=tuple(job for job, state in pairs if state == "damaged"),
        failed=tuple(job for job, state in pairs if state == "failed"),
    )


def require_possible(study: Study, todo: Tasks) -> None:
    """Raise UnsupportedError if nothing of the study is done, and no cell of it can run on this machine."""
    from tcplab import engine as engines

    if todo.done:
        return
    reasons: dict[str, list[Problem]] = {}
    for cell in {job.cell.id: job.cell for job in todo.missing}.values():
        problems = engines.load(cell.engine).check(study.plan_of(cell))
        fatal = [problem for problem in problems if problem.fatal]
        if not fatal:
            return
        known = reasons.setdefault(cell.engine, [])
        known += [problem for problem in fatal if problem not in known]
    if reasons:
        engine, fatal = next(iter(reasons.items()))
        raise UnsupportedError(study.source, engine, fatal)


def refused(study: Study, todo: Tasks) -> set[str]:
    """The cells with failed runs that their engine refuses: their runs fail again."""
    cells = {job.cell.id: job.cell for job in todo.failed}
    return {name for name, cell in cells.items() if _problems(study.plan_of(cell), cell.engine)[0]}


def execute(
    study: Study,
    store: Store,
    *,
    watcher: Watcher,
    jobs: int | None = None,
    exclusive_jobs: int = 1,
    executor: Executor | None = None,
) -> Outcome:
    """Make what is missing of a study whose directory `Store.create` has made, and write its data set.

    `jobs` is how many simulations run at a time (all cores when None); `executor` makes the simulations
    elsewhere. Runs on real systems go one at a time on this machine, as they would disturb each other,
    unless `exclusive_jobs` says otherwise. On Ctrl-C the data set of what is done is written and the outcome
    is interrupted. Raises ResultsError when results cannot be written, or another process runs the study.
    """
    began = time.monotonic()
    stop = threading.Event()
    cells = study.cells
    with store.alone(), stopping_on_signals(stop):
        made = make_runs(
            study, store, work(study, store).missing, watcher, jobs, executor, stop, exclusive_jobs
        )
        if study.file.combine is not None and not stop.is_set():
            from tcplab.study.combine import best_cell

            best = best_cell(study, collect(study, store, cells))
            if best is not None:
                cells = (*cells, best)
                store.write_index(study, cells)
                todo = work(study, store, [best]).missing
                made += make_runs(study, store, todo, watcher, jobs, executor, stop, exclusive_jobs)
    outcome = Outcome(
        cells,
        collect(study, store, cells),
        stop.is_set(),
        time.monotonic() - began,
        sum(one.wall for one in made),
    )
    store.write_results(cells, outcome.done, axes_of(study))
    return outcome


def reopened(study: Study, store: Store) -> Outcome:
    """The outcome of a study that was run before; raises ResultsError."""
    known = {cell.id for cell in study.cells}
    extra = [
        study.cell(entry["engine"], entry["labels"])
        for entry in store.index()["cells"]
        if entry["id"] not in known
    ]
    cells = (*study.cells, *[replace(cell, group="combined best") for cell in extra])
    return Outcome(cells, collect(study, store, cells))


def axes_of(study: Study) -> list[str]:
    """The names of the study's axes."""
    return [axis.name for axis in study.axes]


def estimate(study: Study, todo: Tasks, jobs: int | None = None) -> float:
    """How long the missing runs will take, in seconds, roughly: the simulator's speed depends on the plan."""
    seconds = {"sim": 0.0, "exclusive": 0.0}
    for job in todo.missing:
        duration = _length(study.plan_of(job.cell))
        if job.cell.engine == "sim":
            seconds["sim"] += _RUN_COST["sim"] + duration / _SIM_SPEED
        else:
            seconds["exclusive"] += _RUN_COST["kernel"] + duration + study.file.gap / 1e9
    return seconds["sim"] / (jobs or usable_cores()) + seconds["exclusive"]


def _length(plan: Plan) -> float:
    """How long a run lasts, s: its duration, or less where echoes end it."""
    from tcplab.present.echo import way

    whole = float(plan["duration"])
    flows = plan["flows"]
    if not all("iterations" in flow for flow in flows):
        return whole / 1e9
    ends = []
    for flow in flows:
        path = way(plan, flow)
        # Requests and echoes share a link that carries both ways at once: two clients cost no more than one.
        sharing = max(1.0, flow["streams"] / 2)
        trips = ((path.serialisation(size) or 0.0) * sharing + (path.delay or 0.0) for size in flow["sizes"])
        ends.append(flow["start"] + flow["iterations"] * sum(max(trip, flow["interval"]) for trip in trips))
    return float(min(whole, max(ends))) / 1e9


def make_runs(
    study: Study,
    store: Store,
    missing: Sequence[Job],
    watcher: Watcher,
    jobs: int | None,
    executor: Executor | None,
    stop: threading.Event,
    exclusive_jobs: int = 1,
) -> list[Made]:
    """Make these runs, in this order as far as they go one at a time; see `execute`.

    A run that the engine refuses is recorded with the reason.
    """
    from tcplab import engine as engines
    from tcplab.scenario import repetition

    cells = {job.cell.id: job.cell for job in missing}
    problems = {name: _problems(study.plan_of(cell), cell.engine) for name, cell in cells.items()}
    for cell in cells.values():
        store.claim(cell, _scenario_text(study, cell))
    simulated, exclusive, found = [], [], []
    total = len(missing)

    def ended(made: Made) -> None:
        found.append(made)
        watcher.ended(cells[made.cell], made, len(found), total)

    for job in missing:
        store.discard(job.cell, job.repetition)
        plan = repetition(study.plan_of(job.cell), job.repetition)
        fatal, mild = problems[job.cell.id]
        task = Task(job.cell.id, job.cell.engine, plan, job.repetition, tuple(mild))
        if fatal:
            # A cell this machine cannot run stays in the results, with the reason.
            ended(refuse(task, store.run_dir(job.cell, job.repetition), "; ".join(fatal)))
        elif engines.load(job.cell.engine).exclusive:
            exclusive.append(task)
        else:
            simulated.append(task)

    def run_dir(task: Task) -> Path:
        return store.run_dir(cells[task.cell], task.repetition)

    for made in (executor or LocalPool(run_dir, jobs or usable_cores())).make(simulated, stop):
        ended(made)
    with ExitStack() as shared:
        for name in {task.engine for task in exclusive}:
            plans = [task.plan for task in exclusive if task.engine == name]
            shared.enter_context(engines.load(name).preparing(plans))
        if exclusive_jobs > 1:
            for made in LocalPool(run_dir, exclusive_jobs).make(exclusive, stop):
                ended(made)
            return found
        for index, task in enumerate(exclusive):
            if index and study.file.gap and stop.wait(study.file.gap / 1e9):
                break
            for made in LocalPool(run_dir, 1).make([task], stop):
                ended(made)
    return found


def _problems(plan: Plan, name: str) -> tuple[list[str], list[str]]:
    """Problems that keep an engine from running a plan, and notes for the manifest."""
    from tcplab import engine as engines
    from tcplab.scenario import warnings

    problems = engines.load(name).check(plan)
    fatal = [
        f"{problem.where}: {problem.message}" + (f" ({problem.fix})" if problem.fix else "")
        for problem in problems
        if problem.fatal
    ]
    mild = [f"{problem.where}: {problem.message}" for problem in problems if not problem.fatal]
    return fatal, [*(str(warning) for warning in warnings(plan)), *mild]


def _scenario_text(study: Study, cell: Cell) -> str:
    said = "\n".join(f"#   {text}" for text in [*cell.sets, *study.sets]) or "#   nothing"
    return f"# The scenario of the study {study.name} ({study.source}), where this cell sets\n{said}\n"


def collect(study: Study, store: Store, cells: Sequence[Cell]) -> list[Done]:
    """The runs of these cells that are there."""
    found = []
    for cell in cells:
        for number in range(1, study.repeat + 1):
            if (store.run_dir(cell, number)).is_dir():
                try:
                    found.append(store.read(cell, number))
                except ResultsError as problem:
                    found.append(Done(cell.id, number, "failed", str(problem), None, None, ()))
    return found
