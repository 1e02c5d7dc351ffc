"""One command sends the program to a host once, however many runs it makes there."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from .hosts import Hosts, wait_for

SCENARIO = """\
tcplab: 1
name: sent
network:
  path: {rate: 100 Mbit/s, rtt: 10 ms}
  hosts_at: {left: ssh://10.77.0.2, right: ssh://10.77.0.3}
flows:
  - {name: echo, kind: echo, sizes: [100 B], iterations: 20}
duration: 5 s
"""
STUDY = """\
tcplab: 1
study: sent
scenario: sent.yaml
repeat: 1
grid:
  iterations: {set: flows.echo.iterations, values: [20, 21, 22]}
"""


def received(hosts: Hosts, *words: str) -> dict[str, int]:
    """Bytes that each host receives while a command runs; nothing of ours is there afterwards."""
    (hosts.us.folder / "sent.yaml").write_text(SCENARIO)
    (hosts.us.folder / "study.yaml").write_text(STUDY)
    out = f"/run/keep/sent-{time.monotonic_ns()}"
    others = {name: host for name, host in hosts.all.items() if name in ("left", "right")}

    def counted() -> dict[str, int]:
        shown = {
            name: host.run("ip", "-s", "-j", "link", "show", "eth0").stdout for name, host in others.items()
        }
        return {name: int(json.loads(text)[0]["stats64"]["rx"]["bytes"]) for name, text in shown.items()}

    before = counted()
    done = hosts.us.run(
        "sh", "-c", 'cd /run/keep && exec "$@"', "sh",
        sys.executable, "-m", "tcplab", *words, "--engine", "remote", "--output", out, "--no-report",
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    after = counted()
    for host in others.values():
        wait_for(lambda host=host: host.left() == [])
    return {name: after[name] - before[name] for name in others}


def test_runs_and_cells_after_the_first_find_it_there(hosts: Hosts) -> None:
    once = received(hosts, "run", "sent.yaml")
    for words in (("run", "sent.yaml", "--repeat", "3"), ("study", "study.yaml")):
        several = received(hosts, *words)
        for name, size in several.items():
            assert size < 1.5 * once[name], (words, several, once)


def test_a_killed_caller_leaves_nothing_of_it(hosts: Hosts) -> None:
    (hosts.us.folder / "sent.yaml").write_text(SCENARIO)
    command = [
        *hosts.us._enter(), sys.executable, "-m", "tcplab", "run", "/run/keep/sent.yaml",
        "--engine", "remote", "--repeat", "2", "--set", "flows.echo.iterations=1000000",
        "--output", "/run/keep/killed",
    ]  # fmt: skip
    caller = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    right = hosts.all["right"]
    # One that holds the program, and the run's.
    wait_for(lambda: len([line for line in right.agents() if " node " in line]) == 2)
    caller.kill()
    caller.wait(60)
    wait_for(lambda: right.left() == [])
