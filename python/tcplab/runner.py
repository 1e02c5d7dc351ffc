"""From a scenario to a result directory: checks, repetitions in parallel, interruption.

The command line, the Python API and whatever else runs scenarios do it through here.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from operator import index
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tcplab.attempts import best_of
from tcplab.engine.base import ATTEMPTS, Engine, Outcome, Problem, Progress, Status
from tcplab.process import ending_signals

if TYPE_CHECKING:
    from tcplab.plan.types import Plan
    from tcplab.scenario import Scenario

_LOG = logging.getLogger(__name__)

RUNS = Path("runs")
# How often the main thread looks for Ctrl-C and the workers are notified of it, seconds.
_TICK = 0.05
_T = TypeVar("_T")


class UnsupportedError(Exception):
    """The engine, on this machine, cannot run the plan."""

    def __init__(self, scenario: str, engine: str, problems: Sequence[Problem]) -> None:
        # Problems that several links or flows share are said once.
        messages = dict.fromkeys(problem.message for problem in problems)
        super().__init__(f"{scenario}: the engine {engine} cannot run it: " + "; ".join(messages))
        self.scenario = scenario
        self.engine = engine
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[str, str, tuple[Problem, ...]]]:
        """Let it leave the process: pickle would make it from its message alone."""
        return type(self), (self.scenario, self.engine, self.problems)


@dataclass(frozen=True)
class Prepared:
    """A scenario that has been checked and can run."""

    source: str
    """The scenario file as given, or the scenario's name."""
    text: str
    """The scenario as given."""
    plan: Plan
    engine: Engine
    repeat: int
    warnings: tuple[str, ...]

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.plan["name"])


@dataclass(frozen=True)
class Repetition:
    """One execution of one plan with one seed."""

    name: str
    number: int
    of: int
    seed: int
    result_dir: Path

    @property
    def title(self) -> str:
        """As progress names it."""
        return f"{self.name}, run {self.number} of {self.of}" if self.of > 1 else self.name


class Watcher(Protocol):
    """Is notified how runs go on, from the threads that run them."""

    def started(self, run: Repetition) -> None:
        """A repetition begins."""

    def moved(self, run: Repetition, progress: Progress) -> None:
        """A repetition has come further."""

    def ended(self, run: Repetition, outcome: Outcome, wall: float) -> None:
        """A repetition is over after `wall` seconds."""

    def note(self, text: str) -> None:
        """Something to be known at once."""


@dataclass(frozen=True)
class Finished:
    """The outcome of one prepared scenario."""

    prepared: Prepared
    path: Path
    outcomes: tuple[Outcome, ...]
    """One per repetition that was started."""

    @property
    def status(self) -> Status:
        """DONE when every repetition is; else the worst of them."""
        found = {outcome.status for outcome in self.outcomes}
        if Status.FAILED in found:
            return Status.FAILED
        done = found == {Status.DONE} and len(self.outcomes) == self.prepared.repeat
        return Status.DONE if done else Status.INTERRUPTED

    @property
    def message(self) -> str:
        """Why it failed; empty when it did not."""
        return next((outcome.message for outcome in self.outcomes if outcome.message), "")


def prepare(
    scenario: Scenario,
    *,
    source: str,
    engine: Engine,
    repeat: int | None = None,
    seed: int | None = None,
    text: str | None = None,
) -> Prepared:
    """Expand a scenario and ask the engine whether it can run it.

    `source` is what messages call it, `text` what its result directory keeps of it. Raises ScenarioErrors
    and `UnsupportedError`.
    """
    from tcplab.estimate import estimate, many_rows
    from tcplab.scenario import ScenarioErrors, expand, warnings
    from tcplab.testbed.known_controls import Controls

    plan = expand(scenario.checked(Controls()))
    if seed is not None:
        plan = {**plan, "seed": seed}
    if repeat is not None:
        plan = {**plan, "repeat": repeat}
    if plan["seed"] + plan["repeat"] > 2**64:
        message = f"{plan['repeat']} repetitions from seed {plan['seed']} need seeds beyond 2^64 - 1"
        raise ScenarioErrors.of_file(source, message)
    problems = problems_of(scenario, engine, plan)
    fatal = [problem for problem in problems if problem.fatal]
    if fatal:
        raise UnsupportedError(source, engine.name, fatal)
    mild = [f"{problem.where}: {problem.message}" for problem in problems]
    said = [*warnings(plan), *many_rows(estimate(plan))]
    return Prepared(source, text if text is not None else "", plan, engine, plan["repeat"], (*said, *mild))


def required(**numbers: int | None) -> list[int | None]:
    """The numbers, as Python's own; raises ValueError for a count below 1, or a `seed` beyond 64 bits."""
    for name, number in numbers.items():
        if number is None:
            continue
        numbers[name] = index(number)
        if name == "seed" and not 0 <= number < 2**64:
            raise ValueError(f"seed={number}: a seed is from 0 to 2^64 - 1")
        if name != "seed" and number < 1:
            raise ValueError(f"{name}={number}: it is at least 1")
    return list(numbers.values())


def problems_of(scenario: Scenario, engine: Engine, plan: Plan) -> list[Problem]:
    """Problems of the engine with the scenario's plan, each with its place in the text."""
    return [replace(one, at=scenario.located(one.where, one.message)) for one in engine.check(plan)]


def refusals(
    batch: Sequence[Prepared], results: Path, *, jobs: int | None = None, yes: bool = False
) -> list[Problem]:
    """The resources that this machine lacks to run all of `batch` into `results`; not fatal after `yes`."""
    from tcplab.estimate import beyond, estimate

    return beyond(
        ((estimate(one.plan), one.repeat) for one in batch), _at_once(batch, jobs), results, yes=yes
    )


def output_of(output: str | os.PathLike[str] | None, out: str | os.PathLike[str] | None) -> Path | None:
    """The directory that is given for results, by `output` or by its old name `out`, which warns."""
    if out is not None:
        if output is not None:
            raise TypeError("`out` is the old name of `output`: give one of them")
        warnings.warn("`out` is deprecated, use `output`", DeprecationWarning, stacklevel=3)
        output = out
    if output is None:
        return None
    if not os.fspath(output):
        raise ValueError("output='': the path is empty")
    return Path(output)


def place(name: str, out: Path | None, *, several: bool = False, runs: Path = RUNS) -> Path:
    """Where results go: `out` itself, a place in it for each of several scenarios, or a new one in `runs`."""
    if out is not None and not several:
        return out
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return _unused(out / name if out is not None else runs / f"{name}-{stamp}")


def claim(prepared: Prepared, out: Path | None, *, several: bool = False, runs: Path = RUNS) -> Path:
    """Make the result directory, at a `place`.

    Raises ResultsError when it cannot be written, or the one that was asked for holds results already.
    """
    from tcplab.cc.plans import keep
    from tcplab.results import create_result_dir
    from tcplab.results.writer import TakenError

    while True:
        path = place(prepared.name, out, several=several, runs=runs)
        try:
            create_result_dir(path, prepared.text)
        except TakenError:
            if path == out:
                raise
            # Another process was faster.
            continue
        keep(prepared.plan, path)
        return path


def reserve(path: Path, *, chosen: bool) -> Path:
    """Make the directory `path`; unless it was chosen, one beside it where another process has made it.

    Raises ResultsError.
    """
    from tcplab.results import ResultsError

    while True:
        free = path if chosen else _unused(path)
        try:
            free.mkdir(parents=True, exist_ok=chosen)
        except OSError as problem:
            if isinstance(problem, FileExistsError) and not chosen:
                continue
            raise ResultsError.from_os(free, problem) from problem
        return free


def execute(
    batch: Sequence[tuple[Prepared, Path]],
    *,
    watcher: Watcher,
    jobs: int | None = None,
    attempts: int = ATTEMPTS,
    meanwhile: Callable[[], object] | None = None,
) -> list[Finished]:
    """Run every repetition of every scenario into its directory, which `claim` has made.

    A run that is overloaded is made again, `attempts` times at most (`tcplab.attempts`). `meanwhile` is
    called once they run, unless it could disturb them: for an engine whose time is not the clock's. A second
    Ctrl-C waits for its end: an import that an exception ends may end with another one, as numpy's does.

    On Ctrl-C the running repetitions stop, write what they have and are marked interrupted, and the others
    are not started; a second Ctrl-C raises KeyboardInterrupt at once. Raises ResultsError when results
    cannot be written, and whatever an engine raises; the directories then say that they are incomplete.
    """
    tasks = [
        (prepared, Repetition(prepared.name, k + 1, prepared.repeat, prepared.plan["seed"] + k, path))
        for prepared, path in batch
        for k in range(prepared.repeat)
    ]
    stop = threading.Event()
    at_once = _at_once([prepared for prepared, _ in batch], jobs)
    shared = ExitStack()
    for engine in {id(prepared.engine): prepared.engine for prepared, _ in batch}.values():
        shared.enter_context(engine.preparing([one.plan for one, _ in tasks if one.engine is engine]))
    pool = ThreadPoolExecutor(min(at_once, len(tasks)), thread_name_prefix="run")
    futures: dict[Future[Outcome | None], Path] = {}
    try:
        with shared, stopping_on_signals(stop):
            for prepared, run in tasks:
                futures[pool.submit(_repeat, prepared, run, watcher, stop, attempts)] = run.result_dir
            if meanwhile is not None and not any(prepared.engine.exclusive for prepared, _ in batch):
                with _MAIN_THREAD.undisturbed():
                    meanwhile()
            pending = set(futures)
            while pending:
                ended, pending = waited(pending, _TICK)
                if any(future.exception() for future in ended):
                    stop.set()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
    outcomes: dict[Path, list[Outcome]] = {path: [] for _, path in batch}
    for future, path in futures.items():
        outcome = future.result()
        if outcome is not None:
            outcomes[path].append(outcome)
    return [Finished(prepared, path, tuple(outcomes[path])) for prepared, path in batch]


def _at_once(batch: Sequence[Prepared], jobs: int | None) -> int:
    """How many runs go at a time."""
    return jobs or (1 if any(prepared.engine.exclusive for prepared in batch) else usable_cores())


def usable_cores() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _repeat(
    prepared: Prepared, run: Repetition, watcher: Watcher, stop: threading.Event, attempts: int
) -> Outcome | None:
    """One repetition; none if it was not to start any more."""
    if stop.is_set():
        return None
    from tcplab.results import run_dir_of
    from tcplab.scenario import repetition

    watcher.started(run)

    def moved(progress: Progress) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        watcher.moved(run, progress)

    outcome, wall = run_once(
        repetition(prepared.plan, run.number),
        prepared.engine,
        run_dir_of(run.result_dir, run.number),
        repetition=run.number,
        warnings=prepared.warnings,
        progress=moved,
        attempts=attempts,
        note=lambda text: watcher.note(f"{run.title}: {text}"),
    )
    watcher.ended(run, outcome, wall)
    return outcome


def run_once(
    plan: Plan,
    engine: Engine,
    run_dir: Path,
    *,
    repetition: int,
    warnings: Sequence[str],
    progress: Callable[[Progress], None],
    attempts: int = ATTEMPTS,
    note: Callable[[str], None] | None = None,
) -> tuple[Outcome, float]:
    """Execute a plan with its seed and phases (`tcplab.scenario.repetition`) into a run directory.

    Returns the outcome, and how long it took in seconds. An overloaded run is repeated, with `attempts`
    executions at most, and `note` learns of it. A KeyboardInterrupt out of `progress` ends it early. Raises
    ResultsError and whatever the engine raises; the run directory then says so.
    """

    def execute(directory: Path) -> tuple[Outcome, float]:
        return _execute(plan, engine, directory, repetition=repetition, warnings=warnings, progress=progress)

    return best_of(execute, run_dir, attempts, note)


def _execute(
    plan: Plan,
    engine: Engine,
    run_dir: Path,
    *,
    repetition: int,
    warnings: Sequence[str],
    progress: Callable[[Progress], None],
) -> tuple[Outcome, float]:
    from tcplab.results import RunWriter
    from tcplab.scenario import with_phases

    _LOG.info("%s: run %d with seed %d in %s", plan["name"], repetition, plan["seed"], run_dir)
    began = time.monotonic()
    writer = RunWriter(run_dir, engine.executed(plan), engine=engine.name, repetition=repetition)
    try:
        outcome = engine.run(engine.executed(with_phases(plan)), run_dir, progress)
    except KeyboardInterrupt:
        outcome = Outcome(Status.INTERRUPTED)
    except BaseException as problem:
        # The mark is the point: if even that cannot be written, the one from the start stands.
        with suppress(Exception):
            writer.finish(Status.FAILED.value, message=str(problem), wall_duration=time.monotonic() - began)
        raise
    wall = time.monotonic() - began
    _LOG.info("%s: %s after %.2f s", run_dir, outcome.status.value, wall)
    writer.finish(
        outcome.status.value,
        message=outcome.message,
        wall_duration=wall,
        warnings=[*warnings, *outcome.warnings],
        facts=outcome.facts,
    )
    return outcome, wall


@dataclass
class _MainThread:
    """Whether no exception may come now, and whether KeyboardInterrupt is to be raised afterwards."""

    is_busy: bool = False
    is_due: bool = False

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let the KeyboardInterrupt of `stopping_on_signals` come at the end."""
        self.is_busy = True
        try:
            yield
        finally:
            self.is_busy = False
        self.interrupt()

    def interrupt(self) -> None:
        if self.is_due:
            self.is_due = False
            raise KeyboardInterrupt


_MAIN_THREAD = _MainThread()


def waited(futures: Iterable[Future[_T]], timeout: float) -> tuple[set[Future[_T]], set[Future[_T]]]:
    """Wait for the first of some futures; those that are done, and the others.

    An exception out of a signal handler can find the standard library between two steps with a lock: it then
    ends with "release unlocked lock".
    """
    if threading.current_thread() is not threading.main_thread():
        return wait(futures, timeout=timeout, return_when=FIRST_COMPLETED)
    with _MAIN_THREAD.undisturbed():
        return wait(futures, timeout=timeout, return_when=FIRST_COMPLETED)


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP set `stop`, and a SIGINT after another signal raise KeyboardInterrupt.

    The others come twice though nobody is impatient: timeout(1) signals its child and the process group, and
    of a closed terminal both shell and kernel do. A SIGHUP that nohup(1) has ignored stays ignored. Python
    delivers signals to the main thread only; elsewhere (a server's worker) nothing is changed.
    """
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 1:
            stop.set()
        elif number != signal.SIGINT:
            return
        elif _MAIN_THREAD.is_busy or not stop.is_set():
            # Not set: this is within the first signal's handler, which holds the event's lock.
            _MAIN_THREAD.is_due = True
        else:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Callable[[int, FrameType | None], Any] | int | None] = {
        number: signal.signal(number, handle) for number in (signal.SIGINT, *ending_signals())
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _MAIN_THREAD.interrupt()


def _unused(path: Path) -> Path:
    candidate, number = path, 2
    while candidate.exists():
        candidate = path.with_name(f"{path.name}-{number}")
        number += 1
    return candidate
