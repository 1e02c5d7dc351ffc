"""Simulations on a Dask cluster: a scheduler's address, or a cluster object of dask-jobqueue and others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tcplab.results.writer import run_dir_of
from tcplab.study.store import CELLS, Store
from tcplab.study.task import Made, Task, fetch, make_away, place, refuse

if TYPE_CHECKING:
    from distributed import Client, Future

# How long a scheduler may take to answer, seconds.
_PATIENCE = 10
_TICK = 0.2
# How often workers that came or left are counted, seconds: it asks the scheduler.
_RECOUNT = 1.0
# Enough that no worker waits for the next, few enough that an interrupted study loses little.
_AHEAD = 4


class ClusterError(Exception):
    """The cluster cannot be used."""


class DaskCluster:
    """Makes simulations on a cluster's workers; see `tcplab.study.pool.Executor`."""

    def __init__(self, cluster: Any, store: Store, *, storage: str | None = None) -> None:
        """Connect to a scheduler (`tcp://host:8786`) or a cluster object; raises ClusterError.

        Results come back to the study's directory, or with `storage` (an fsspec path that all workers and
        this machine reach) go there, and are fetched when the study is over.
        """
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError("Dask is not installed: pip install 'tcplab[dask]'") from None
        try:
            self._client: Client = Client(cluster, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as problem:
            raise ClusterError(f"no scheduler answers at {cluster}: {problem}") from None
        if not self._client.scheduler_info()["workers"]:
            self._client.close()
            raise ClusterError(f"the cluster at {cluster} has no workers: start some (dask worker {cluster})")
        self._store = store
        self._storage = storage

    def make(self, tasks: Sequence[Task], stop: threading.Event) -> Iterator[Made]:
        """Make the runs on the workers; one whose worker dies is made again elsewhere."""
        from distributed import wait

        left = deque(tasks)
        workers, counted = 0, -_RECOUNT
        under_way: dict[Future[tuple[Made, dict[str, bytes]]], Task] = {}
        try:
            while (left or under_way) and not stop.is_set():
                if time.monotonic() - counted >= _RECOUNT:
                    workers = max(1, len(self._client.scheduler_info()["workers"]))
                    counted = time.monotonic()
                while left and len(under_way) < _AHEAD * workers:
                    task = left.popleft()
                    under_way[self._client.submit(make_away, task, self._storage, pure=False)] = task
                try:
                    with self._client.as_current():
                        ended = wait(list(under_way), timeout=_TICK, return_when="FIRST_COMPLETED").done
                except TimeoutError:
                    continue
                for future in ended:
                    yield self._taken(under_way.pop(future), future)
        finally:
            self._client.cancel(list(under_way))
            self._client.close()

    def _taken(self, task: Task, future: Future[tuple[Made, dict[str, bytes]]]) -> Made:
        from distributed.scheduler import KilledWorker

        try:
            made, files = future.result()
        except KilledWorker:
            return self._refused(task, "every worker that made this run died; the scheduler's log says more")
        except Exception as problem:
            return self._refused(task, f"the worker could not make this run: {problem}")
        self._take(task, files)
        return made

    def _take(self, task: Task, files: dict[str, bytes]) -> None:
        run_dir = run_dir_of(self._store.path / CELLS / task.cell, task.repetition)
        if self._storage is None:
            place(files, run_dir)
        else:
            fetch(f"{self._storage.rstrip('/')}/{task.cell}/{run_dir.name}", run_dir)

    def _refused(self, task: Task, message: str) -> Made:
        return refuse(task, run_dir_of(self._store.path / CELLS / task.cell, task.repetition), message)
