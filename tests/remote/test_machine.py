"""The program for aarch64, run by QEMU: on a host that is reached by ssh, and between two processes.

QEMU 7.2 passes on four bytes of an option of TCP, so that `reno` is the one control by name, and has neither
sock_diag(7) nor SO_TIMESTAMPNS: sockets are not sampled, and no UDP flow arrives there.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcplab.engine.remote

from .hosts import Host, Hosts, obstacle, wait_for
from .running import Run

QEMU = "qemu-aarch64-static"
PROGRAMS = Path(tcplab.engine.remote.__file__).parent / "agents"
PROGRAM = PROGRAMS / "tcplab-agent-aarch64"


SCENARIO = """
tcplab: 1
name: elsewhere
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: reno, bytes: 1 MB}
  - {name: echo, kind: echo, cc: reno, sizes: [1, 1024], iterations: 50}
sample: {sockets: off}
duration: 4 s
"""


def lacking() -> str | None:
    """Why nothing can be shown here."""
    if shutil.which(QEMU) is None:
        return f"{QEMU} is not installed: sudo apt-get install qemu-user-static"
    own = PROGRAMS / f"tcplab-agent-{platform.machine()}"
    if not PROGRAM.exists() or (own.exists() and PROGRAM.stat().st_mtime < own.stat().st_mtime):
        return "the program for aarch64 is missing or out of date: scripts/agent aarch64"
    return None


pytestmark = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


def test_a_host_with_aarch64_is_sent_its_program_and_its_flows_have_figures(tmp_path: Path) -> None:
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    right = Host("right", "10.77.0.3", tmp_path / "right", machine="aarch64")
    hosts = Hosts(tmp_path, left=Host("left", "10.77.0.2", tmp_path / "left"), right=right)
    try:
        hosts.up()
        done = hosts.us.run(sys.executable, "-m", "tcplab", "doctor", f"ssh://{right.address}")
        assert ", aarch64" in done.stdout
        assert "known to within" in done.stdout
        run = Run(hosts, SCENARIO)
        code, said = run.end()
        assert code == 0, said
        received = dict(run.table("flows").select("flow", "bytes_received").iter_rows())
        assert received["bulk"] == 1_000_000
        assert run.table("echoes")["count"].sum() == 100
        [path] = run.manifest["facts"]["paths"]
        assert (path["by"], path["mtu"], path["hops"], path["bandwidth"]) == ("udp", 1500, 1, None)
        wait_for(lambda: right.left() == [])
    finally:
        hosts.down()


def test_messages_go_from_one_to_another_and_back() -> None:
    with started("echo-serve", clients=8, size=1 << 20, addresses=["127.0.0.1:0"]) as server:
        assert server.stdout is not None
        listening = json.loads(server.stdout.readline())
        settings = {"sizes": [1, 1000, 100_000], "iterations": 50, "clients": 2, "warmup": 1, "interval": 0}
        with started(
            "echo-run",
            addresses=listening["addresses"],
            timeout=60_000_000_000,
            nodelay=True,
            control="",
            **settings,
        ) as client:
            assert client.stdout is not None
            said = [json.loads(line) for line in client.stdout]
    series = [(one["client"], one["size"], one["done"]) for one in said if one["event"] == "series"]
    assert sorted(series) == [(client, size, 50) for client in (0, 1) for size in (1, 1000, 100_000)]


def started(command: str, **settings: Any) -> subprocess.Popen[str]:
    """The program with one of its commands; it ends with its input."""
    words = [QEMU, str(PROGRAM), command]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps({**settings, "busy_poll": False}) + "\n")
    process.stdin.flush()
    return process
