"""Runs of a study in processes of this machine: one at a time on real systems, all cores for simulations."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from tcplab.process import settle
from tcplab.runner import waited
from tcplab.study.task import Made, Task, make, refuse

_TICK = 0.1
# How long a process whose pipe has closed may take to be gone, seconds.
_PATIENCE = 5


class Executor(Protocol):
    """Makes runs somewhere."""

    def make(self, tasks: Sequence[Task], stop: threading.Event) -> Iterator[Made]:
        """Make the runs, in about this order, and give each when it is over.

        When `stop` is set, what has not begun is left out and what runs is abandoned.
        """


class LocalPool:
    """Worker processes on this machine. One that dies costs its run, not the study."""

    def __init__(self, run_dir: Callable[[Task], Path], jobs: int) -> None:
        self._run_dir = run_dir
        self._jobs = jobs

    def make(self, tasks: Sequence[Task], stop: threading.Event) -> Iterator[Made]:
        """See `Executor.make`."""
        left = list(tasks)
        while left and not stop.is_set():
            unsure = yield from self._together(left, stop)
            # Of the runs that were going on when a process died, only running them apart tells which it was.
            for task in unsure:
                if not stop.is_set():
                    yield from self._apart(task, stop)

    def _together(self, left: list[Task], stop: threading.Event) -> Generator[Made, None, list[Task]]:
        """Take tasks off `left` and make them; returns those that were under way when a process died."""
        pool = _pool(min(self._jobs, len(left)))
        under_way: dict[Future[Made], Task] = {}
        try:
            while (left or under_way) and not stop.is_set():
                # One more than there are workers keeps them busy, and the order under control.
                while left and len(under_way) < self._jobs + 1:
                    # Taken off only when submitted: a pool whose process just died refuses it.
                    under_way[pool.submit(_make, left[0], self._run_dir(left[0]))] = left[0]
                    left.pop(0)
                ended, _ = waited(under_way, _TICK)
                for future in ended:
                    made = future.result()
                    del under_way[future]
                    yield made
        except BrokenProcessPool:
            return list(under_way.values())
        finally:
            _end(pool, at_once=stop.is_set())
        return []

    def _apart(self, task: Task, stop: threading.Event) -> Iterator[Made]:
        run_dir = self._run_dir(task)
        shutil.rmtree(run_dir, ignore_errors=True)
        pool = _pool(1)
        processes: list[BaseProcess] = []
        try:
            future = pool.submit(_make, task, run_dir)
            processes += pool._processes.values()
            while not stop.is_set():
                ended, _ = waited([future], _TICK)
                if ended:
                    yield future.result()
                    return
        except BrokenProcessPool:
            shutil.rmtree(run_dir, ignore_errors=True)
            yield refuse(task, run_dir, _death(processes))
        finally:
            _end(pool, at_once=stop.is_set())


class _Worker(SpawnProcess):
    """Without the user's script, which would run again in each worker: it need not test `__name__`.

    It begins with SIGINT blocked: Ctrl-C reaches the whole process group, and would end a Python that has not
    come to ignore it with a traceback.
    """

    def start(self) -> None:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        # The tracker unblocks SIGINT when it starts. The mask is inherited.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            sys.modules["__main__"] = script


class _Context(SpawnContext):
    """Not fork: this process has threads (progress, polars) that a copy would lack."""

    Process = _Worker


def _pool(workers: int) -> ProcessPoolExecutor:
    # Each worker is a core already; polars reads this when it is first imported.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    return ProcessPoolExecutor(workers, mp_context=_Context(), initializer=_begin, initargs=(os.getpid(),))


def _death(processes: Sequence[BaseProcess]) -> str:
    """How the process that made a run ended, in words."""
    deadline = time.monotonic() + _PATIENCE
    codes: list[int] = []
    # The pool waits for its processes, too; who comes second learns the code only from the first.
    while not codes and time.monotonic() < deadline:
        for process in processes:
            process.join(_TICK)
        codes = [process.exitcode for process in processes if process.exitcode is not None]
    code = next(iter(codes), None)
    if code is None:
        return "the process that made this run ended, its exit status is unknown"
    if code >= 0:
        return f"the process that made this run exited with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    # The signal of the kernel's out-of-memory killer; only its log distinguishes it from another sender's.
    hint = " (was it the out-of-memory killer? `dmesg` says)" if -code == signal.SIGKILL else ""
    return f"the process that made this run was killed by {name}{hint}"


def _end(pool: ProcessPoolExecutor, *, at_once: bool) -> None:
    processes = list((pool._processes or {}).values())
    if at_once:
        for process in processes:
            process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)


def _begin(parent: int) -> None:
    # Ctrl-C reaches the whole process group; what it means is for the parent to decide.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    settle()
    threading.Thread(target=_end_with, args=(parent,), daemon=True, name="parent").start()


def _end_with(parent: int) -> None:
    """End this process when the study's is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _make(task: Task, run_dir: Path) -> Made:
    return make(task, run_dir)
