"""Studies as a person runs them: whole, cut short, resumed, changed, with a cell that cannot be run."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from tcplab.results.errors import ResultsError
from tcplab.results.manifest import read_manifest
from tcplab.scenario import ScenarioErrors
from tcplab.study import api, pool
from tcplab.study.execute import Outcome, estimate, execute, reopened, work
from tcplab.study.grid import Cell
from tcplab.study.load import Asked, Study, load
from tcplab.study.pool import LocalPool
from tcplab.study.shipped import find
from tcplab.study.store import Store
from tcplab.study.task import Made, Task

STUDY = """
tcplab: 1
study: small
scenario:
  tcplab: 1
  name: base
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms, loss: 0.5 %}}
  flows: [{name: bulk, kind: tcp}]
  duration: 3 s
grid:
  flows.bulk.cc: [reno, cubic]
  rtt: {set: network.path.rtt, values: [10 ms, 40 ms]}
repeat: 2
baseline: {cc: cubic}
"""


class Quiet:
    def __init__(self) -> None:
        self.made: list[Made] = []

    def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
        self.made.append(made)


def written(directory: Path, text: str = STUDY) -> Path:
    path = directory / "study.yaml"
    path.write_text(text)
    return path


def run(study: Study, path: Path) -> tuple[Outcome, Quiet]:
    store = Store(path)
    store.create(study)
    watcher = Quiet()
    return execute(study, store, watcher=watcher, jobs=2), watcher


def results(path: Path) -> pl.DataFrame:
    return Store(path).results().drop("wall")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small study, run without interruption."""
    directory = tmp_path_factory.mktemp("whole")
    run(load(written(directory)), directory / "out")
    return directory / "out"


def test_every_cell_has_its_rows(whole: Path) -> None:
    frame = results(whole)
    assert len(frame.filter(pl.col("flow").is_null())) == 8
    assert set(frame["status"]) == {"done"}
    assert frame.filter(pl.col("flow") == "bulk")["goodput"].null_count() == 0
    by_cc = frame.filter(pl.col("flow").is_null()).group_by("cc", "rtt").len()
    assert set(by_cc["len"]) == {2}


def test_the_order_is_random_yet_the_same_for_a_seed_and_each_repetition_is_a_block(tmp_path: Path) -> None:
    study = load(written(tmp_path))
    one = work(study, Store(tmp_path / "a")).missing
    assert one == work(study, Store(tmp_path / "b")).missing
    assert [job.repetition for job in one] == [1] * 4 + [2] * 4
    for block in (one[:4], one[4:]):
        assert sorted(job.cell.id for job in block) == sorted(cell.id for cell in study.cells)
    # Of 100 seeds each gives two of the 24 orders of four cells: all orders come, and the two of a seed are
    # alike for one in 24 (4 expected; 13 is more than four standard deviations off).
    orders, alike = set(), 0
    for seed in range(100):
        seeded = replace(study, file=replace(study.file, seed=seed))
        jobs = work(seeded, Store(tmp_path / "c")).missing
        first, second = (tuple(job.cell.id for job in block) for block in (jobs[:4], jobs[4:]))
        orders |= {first, second}
        alike += first == second
    assert len(orders) == 24
    assert alike < 13


def test_an_estimate_ends_with_the_last_echo_not_with_the_time_it_may_take(tmp_path: Path) -> None:
    study = load(find("echo"), Asked(engines=("kernel",), quick=True, repeat=1))
    seconds = estimate(study, work(study, Store(tmp_path)))
    # The round trips that studies/echo/README.md has for these cells, ms, a thousand times; 2.5 s a run.
    trips = 0.21 * 3 + 0.37 * 2 + 0.70 + 0.89 * 2 + 2.79 + 11.18 + 11.29 + 44.83
    assert seconds == pytest.approx(12 * 2.5 + trips, rel=0.02)


def test_a_given_order_is_that_of_the_file(tmp_path: Path) -> None:
    study = load(written(tmp_path, STUDY + "order: given\n"))
    jobs = work(study, Store(tmp_path / "a")).missing
    assert [job.cell for job in jobs] == [*study.cells, *study.cells]


def test_what_is_set_by_hand_outdoes_a_quick_run_and_that_the_axes(tmp_path: Path) -> None:
    text = STUDY + "quick: {set: {duration: 1 s, network.path.rtt: 30 ms}}\n"

    def plan(**asked: Any) -> Any:
        study = load(written(tmp_path, text), Asked(**asked))
        return dict(study.plan_of(study.cells[0]))

    delay = [plan(quick=quick)["links"][0]["forward"]["delay"] for quick in (False, True)]
    assert delay == [5_000_000, 15_000_000]
    assert plan(quick=True)["duration"] == 10**9
    assert plan(quick=True, sets=("duration=2 s",))["duration"] == 2 * 10**9


@pytest.mark.parametrize(
    ("there", "text", "message"),
    [
        ("run-1/manifest.json", "{}", "already holds results"),
        (
            "study.json",
            '{"study": "other", "source": "", "asked": {"engines": [], "sets": []}, "cells": []}',
            "holds the study other",
        ),
        ("study.yaml", "theirs", "already has a file study.yaml"),
        ("report.html", "theirs", "already has a file report.html"),
    ],
)
def test_a_study_leaves_other_results_as_they_are(
    there: str, text: str, message: str, tmp_path: Path
) -> None:
    place = tmp_path / "out" / there
    place.parent.mkdir(parents=True)
    place.write_text(text)
    with pytest.raises(ResultsError, match=message):
        Store(tmp_path / "out").create(load(written(tmp_path)))
    assert [*(tmp_path / "out").rglob("*.*")] == [place]


def test_a_study_is_run_by_one_process_at_a_time(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "out")
    study, store = load(written(tmp_path)), Store(tmp_path / "out")
    with store.alone(), pytest.raises(ResultsError, match="another process is running this study"):
        execute(study, Store(tmp_path / "out"), watcher=Quiet())
    assert execute(study, store, watcher=Quiet()).status == "done"


def test_a_study_that_has_not_ended_has_no_data_set_yet(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    store.create(load(written(tmp_path)))
    with pytest.raises(ResultsError, match="has not ended: --resume goes on"):
        store.results()


def test_resuming_makes_only_what_is_missing(whole: Path, tmp_path: Path) -> None:
    study = load(written(tmp_path))
    done, missing = work(study, Store(whole)).done, work(study, Store(whole)).missing
    assert (len(done), len(missing)) == (8, 0)
    more = load(written(tmp_path), Asked(repeat=3))
    assert [job.repetition for job in work(more, Store(whole)).missing] == [3] * 4


def test_a_changed_scenario_is_noticed(whole: Path, tmp_path: Path) -> None:
    study = load(written(tmp_path, STUDY.replace("20 ms, loss: 0.5 %", "20 ms, loss: 0.6 %")))
    assert len(work(study, Store(whole)).changed) == 8
    study = load(written(tmp_path, STUDY.replace("[10 ms, 40 ms]", "[10 ms, 50 ms]")))
    todo = work(study, Store(whole))
    assert (len(todo.done), len(todo.changed), len(todo.missing)) == (4, 0, 4)


def cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip(path: Path) -> None:
    """Change one character, so that the file still reads."""
    data = bytearray(path.read_bytes())
    place = next(at for at in reversed(range(len(data))) if chr(data[at]) in "12345678")
    data[place] += 1
    path.write_bytes(data)


def overwrite(path: Path, text: str) -> None:
    path.write_text(text)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "a truncated manifest": lambda run: cut(run / "manifest.json"),
    "an empty manifest": lambda run: overwrite(run / "manifest.json", ""),
    "no manifest": lambda run: (run / "manifest.json").unlink(),
    "truncated metrics": lambda run: cut(run / "metrics.json"),
    "a changed metric": lambda run: flip(run / "metrics.json"),
    "metrics of another shape": lambda run: overwrite(run / "metrics.json", "{}"),
    "a truncated table": lambda run: cut(run / "flows.parquet"),
    "a missing table": lambda run: (run / "flows.parquet").unlink(),
    "a truncated plan": lambda run: cut(run / "plan.yaml"),
    "no checksums": lambda run: (run / "SHA256SUMS").unlink(),
    "truncated checksums": lambda run: cut(run / "SHA256SUMS"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_run_is_found_and_made_again(
    whole: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    study = load(written(tmp_path))
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    job = work(study, Store(out)).done[2]
    damage(Store(out).run_dir(job.cell, job.repetition))
    todo = work(study, Store(out))
    assert todo.damaged == todo.missing == (job,)
    reopened(study, Store(out))  # reads what is there without an exception


def test_a_resumed_study_replaces_damaged_runs(whole: Path, tmp_path: Path) -> None:
    study = load(written(tmp_path))
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    before = results(out)
    for job, damage in zip(work(study, Store(out)).done, list(DAMAGE.values())[:3], strict=False):
        damage(Store(out).run_dir(job.cell, job.repetition))
    _, watcher = run(study, out)
    assert len(watcher.made) == 3
    assert results(out).equals(before)
    assert work(study, Store(out)).missing == ()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tcplab", "study", *arguments, "--no-report"]


def test_a_killed_study_goes_on_and_ends_as_if_nothing_had_been(whole: Path, tmp_path: Path) -> None:
    source = str(written(tmp_path))
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(source, "--output", str(out), "--jobs", "1"), stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stderr is not None
    for _ in range(3):
        process.stderr.readline()
    process.kill()
    process.wait(30)
    process.stderr.close()
    deadline = time.monotonic() + 60
    while _in_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _in_session(process.pid), "workers outlive the study"
    left = len(work(load(source), Store(out)).missing)
    assert 0 < left < 8
    resumed = subprocess.run(
        command(source, "--resume", str(out)), capture_output=True, text=True, timeout=120, check=False
    )
    assert resumed.returncode == 0, resumed.stderr
    assert f"{left} missing" in resumed.stderr
    assert results(out).equals(results(whole))


def _in_session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    source = str(written(tmp_path))
    out = tmp_path / "out"
    process = subprocess.Popen(
        command(source, "--output", str(out), "--jobs", "1"), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "--resume" in said
    assert "done" in set(results(out)["status"])


def test_a_worker_that_dies_costs_its_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = load(written(tmp_path, STUDY.replace("duration: 3 s", "duration: 60 s")))
    store = Store(tmp_path / "out")
    store.create(study)
    killed = threading.Event()

    def kill_one() -> None:
        while not killed.is_set():
            for child in _children():
                os.kill(child, signal.SIGKILL)
                killed.set()
                return
            time.sleep(0.05)

    thread = threading.Thread(target=kill_one)
    thread.start()
    outcome = execute(study, store, watcher=Quiet(), jobs=2)
    done = killed.is_set()
    killed.set()
    thread.join()
    assert done, "no worker was there to kill"
    # Its run was made again, apart from the others.
    assert {one.status for one in outcome.done} == {"done"}
    assert len(outcome.done) == 8


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL (was it the out-of-memory killer?"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("os._exit(7)", "exited with status 7"),
    ],
)
def test_a_run_whose_process_dies_names_the_signal(tmp_path: Path, way: str, said: str) -> None:
    study = load(written(tmp_path))
    cell = study.cells[0]
    pool = LocalPool(lambda task: Deadly(tmp_path / "run-1", way), 1)  # type: ignore[arg-type, return-value]
    (made,) = pool.make([Task(cell.id, "sim", study.plan_of(cell), 1)], threading.Event())
    assert made.status == "failed"
    assert said in made.message
    if "SIGKILL" not in said:
        assert "memory" not in made.message


class Deadly:
    """A run directory whose arrival in a worker ends the worker."""

    def __init__(self, path: Path, way: str) -> None:
        self.path, self.way = path, way

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"import os, signal; {self.way}",)

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_run_refused_because_a_worker_just_died_is_made_nonetheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: int
) -> None:
    class Dying(ThreadPoolExecutor):
        """A pool that notices a dead worker when it is given the next run."""

        _processes: ClassVar[dict[int, object]] = {}
        submitted = 0

        def submit(self, *args: Any, **kwargs: Any) -> Any:
            Dying.submitted += 1
            if Dying.submitted == refused:
                raise BrokenProcessPool
            return super().submit(*args, **kwargs)

    monkeypatch.setattr("tcplab.study.pool._pool", Dying)
    study = load(written(tmp_path))
    outcome, _ = run(study, tmp_path / "out")
    assert [one.status for one in outcome.done] == ["done"] * 8


def _children() -> list[int]:
    """The worker processes of this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == os.getpid() and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


# The simulator has no iperf3.
UNSUPPORTED = STUDY.replace("cc: [reno, cubic]", "generator: [native, iperf3]").replace(
    "baseline: {cc: cubic}", ""
)


def test_a_cell_that_cannot_run_stays_in_the_results_with_its_reason(tmp_path: Path) -> None:
    outcome, _ = run(load(written(tmp_path, UNSUPPORTED)), tmp_path / "out")
    failed = [one for one in outcome.done if one.status == "failed"]
    assert len(failed) == 4
    assert "iperf3" in failed[0].message
    frame = results(tmp_path / "out")
    assert len(frame.filter((pl.col("status") == "failed") & (pl.col("generator") == "iperf3"))) == 4
    assert len(frame.filter(pl.col("status") == "done")) == 8


def test_a_cell_that_crashes_its_engine_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    study = load(written(tmp_path))
    good, bad = study.cells[0], study.cells[1]
    broken: Any = {**study.plan_of(bad), "nodes": "none"}
    tasks = [Task(bad.id, "sim", broken, 1), Task(good.id, "sim", study.plan_of(good), 1)]
    pool = LocalPool(lambda task: tmp_path / task.cell / f"run-{task.repetition}", 1)
    made = {one.cell: one for one in pool.make(tasks, threading.Event())}
    assert made[good.id].status == "done"
    assert made[bad.id].status == "failed"
    assert made[bad.id].message
    assert read_manifest(tmp_path / bad.id / "run-1").status == "failed"


BAD = [
    ("study: small", "study: small\nrepeats: 3", "unknown key `repeats`"),
    ("flows.bulk.cc: [reno, cubic]", "flows.bulk.cc: []", "the axis has no values"),
    ("flows.bulk.cc: [reno, cubic]", "flows.bulk.cc: [reno, reno]", "stands here twice"),
    ("flows.bulk.cc: [reno, cubic]", "flows.bulk.cc: reno", "did you mean `[reno]`?"),
    ("values: [10 ms, 40 ms]", "values: [10, 40 ms]", "10"),
    ("set: network.path.rtt", "set: network.path.rttt", "rttt"),
    ("flows.bulk.cc: [reno", "flows.blk.cc: [reno", "blk"),
    ("baseline: {cc: cubic}", "baseline: {cc: vegas}", "the axis cc has no value `vegas`"),
    ("baseline: {cc: cubic}", "baseline: {xx: cubic}", "unknown axis `xx`"),
    ("repeat: 2", "repeat: 2\ncells: zip\nexpect: [goodput > 1 ms]", "compares bit/s with ns"),
    ("repeat: 2", "repeat: 2\nexpect: [goodput(cc=vegas) > 1 bit/s]", "the axis cc has no value `vegas`"),
    ("repeat: 2", "repeat: 2\nexpect: [goodput(xx=cubic) > 1 bit/s]", "unknown axis `xx`"),
    ("repeat: 2", "repeat: 2\nexpect: [goodput(flow=blk) > 1 bit/s]", "unknown flow `blk`"),
    ("repeat: 2", "repeat: 2\nplots: [{kind: bars, metric: rtt_p94}]", "unknown metric `rtt_p94`"),
    ("repeat: 2", "repeat: 2\nplots: [{kind: bars, where: {cc: vegas}}]", "has no value `vegas`"),
    ("repeat: 2", "repeat: 2\nplots: [{kind: bars, flow: blk}]", "unknown flow `blk`"),
    ("repeat: 2", "repeat: 0", "at least 1"),
    ("values: [10 ms, 40 ms]}", "values: [10 ms]}\nplots: [{kind: heatmap}]", "needs two axes that vary"),
    ("repeat: 2", "engine: [sim, kernal]", "unknown engine `kernal`"),
    ("flows.bulk.cc", "goodput", "results have a column `goodput` already"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD)
def test_a_mistake_in_a_study_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in STUDY
    path = written(tmp_path, STUDY.replace(old, new))
    with pytest.raises(ScenarioErrors) as refused:
        load(path)
    said = str(refused.value)
    assert message in said
    assert f"{path}:" in said, said


def test_all_mistakes_of_the_axes_are_reported_at_once(tmp_path: Path) -> None:
    text = STUDY.replace("[10 ms, 40 ms]", "[10, 40 mss]").replace("[reno, cubic]", "[reno, 7]")
    with pytest.raises(ScenarioErrors) as refused:
        load(written(tmp_path, text))
    # Two times, a control, and a baseline that is not a value of its axis.
    assert len(refused.value.errors) == 4


def test_results_are_read_from_any_directory_and_after_a_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    monkeypatch.chdir(here)
    one = STUDY.replace("[reno, cubic]", "[cubic]").replace("[10 ms, 40 ms]", "[10 ms]")
    (here / "study.yaml").write_text(one.replace("repeat: 2", "repeat: 1"))
    api.run("study.yaml", output="results")
    monkeypatch.chdir(tmp_path)
    assert len(api.open_results(here / "results").outcome.cells) == 1
    here.rename(there)
    assert len(api.open_results(there / "results").outcome.cells) == 1
    (there / "study.yaml").unlink()
    with pytest.raises(ResultsError, match=r"its study was read from .*study\.yaml, which does not exist"):
        api.open_results(there / "results")


def test_a_script_needs_no_guard_of_its_main_module(tmp_path: Path) -> None:
    """Workers import what they need, and not the script that asked: it would ask again in each."""
    file = written(tmp_path)
    script = tmp_path / "script.py"
    script.write_text(
        "from tcplab import study\n"
        f"found = study.run({str(file)!r}, output={str(tmp_path / 'out')!r}, jobs=2)\n"
        "print([one.status for one in found.outcome.done])\n"
    )
    said = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.split("\n") == [str(["done"] * 8), ""]


def test_ctrl_c_leaves_a_worker_that_begins_alone() -> None:
    worker = pool._Worker(target=print)
    worker.start()
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGINT)
    worker.join()
    assert worker.exitcode == 0
