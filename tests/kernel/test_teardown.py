"""Whatever is killed, nothing of ours survives, and what was recorded can be read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.results import load

SCENARIO = """\
tcplab: 1
name: killed
network:
  nodes: [a, {name: r, kind: router}, b]
  links:
    - {ends: [a, r], rate: 50 Mbit/s, delay: 5 ms}
    - {ends: [r, b]}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: a, to: b, streams: 2}
  - {name: probe, kind: ping, from: a, to: b}
duration: 60 s
"""
# More of them by hand: TCPLAB_KILLS=50 pytest tests/kernel/test_teardown.py
KILLS = int(os.environ.get("TCPLAB_KILLS", "6"))


def namespaces() -> set[str]:
    """Network namespaces in which some process is."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(str(link.readlink()))
        except OSError:
            continue
    return found


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def mounts() -> str:
    return Path("/proc/self/mounts").read_text(encoding="utf-8")


def temporary() -> set[Path]:
    return {path for path in Path("/tmp").iterdir() if "tcplab" in path.name.lower()}


def start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    scenario = folder / "killed.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    command = [sys.executable, "-m", "tcplab", "run", str(scenario), "--engine", "kernel", "--quiet"]
    return subprocess.Popen(
        [*command, "--out", str(folder / f"out-{number}")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return
        time.sleep(0.01)


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_leaves_nothing_behind(
    tmp_path: Path, number: int, descendants: Callable[[int], dict[int, str]]
) -> None:
    chance = random.Random(number)
    before = (namespaces(), interfaces(), mounts(), temporary())
    process = start(tmp_path, number)
    out = tmp_path / f"out-{number}" / "run-1"
    wait_until(lambda: out.exists(), 20)
    # While the network comes up, and while it runs.
    time.sleep(chance.uniform(0.0, 2.5))
    ours = descendants(process.pid)
    kinds = {
        "orchestrator": [process.pid],
        "agent": [pid for pid, line in ours.items() if " node " in line],
        "emulator": [pid for pid, line in ours.items() if line.rstrip().endswith(" emu")],
        "lab": [pid for pid, line in ours.items() if "testbed.lab" in line],
    }
    kind = ("orchestrator", "agent", "emulator", "orchestrator", "lab", "agent")[number % 6]
    victims = kinds[kind] or kinds["orchestrator"]
    os.kill(chance.choice(victims), signal.SIGKILL)
    process.wait(20)
    if process.stderr is not None:
        said = process.stderr.read().decode()
        process.stderr.close()
        assert "Traceback" not in said
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ours), 10)
    wait_until(lambda: namespaces() <= before[0], 10)
    assert {pid: line for pid, line in ours.items() if Path(f"/proc/{pid}").exists()} == {}
    assert namespaces() - before[0] == set()
    assert interfaces() == before[1]
    assert mounts() == before[2]
    assert temporary() == before[3]
    read = load(tmp_path / f"out-{number}")
    assert read.status in ("interrupted", "failed")
    for name in read.tables:
        assert read.tables[name].height >= 0
