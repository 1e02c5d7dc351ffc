"""`tcplab run`, from the outside."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]


def manifest(run_dir: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads((run_dir / "manifest.json").read_text())
    return loaded


def wait_for(path: Path, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.02)


# Rows enough for parts of a table to be written after the first seconds.
OFTEN = ("--set", "flows.bulk.duration=1000 s", "--set", "sample.flows=1 ms")


def wait_for_rows(run_dir: Path) -> None:
    """Until a part of a table has been written."""
    wait_for(run_dir / "parts")
    until = time.monotonic() + 30
    while not any((run_dir / "parts").iterdir()):
        assert time.monotonic() < until, "no part of a table appeared"
        time.sleep(0.02)


def test_a_run_leaves_results_a_report_and_a_summary(here: Path, process: Command) -> None:
    ended = process("run", "short.yaml")
    assert ended.returncode == 0, ended.stderr
    (results,) = (here / "runs").iterdir()
    assert results.name.startswith("short-")
    assert (results / "scenario.yaml").read_text() == (here / "short.yaml").read_text()
    assert manifest(results / "run-1")["status"] == "done"
    assert len(pl.read_parquet(results / "run-1" / "flows.parquet")) == 1
    assert "bulk" in ended.stdout
    assert f"report   runs/{results.name}/report.html" in ended.stdout
    assert (results / "report.html").stat().st_size > 10_000


FULL = """\
tcplab: 1
name: full
network:
  nodes: [{name: a}, {name: gateway, kind: router, accelerate: {connections: 1, when_full: reset}}, {name: b}]
  links: [{ends: [a, gateway], rate: 10 Mbit/s}, {ends: [gateway, b], rate: 10 Mbit/s}]
flows: [{name: bulk, kind: tcp, cc: reno, from: a, to: b, streams: 3}]
duration: 100 ms
"""


def test_what_a_run_warns_of_is_said(here: Path, tcplab: Command) -> None:
    (here / "full.yaml").write_text(FULL, encoding="utf-8")
    ended = tcplab("run", "full.yaml", "--output", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    said = "out: warning: gateway: the accelerator was full, and reset 2 connections: raise its `connections`"
    assert said in ended.stderr


def test_two_runs_at_the_same_moment_take_two_directories(here: Path, tcplab: Command) -> None:
    for _ in range(2):
        assert tcplab("run", "short.yaml", "--no-report", "--quiet").returncode == 0
    assert len(list((here / "runs").iterdir())) == 2


def test_a_seed_may_be_any_that_a_scenario_may_have(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--seed", 2**64 - 1, "--output", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert manifest(here / "out" / "run-1")["seed"] == 2**64 - 1
    assert tcplab("run", "short.yaml", "--seed", 2**64).returncode == 2
    beyond = tcplab("run", "short.yaml", "--seed", 2**64 - 2, "--repeat", 3)
    said = f"3 repetitions from seed {2**64 - 2} need seeds beyond 2^64 - 1"
    assert (beyond.returncode, beyond.stderr) == (2, f"tcplab: error: short.yaml: {said}\n")


def test_repetitions_take_the_next_seeds(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--repeat", 3, "--seed", 7, "--output", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert [manifest(here / "out" / f"run-{k}")["seed"] for k in (1, 2, 3)] == [7, 8, 9]
    assert "run 3 of 3: done" in ended.stderr


def test_a_setting_can_be_changed(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--set", "flows.bulk.cc=reno", "--output", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert pl.read_parquet(here / "out" / "run-1" / "flows.parquet")["cc"].to_list() == ["reno"]


def test_several_scenarios_go_below_one_directory(here: Path, tcplab: Command) -> None:
    other = (here / "short.yaml").read_text().replace("name: short", "name: other")
    (here / "other.yaml").write_text(other)
    ended = tcplab("run", "short.yaml", "other.yaml", "--output", "both", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in (here / "both").iterdir()) == ["other", "short"]


def test_json_is_all_there_is_on_standard_output(process: Command) -> None:
    ended = process("run", "short.yaml", "--json")
    assert ended.returncode == 0, ended.stderr
    (said,) = json.loads(ended.stdout)["runs"]
    assert said["status"] == "done"
    assert said["name"] == "short"
    assert said["report"].endswith("report.html")
    assert ended.stderr == ""


def test_quiet_says_nothing(process: Command) -> None:
    ended = process("run", "short.yaml", "--quiet")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_bad_file_is_refused_with_its_line(here: Path, process: Command) -> None:
    (here / "bad.yaml").write_text((here / "short.yaml").read_text().replace("cc: cubic", "cx: cubic"))
    ended = process("run", "bad.yaml")
    assert ended.returncode == 2
    assert "bad.yaml:6:" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (here / "runs").exists()


def test_a_file_that_is_not_there_is_refused(tcplab: Command) -> None:
    ended = tcplab("run", "absent.yaml")
    assert ended.returncode == 2
    assert "absent.yaml" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_engine_is_refused_with_the_list(tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--engine", "sin")
    assert ended.returncode == 2
    assert "'sin'" in ended.stderr
    assert "sim" in ended.stderr


def test_a_set_without_a_value_is_refused(tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--set", "seed")
    assert ended.returncode == 2
    assert "`seed` has no `=`" in ended.stderr


def test_what_the_engine_cannot_do_is_refused_before_anything_is_written(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--set", "flows.bulk.generator=iperf3")
    assert ended.returncode == 3
    assert "flows.bulk.generator" in ended.stderr
    assert not (here / "runs").exists()


def test_a_directory_with_results_is_not_overwritten(done: Path, tcplab: Command) -> None:
    before = manifest(done / "run-1")
    ended = tcplab("run", "short.yaml", "--output", "done")
    assert ended.returncode == 2
    assert "already holds results" in ended.stderr
    assert manifest(done / "run-1") == before


def test_an_out_that_cannot_be_made_is_refused(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--output", "short.yaml/out")
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
    assert "short.yaml/out" in ended.stderr


def test_an_out_that_cannot_be_written_is_refused(tcplab: Command) -> None:
    # Nobody may make directories in /proc, not even root.
    ended = tcplab("run", "short.yaml", "--output", "/proc/tcplab-results")
    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1


def test_runs_that_begin_at_once_have_a_directory_each(here: Path, start: Start) -> None:
    for process in [start("run", "short.yaml", "--no-report") for _ in range(4)]:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    assert [manifest(run)["status"] for run in here.glob("runs/*/run-1")] == ["done"] * 4


def test_of_runs_with_one_directory_only_one_begins(here: Path, start: Start) -> None:
    both = [start("run", "short.yaml", "--no-report", "--output", "out") for _ in range(2)]
    said = [process.communicate(timeout=60)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], said
    assert sum("out: already holds results" in text for text in said) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 160 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mounting needs root: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_ends_the_run_with_one_message(small_disk: Path, here: Path, process: Command) -> None:
    longer = ("--set", "flows.bulk.duration=60 s", "--set", "sample.packets=true")
    command = ("run", "short.yaml", *longer, "--output", small_disk / "out")
    ended = process(*command)
    assert ended.returncode == 3
    assert "disk: about" in ended.stderr
    assert not list(small_disk.iterdir())
    ended = process(*command, "--yes")
    assert ended.returncode == 3
    assert "disk is full" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert manifest(small_disk / "out" / "run-1")["status"] != "done"
    assert not list(small_disk.rglob(".*.parquet*")), "no half file stays behind"


def test_a_capture_that_was_cut_does_not_have_a_captures_name(
    here: Path, environment: dict[str, str], tcplab: Command
) -> None:
    """No file may grow beyond 100 kB, as if the disk were full: the capture is the first that would."""
    import resource

    (here / "captured.yaml").write_text(LARGE_CAPTURE)
    ended = subprocess.run(
        [sys.executable, "-m", "tcplab", "run", "captured.yaml", "--output", "r", "--quiet"],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        # Blocks are of four bytes each: one is cut wherever this falls.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, 100_001)),
    )
    assert ended.returncode != 0
    assert "left-path.pcapng" in ended.stderr, ended.stderr
    assert not list((here / "r").rglob("*.pcapng"))
    part = here / "r" / "run-1" / "left-path.pcapng.part"
    assert "cut" in tcplab("pcap", str(part)).stdout


LARGE_CAPTURE = """\
tcplab: 1
name: captured
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, duration: 2 s}
sample: {sockets: 1 s, queues: 1 s, flows: 1 s}
capture: headers
"""


def test_ctrl_c_keeps_what_was_recorded(here: Path, start: Start) -> None:
    running = start("run", "long.yaml", *OFTEN, "--output", "out")
    wait_for_rows(here / "out" / "run-1")
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert said.strip().splitlines()[-1] == "tcplab: interrupted; what was recorded is in out"
    run_dir = here / "out" / "run-1"
    assert manifest(run_dir)["status"] == "interrupted"
    intervals = pl.read_parquet(run_dir / "intervals.parquet")
    assert intervals["bytes_received"].sum() > 0


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_twice_keeps_what_was_recorded(
    here: Path, start: Start, ending: signal.Signals
) -> None:
    running = start("run", "long.yaml", *OFTEN, "--output", "out")
    wait_for_rows(here / "out" / "run-1")
    # As from timeout(1), and from a terminal that is closed.
    running.send_signal(ending)
    time.sleep(0.005)
    running.send_signal(ending)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert said.strip().splitlines()[-1] == "tcplab: interrupted; what was recorded is in out"
    assert pl.read_parquet(here / "out" / "run-1" / "intervals.parquet").height > 0


def test_ctrl_c_leaves_later_repetitions_unstarted(here: Path, start: Start) -> None:
    running = start(
        "run", "long.yaml", "--repeat", 5, "--jobs", 1, "--output", "out", "--json", "--no-report"
    )
    wait_for(here / "out" / "run-1" / "manifest.json")
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert json.loads(output)["runs"][0]["status"] == "interrupted"
    assert [path.name for path in (here / "out").glob("run-*")] == ["run-1"]


def test_a_second_ctrl_c_quits_at_once(here: Path, start: Start) -> None:
    running = start("run", "long.yaml", "--repeat", 2, "--output", "out")
    wait_for(here / "out" / "run-1" / "manifest.json")
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    time.sleep(0.005)
    running.send_signal(signal.SIGINT)
    # The run itself would take hours.
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert manifest(here / "out" / "run-1")["status"] == "interrupted"


def test_a_killed_run_is_marked_and_has_no_half_file(here: Path, start: Start, tcplab: Command) -> None:
    running = start("run", "long.yaml", "--output", "out")
    wait_for(here / "out" / "run-1" / "manifest.json")
    time.sleep(0.3)
    running.kill()
    running.communicate()
    assert manifest(here / "out" / "run-1")["status"] == "interrupted"
    for table in (here / "out" / "run-1").glob("*.parquet"):
        pl.read_parquet(table)
    (listed,) = json.loads(tcplab("list", ".", "--json").stdout)["results"]
    assert listed["status"] == "interrupted"
    shown = tcplab("show", "out")
    assert shown.returncode == 0
    assert "nothing to summarize" in shown.stdout


def test_a_terminal_sees_bars_with_goodput(here: Path, environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    arguments = ["run", "long.yaml", "--output", "out", "--no-report"]
    running = subprocess.Popen(
        [sys.executable, "-m", "tcplab", *arguments],
        cwd=here,
        env=environment | {"TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    until = time.monotonic() + 60
    try:
        while b"bit/s" not in seen:
            assert time.monotonic() < until, seen
            seen += os.read(ours, 4096)
    finally:
        running.send_signal(signal.SIGINT)
        while running.poll() is None:
            seen += _read(ours)
        os.close(ours)
    assert running.returncode == 130
    assert b"of 20000 s" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        # The other side is closed.
        return b""


@pytest.mark.parametrize("place", [[], ["left"]])
def test_remedies_need_no_place(place: list[str], here: Path, tcplab: Command) -> None:
    """The only place is found."""
    ended = tcplab("run", "short.yaml", "--with-accelerator", *place, "--output", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert "With accelerator: " in ended.stdout
    assert "Recommendation: " in ended.stdout


def test_remedies_that_cannot_run_are_refused_once(here: Path, tcplab: Command) -> None:
    ended = tcplab(
        "run", "short.yaml", "--with-accelerator", "--set", "flows.bulk.generator=iperf3", "--output", "out"
    )
    assert ended.returncode == 3
    assert ended.stderr == (
        "tcplab: error: the engine sim cannot run this:\n"
        "short.yaml: error: flows.bulk.generator: iperf3 is a program and needs a real network stack\n"
        "hint: leave `generator` out\n"
    )
    assert not (here / "out").exists()


def test_remedies_that_make_no_sense_are_refused(here: Path, tcplab: Command) -> None:
    (here / "ping.yaml").write_text(
        "tcplab: 1\nname: ping\nduration: 1 s\nnetwork: {path: {rate: 1 Mbit/s, rtt: 10 ms}}\n"
        "flows: [{name: ping, kind: ping}]\n"
    )
    for words, said in (
        (["short.yaml", "--streams", "0"], "0 is not in the range 2<=x<=100000"),
        (["short.yaml", "--with-accelerator", "nowhere"], "an accelerator on a path is at `left`"),
        (["short.yaml", "--with-cache"], "none is of kind http"),
        (["ping.yaml", "--with-accelerator"], "no flow of the scenario can be accelerated: none uses TCP"),
        (["ping.yaml", "--streams", "2"], "none is of kind tcp or http"),
    ):
        ended = tcplab("run", *words)
        assert ended.returncode == 2
        assert said in ended.stderr, words
        assert not (here / "runs").exists()
