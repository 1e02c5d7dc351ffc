"""Runs that pages have asked for: simulations while someone edits, and runs that are kept."""

from __future__ import annotations

import itertools
import secrets
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tcplab.plan.types import Plan
from tcplab.server import library
from tcplab.server.live import Hub

# While someone edits: simulations kept for the page to zoom into, and how long one may take.
_PREVIEWS_KEPT = 8
_PREVIEW_SECONDS = 5.0
# Above so many packets, a simulation is made when asked for, not at every key press.
PREVIEW_PACKETS = 3_000_000
# A simulation that takes less has no progress to show, seconds.
_MOMENT = 0.3
# Seconds between two messages about a run's progress: 10 a second.
_PERIOD = 0.1
# A finished run is announced to pages that open within this many later ones.
_REMEMBERED = 50


class SupersededError(Exception):
    """A newer simulation of the same page has taken this one's place."""


class PreviewError(Exception):
    """A simulation while editing that was not made or not finished, and why."""


@dataclass
class Preview:
    """A simulation made while editing."""

    id: str
    run_dir: Path
    plan: Plan
    wall: float


class Previews:
    """Simulations while editing: one at a time for a page, the newest kept."""

    def __init__(self) -> None:
        memory = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
        self._folder = tempfile.TemporaryDirectory(
            prefix="tcplab-ui-", dir=memory if memory.is_dir() else None
        )
        self.place = Path(self._folder.name)
        self._kept: OrderedDict[str, Preview] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()
        self._counter = itertools.count(1)
        # Pages outlive the server: the names that they know must not be those of simulations of the next one.
        self._server = secrets.token_hex(4)

    def __getitem__(self, name: str) -> Preview:
        with self._lock:
            return self._kept[name]

    def make(
        self, page: str, prepared: library.Prepared, order: int, notify: Callable[[float], None]
    ) -> Preview:
        """Simulate; called in a thread. The page's call of a higher `order` ends it with SupersededError.

        `notify` learns of the share that is done, when it takes longer than a moment.

        The order is the page's own: requests may overtake each other on their way. Raises PreviewError when
        it takes too long or fails.
        """
        with self._lock:
            if self._newest.get(page, order) > order:
                raise SupersededError
            number = next(self._counter)
            if len(self._newest) > 256:
                self._newest.clear()
            self._newest[page] = order
        began = time.monotonic()
        reported = began + _MOMENT
        path = self.place / str(number)

        def progress(now: library.Progress) -> None:
            nonlocal reported
            clock = time.monotonic()
            if self._newest.get(page) != order or clock - began > _PREVIEW_SECONDS:
                raise KeyboardInterrupt
            if clock - reported >= _PERIOD:
                reported = clock
                notify(now.time / now.duration)

        try:
            path.mkdir()
            outcome = library.simulate(prepared, path, progress)
            if self._newest.get(page) != order:
                raise SupersededError
            if outcome.status is library.Status.INTERRUPTED:
                raise PreviewError(f"the simulation takes longer than {_PREVIEW_SECONDS:g} s: press Run")
            if outcome.status is library.Status.FAILED:
                raise PreviewError(outcome.message)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        made = Preview(f"preview-{self._server}-{number}", path, prepared.plan, time.monotonic() - began)
        with self._lock:
            self._kept[made.id] = made
            old = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - _PREVIEWS_KEPT)]
        for one in old:
            shutil.rmtree(one.run_dir, ignore_errors=True)
        return made

    def close(self) -> None:
        """Forget them all."""
        self._newest.clear()
        with suppress(OSError):
            self._folder.cleanup()


@dataclass
class Job:
    """A run that is kept, or a study."""

    id: str
    kind: str
    name: str
    engine: str
    path: str
    """Where its results are, as the page knows it."""
    state: str = "waiting"
    """waiting, running, done, interrupted or failed."""
    message: str = ""
    repetition: int = 0
    repeat: int = 0
    """0 while it is not known."""
    reporting: bool = False
    """Whether the runs of a study are over, and its report is being written."""
    time: float = 0.0
    duration: float = 0.0
    goodput: dict[str, float] = field(default_factory=dict)
    cwnd: dict[str, float] = field(default_factory=dict)
    rtt: dict[str, float] = field(default_factory=dict)
    overload: str | None = None
    notes: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def to_json(self) -> dict[str, Any]:
        """For pages."""
        return {"type": "job", **{key: value for key, value in vars(self).items() if key != "stop"}}


class Jobs:
    """Runs that are kept; those on a real kernel go one at a time."""

    def __init__(self, hub: Hub, name_of: Callable[[Path], str]) -> None:
        self._hub = hub
        self._name_of = name_of
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._threads: list[threading.Thread] = []
        self._counter = itertools.count(1)
        self._machine = threading.Lock()

    def to_json(self) -> list[dict[str, Any]]:
        """Every run remembered, oldest first."""
        return [job.to_json() for job in self._jobs.values()]

    def start(self, prepared: library.Prepared, path: Path) -> Job:
        """Begin a run into `path`, which has been claimed."""
        job = self._new("run", prepared.name, prepared.engine.name, path)
        job.repeat, job.duration = prepared.repeat, prepared.plan["duration"] / 1e9
        self._begin(job, lambda: self._run(job, prepared, path))
        return job

    def knows(self, path: Path) -> bool:
        """Whether something wrote to `path`, or was about to."""
        return self._name_of(path) in {job.path for job in list(self._jobs.values())}

    def begin(self, kind: str, name: str, path: Path, work: Callable[[Job], None]) -> Job:
        """Begin something else that takes long; `work` sets the job's state at its end."""
        job = self._new(kind, name, "", path)
        self._begin(job, lambda: work(job))
        return job

    def stop(self, name: str) -> Job:
        """Ask a run to stop; raises KeyError when there is none of this name."""
        job = self._jobs[name]
        job.stop.set()
        return job

    def busy(self, path: Path) -> bool:
        """Whether something that goes on writes to `path`."""
        return self._name_of(path) in self.going()

    def going(self) -> set[str]:
        """The paths, as the page knows them, that something that goes on writes to."""
        return {job.path for job in list(self._jobs.values()) if job.state in ("waiting", "running")}

    def changed(self, job: Job) -> None:
        """Notify every page of a run's state."""
        self._hub.broadcast(job.to_json())

    def close(self) -> None:
        """Stop what runs, and wait until it has written what it has."""
        for job in self._jobs.values():
            job.stop.set()
        for thread in self._threads:
            thread.join(30)

    def _new(self, kind: str, name: str, engine: str, path: Path) -> Job:
        job = Job(f"{kind}-{next(self._counter)}", kind, name, engine, self._name_of(path))
        self._jobs[job.id] = job
        over = [old for old in self._jobs.values() if old.state in ("done", "interrupted", "failed")]
        for old in over[: max(0, len(self._jobs) - _REMEMBERED)]:
            del self._jobs[old.id]
        return job

    def _begin(self, job: Job, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as problem:  # noqa: BLE001, RUF100 - shown on the page, whatever it is
                job.state, job.message = "failed", str(problem) or type(problem).__name__
            self.changed(job)

        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=guarded, name=job.id, daemon=True)
        self._threads.append(thread)
        self.changed(job)
        thread.start()

    def _run(self, job: Job, prepared: library.Prepared, path: Path) -> None:
        if prepared.engine.exclusive:
            while not self._machine.acquire(timeout=_PERIOD):
                if job.stop.is_set():
                    job.state = "interrupted"
                    return
        try:
            self._repetitions(job, prepared, path)
        finally:
            if prepared.engine.exclusive:
                self._machine.release()

    def _repetitions(self, job: Job, prepared: library.Prepared, path: Path) -> None:
        reported = 0.0

        def progress(now: library.Progress) -> None:
            nonlocal reported
            if job.stop.is_set():
                raise KeyboardInterrupt
            if time.monotonic() - reported < _PERIOD:
                return
            reported = time.monotonic()
            job.time, job.duration = now.time / 1e9, now.duration / 1e9
            job.goodput, job.cwnd = _of_going(prepared.plan, now.goodput, now.time), now.cwnd
            job.rtt = {flow: srtt / 1e9 for flow, srtt in now.srtt.items()}
            self.changed(job)

        def note(text: str) -> None:
            job.notes.append(text)
            self.changed(job)

        job.state = "running"
        for number in range(1, prepared.repeat + 1):
            job.repetition, job.time = number, 0.0
            self.changed(job)
            outcome = library.execute(prepared, number, path, progress, note, attempts=3)
            job.overload = outcome.facts.get("overload") or job.overload
            if outcome.status is not library.Status.DONE:
                job.state, job.message = outcome.status.value, outcome.message
                return
        job.state = "done"


def _of_going(plan: Plan, figures: Mapping[str, float], time: int) -> dict[str, float]:
    """Those of flows that have started and not stopped: the others have no goodput, not one of 0."""
    return {
        flow["name"]: figures[flow["name"]]
        for flow in plan["flows"]
        if flow["name"] in figures and flow["start"] <= time <= (flow["stop"] or plan["duration"])
    }
