"""Programs that end with who started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tcplab.cc import companion

SLEEP = ["sh", "-c", "echo $$ > $0; sleep 1000 & echo $! >> $0; wait"]


def pids(place: Path) -> list[int]:
    """Those that a shell wrote, once both are there."""
    deadline = time.monotonic() + 60
    while True:
        words = place.read_text(encoding="ascii").split() if place.exists() else []
        if len(words) == 2:
            return [int(word) for word in words]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_until_gone(numbers: list[int]) -> None:
    deadline = time.monotonic() + 60
    for number in numbers:
        while alive(number):
            assert time.monotonic() < deadline, f"{number} is still there"
            time.sleep(0.01)


def alive(number: int) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_program_ends_as_it_would_alone() -> None:
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -FPE $$", -signal.SIGFPE)):
        assert companion.run(["sh", "-c", script], b"", cpu=0, timeout=60, env=os.environ) == (code, b"")
    said = companion.run(["sh", "-c", "cat >&2"], b"words", cpu=0, timeout=60, env=os.environ)
    assert said == (0, b"words")


def test_what_it_has_started_goes_with_it(tmp_path: Path) -> None:
    place = tmp_path / "pids"
    process = companion.start([*SLEEP, str(place)])
    numbers = pids(place)
    companion.end(process)
    wait_until_gone(numbers)
    script = f"sleep 1000 & echo $$ $! > {place}"
    assert companion.run(["sh", "-c", script], b"", cpu=0, timeout=60, env=os.environ)[0] == 0
    wait_until_gone(pids(place))


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_it_goes_with_who_started_it(tmp_path: Path, ending: signal.Signals) -> None:
    place = tmp_path / "pids"
    script = (
        "import sys, time; from tcplab.cc import companion;companion.start(sys.argv[1:]); time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", script, *SLEEP, str(place)]) as starter:
        numbers = pids(place)
        starter.send_signal(ending)
    wait_until_gone(numbers)


def test_its_cpu_time_is_limited() -> None:
    endless = ["sh", "-c", "while :; do :; done"]
    assert companion.run(endless, b"", cpu=1, timeout=300, env=os.environ)[0] == -signal.SIGKILL
