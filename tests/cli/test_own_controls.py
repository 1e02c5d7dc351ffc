"""Scenarios with C files of their own: what runs when, and what is said of those that misbehave."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcplab as library
from tcplab.cc.template import starting_file
from tcplab.runner import UnsupportedError

Command = Callable[..., Any]
Start = Callable[..., subprocess.Popen[str]]
AT_LOSS = "ca->reductions++;"
ENDLESS = 'for (;;) __asm__ volatile("");'
OWN = """\
tcplab: 1
name: own
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: {kind: droptail, limit: 20 packets}}
flows:
  - {name: bulk, kind: tcp, cc: ./mine.c, duration: 2 s}
"""


def write(here: Path, *changes: tuple[str, str]) -> Path:
    text = starting_file("mine")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (here / "mine.c").write_text(text, encoding="utf-8")
    (here / "own.yaml").write_text(OWN, encoding="utf-8")
    return here / "mine.c"


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_check_and_describe_run_nothing_of_a_file(engine: str, here: Path, tcplab: Command) -> None:
    text = (
        "extern int system(const char *);\n"
        f'__attribute__((constructor)) static void opened(void) {{ system("touch {here}/ran"); }}\n'
    )
    write(here, ('#include "tcplab_cc.h"\n', f'#include "tcplab_cc.h"\n{text}'))
    assert tcplab("check", "own.yaml", "--engine", engine).returncode in (0, 3)
    assert tcplab("cc", "load", "mine.c", "--set", "beta=7").returncode == 2
    assert tcplab("cc", "list", "-v").returncode == 0
    assert not (here / "ran").exists()


def test_a_crash_fails_its_run_and_no_other(here: Path, tcplab: Command) -> None:
    write(here, (AT_LOSS, "ca->reductions /= tp->snd_cwnd - tp->snd_cwnd;"))
    ended = tcplab("run", "own.yaml", "short.yaml", "--output", "out", "--quiet", "--no-report")
    assert ended.returncode == 4, ended.stderr
    assert "mine.c: ssthresh at 0." in ended.stderr
    assert "division by zero (SIGFPE)" in ended.stderr
    status = {
        name: json.loads((here / "out" / name / "run-1" / "manifest.json").read_text())["status"]
        for name in ("own", "short")
    }
    assert status == {"own": "failed", "short": "done"}
    assert tcplab("run", "own.yaml", "--json", "--output", "again").returncode == 4


def test_the_library_raises(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    write(here, (AT_LOSS, "extern void exit(int); exit(0);"))
    with pytest.raises(RuntimeError, match=r"mine\.c: ssthresh at .*ended the process with exit code 0"):
        library.run("own.yaml", output="out")


def test_a_parameter_of_a_file_is_checked_without_running_it(here: Path) -> None:
    file = write(here)
    scenario = {
        "tcplab": 1,
        "name": "own",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "20 ms"}},
        "flows": [{"name": "bulk", "kind": "tcp", "cc": {"name": str(file), "beta": 0.5}, "duration": "1 s"}],
    }
    assert library.check(scenario) == []


def test_the_first_ctrl_c_ends_an_endless_loop(here: Path, start: Start) -> None:
    mark = here / "looping"
    write(here, (AT_LOSS, f'extern int creat(const char *, u32); creat("{mark}", 0600); {ENDLESS}'))
    running = start("run", "own.yaml", "--output", "out")
    while not mark.exists():
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    # The loop may have been ended a moment before.
    assert running.returncode in (130, 4), said
    assert "mine.c: ssthresh at" in said
    assert "it did not return" in said


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_check_leaves_nothing_behind(ending: signal.Signals, here: Path, start: Start) -> None:
    write(here, (AT_LOSS, ENDLESS))
    running = start("cc", "check", "mine.c")
    others = wait_for_loop(running)
    running.send_signal(ending)
    running.communicate(timeout=120)
    deadline = time.monotonic() + 120
    while any(started(one) == when for one, when in others.items() if when):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_for_loop(running: subprocess.Popen[str]) -> dict[int, str]:
    """The processes below one that simulates, once they are there, and when each was started."""
    deadline = time.monotonic() + 120
    while True:
        assert running.poll() is None
        below = descendants(running.pid)
        if any("tcplab.cc.simulating" in command(one) and "PDEATHSIG" not in command(one) for one in below):
            return {one: started(one) for one in below}
        assert time.monotonic() < deadline
        time.sleep(0.02)


def descendants(number: int) -> list[int]:
    children = Path(f"/proc/{number}/task").glob("*/children")
    below = [int(word) for place in children for word in read(place).split()]
    return [one for child in below for one in (child, *descendants(child))]


def command(number: int) -> str:
    return read(Path(f"/proc/{number}/cmdline"))


def read(place: Path) -> str:
    try:
        return place.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def started(number: int) -> str:
    """Ticks after boot at its start, as numbers are used again; empty for a process that has ended."""
    status = read(Path(f"/proc/{number}/stat")).rpartition(")")[2].split()
    return "" if not status or status[0] == "Z" else status[19]


def test_an_unknown_control_is_a_mistake_of_the_file_beside_the_others(here: Path, tcplab: Command) -> None:
    text = OWN.replace("cc: ./mine.c", "cc: cubik").replace("network:", "sead: 3\nnetwork:")
    (here / "two.yaml").write_text(text, encoding="utf-8")
    for arguments in (
        ("check", "two.yaml"),
        ("run", "two.yaml"),
        ("check", "two.yaml", "--engine", "kernel"),
    ):
        ended = tcplab(*arguments)
        assert ended.returncode == 2
        assert "two.yaml:7:33: flows.bulk.cc: unknown congestion control `cubik`" in ended.stderr
        assert "did you mean `cubic`?" in ended.stderr
        assert "sead" in ended.stderr


def test_what_only_another_engine_has_is_not_a_mistake(
    here: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcplab.testbed.controls.available", lambda: ["cubic", "yeah"])
    ended = tcplab("check", "short.yaml", "--set", "flows.bulk.cc=yeah")
    assert ended.returncode == 3
    assert "the simulator has no control called 'yeah'" in ended.stderr
    with pytest.raises(UnsupportedError):
        library.run(str(here / "short.yaml"), set={"flows.bulk.cc": "yeah"}, output=here / "out")
