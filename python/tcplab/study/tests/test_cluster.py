"""Studies on a real Dask scheduler with workers in processes of their own, all on loopback."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed (pip install 'tcplab[dask]')")

from tcplab.study.cluster import ClusterError, DaskCluster
from tcplab.study.execute import Outcome, execute
from tcplab.study.load import Study, load
from tcplab.study.store import Store
from tcplab.study.tests.test_execute import STUDY, Quiet, results, written

# A minute of simulated time a run: long enough to kill a worker in the middle of one.
LONG = STUDY.replace("duration: 3 s", "duration: 60 s").replace("rate: 10 Mbit/s", "rate: 50 Mbit/s")


@contextmanager
def program(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A Dask program, until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)
        assert process.stderr is not None
        process.stderr.close()


def said(process: subprocess.Popen[str], pattern: str) -> str:
    """The first line of a program's output that matches; its other lines go on being read."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found.group(1)
    raise AssertionError(f"the program ended without saying {pattern}")


def worker(address: str) -> tuple[str, ...]:
    # Without a nanny the process is the worker itself, so that killing it kills the worker.
    return ("dask_worker", address, "--no-nanny", "--nthreads", "1")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with program("dask_scheduler", "--host", "127.0.0.1", "--port", "0") as process:
        yield said(process, r"Scheduler at:\s+(tcp://\S+)")


def on_cluster(study: Study, path: Path, address: str, storage: str | None = None) -> Outcome:
    store = Store(path)
    store.create(study)
    return execute(study, store, watcher=Quiet(), executor=DaskCluster(address, store, storage=storage))


def test_two_workers_give_the_results_of_one_machine(scheduler: str, tmp_path: Path) -> None:
    study = load(written(tmp_path))
    store = Store(tmp_path / "here")
    store.create(study)
    execute(study, store, watcher=Quiet(), jobs=1)
    with program(*worker(scheduler)) as one, program(*worker(scheduler)) as two:
        for process in (one, two):
            said(process, r"(Registered to)")
        on_cluster(study, tmp_path / "back", scheduler)
        on_cluster(study, tmp_path / "stored", scheduler, f"file://{tmp_path}/storage")
    assert results(tmp_path / "back").equals(results(tmp_path / "here"))
    assert results(tmp_path / "stored").equals(results(tmp_path / "here"))
    assert len(list((tmp_path / "storage").glob("*/run-*/manifest.json"))) == 8


def test_a_cluster_object_will_do(tmp_path: Path) -> None:
    from distributed import LocalCluster

    study = load(written(tmp_path))
    store = Store(tmp_path / "out")
    store.create(study)
    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        outcome = execute(study, store, watcher=Quiet(), executor=DaskCluster(cluster, store))
    assert [one.status for one in outcome.done] == ["done"] * 8


def test_a_worker_killed_in_the_middle_loses_nothing(scheduler: str, tmp_path: Path) -> None:
    study = load(written(tmp_path, LONG))
    with program(*worker(scheduler)) as one, program(*worker(scheduler)) as two:
        for process in (one, two):
            said(process, r"(Registered to)")

        def kill() -> None:
            while not list((tmp_path / "out").glob("cells/*/run-*/manifest.json")):
                time.sleep(0.02)
            one.kill()

        thread = threading.Thread(target=kill)
        thread.start()
        outcome = on_cluster(study, tmp_path / "out", scheduler)
        thread.join()
        assert one.wait(10) != 0
        assert two.poll() is None
    assert [one.status for one in outcome.done] == ["done"] * 8


def test_a_cluster_without_workers_is_rejected_with_a_message(scheduler: str, tmp_path: Path) -> None:
    # Those of the other tests take a moment to be missed.
    while _workers(scheduler):
        time.sleep(0.2)
    with pytest.raises(ClusterError, match="has no workers"):
        DaskCluster(scheduler, Store(tmp_path))


def _workers(address: str) -> int:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return len(client.scheduler_info()["workers"])


def test_an_address_where_nobody_answers_is_rejected_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no scheduler answers"):
        DaskCluster("tcp://127.0.0.1:9", Store(tmp_path))
