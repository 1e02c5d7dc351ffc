"""Whatever is killed, nothing of ours survives, and what was recorded can be read."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.results import Run, load

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
  - {name: probe, kind: ping, from: a, to: b, ip: 6}
  - {name: theirs, kind: tcp, generator: iperf3, cc: cubic, from: b, to: a}
duration: 60 s
"""
# More of them by hand: TCPLAB_KILLS=50 pytest tests/kernel/test_teardown.py
KILLS = int(os.environ.get("TCPLAB_KILLS", "6"))


def living(folder: Path) -> dict[int, str]:
    """Every process on this machine whose working directory is the folder, which all of ours inherit."""
    found = {}
    for cwd in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if cwd.readlink() == folder:
                words = (cwd.parent / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(cwd.parent.name)] = words.decode(errors="replace").strip()
        except OSError:
            continue
    return found


def lasting(folder: Path, seconds: float) -> dict[int, str]:
    """Those that still live after so long, at most."""
    # One scan may miss a process that ends meanwhile, and the child that it has started since the listing.
    seen = [{0: ""}]

    def gone() -> bool:
        seen.append(living(folder))
        return seen[-2:] == [{}, {}]

    wait_until(gone, seconds)
    return seen[-1]


def interfaces() -> set[str]:
    return {path.name for path in Path("/sys/class/net").iterdir()}


def mounts() -> str:
    return Path("/proc/self/mounts").read_text(encoding="utf-8")


def start(folder: Path, number: int) -> subprocess.Popen[bytes]:
    scenario = folder / "killed.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    command = [sys.executable, "-m", "tcplab", "run", str(scenario), "--engine", "kernel", "--quiet"]
    command += ["--output", str(folder / f"out-{number}")]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return
        time.sleep(0.01)


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    # A namespace lives as long as a process or a mount holds it.
    before = (interfaces(), mounts())
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = start(tmp_path, number)
    out = tmp_path / f"out-{number}" / "run-1"
    wait_until(out.exists, 60)
    # While the network comes up, and while it runs.
    time.sleep(chance.uniform(0.0, 2.5))
    ours = living(tmp_path)
    kinds = {
        "orchestrator": [process.pid],
        "agent": [pid for pid, line in ours.items() if " node " in line],
        "emulator": [pid for pid, line in ours.items() if line.endswith(" emu")],
        "lab": [pid for pid, line in ours.items() if line.startswith("tcplab-agent lab")],
    }
    kind = ("orchestrator", "agent", "emulator", "orchestrator", "lab", "agent")[number % 6]
    recorded = any(path.stat().st_size > 4096 for path in out.glob("*.arrows"))
    os.kill(chance.choice(kinds[kind] or kinds["orchestrator"]), signal.SIGKILL)
    # It ends by itself after a minute.
    _, said = process.communicate(timeout=50)
    assert lasting(tmp_path, 60) == {}
    wait_until(lambda: (interfaces(), mounts()) == before, 10)
    assert (interfaces(), mounts()) == before
    assert list(temporary.iterdir()) == []
    assert b"Traceback" not in said
    read = load(tmp_path / f"out-{number}")
    assert read.status in ("interrupted", "failed")
    rows = sum(read.tables[name].height for name in read.tables)
    assert rows > 0 or not recorded


# iperf3 as if it were killed at the worst moment: it makes a file for each stream, and unlinks it
# (`iperf_new_stream`).
LEAVING_FILES = """\
#!/bin/sh
[ "$1" = --version ] || mktemp "${TMPDIR:-/tmp}/iperf3.XXXXXX" >/dev/null || exit
exec %s "$@"
"""


def test_files_of_an_iperf3_that_is_killed_are_gone_with_it(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., Run], tmp_path: Path
) -> None:
    programs, temporary = tmp_path / "bin", tmp_path / "tmp"
    programs.mkdir()
    temporary.mkdir()
    program = programs / "iperf3"
    program.write_text(LEAVING_FILES % shutil.which("iperf3"), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(temporary))
    flow = {"name": "f", "kind": "tcp", "generator": "iperf3", "duration": "1 s"}
    done = run({"path": {"rate": "10 Mbit/s", "rtt": "10 ms"}}, [flow], duration="2 s")
    assert done.flows["complete"].to_list() == [True]
    assert list(temporary.iterdir()) == []
    assert list(Path("/dev/shm").glob("iperf3.*")) == []
