"""Files in FRR's own language: taken over, or refused with FRR's words, the node and the line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tcplab.engine.kernel_check import FRR
from tcplab.results import load

pytestmark = pytest.mark.skipif(not FRR.exists(), reason="FRR is not installed")

SCENARIO = """\
tcplab: 1
name: files
network:
  nodes:
    - h1
    - {name: r1, kind: router, routing: {bgp: {as: 100, connect_retry: 1 s}}, frr: r1.conf}
    - {name: r2, kind: router, frr: r2.conf}
    - h2
  links: [{ends: [h1, r1]}, {ends: [r1, r2]}, {ends: [r2, h2]}]
flows: [{name: probe, kind: ping, from: h1, to: h2, interval: 100 ms}]
duration: 1 s
"""
# As on any machine with FRR, a neighbor takes part in IPv4 without `activate`.
MORE = """\
router bgp 100
 neighbor 10.0.1.2 remote-as 200
 neighbor 10.0.1.2 timers connect 1
exit
"""
WHOLE = """\
router bgp 200
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 10.0.1.1 remote-as 100
 neighbor 10.0.1.1 timers connect 1
 address-family ipv4 unicast
  network 10.0.2.0/24
 exit-address-family
exit
"""

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run a command of tcplab beside the scenario; its exit code and what it said."""
    (tmp_path / "files.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "r1.conf").write_text(MORE, encoding="utf-8")

    def run(*words: str, file: str, around: tuple[str, ...] = ()) -> tuple[int, str]:
        (tmp_path / "r2.conf").write_text(file, encoding="utf-8")
        line = [*around, sys.executable, "-m", "tcplab", *words]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    return run


LAB = f"files-{os.getpid()}"
UP = ("topo", "up", "files.yaml", "--name", LAB)
RUN = ("run", "files.yaml", "--engine", "kernel", "--no-report", "--quiet", "-o", "out")


@pytest.mark.parametrize("words", [("check", "files.yaml", "--engine", "kernel"), RUN, UP])
def test_a_line_that_frr_does_not_know_is_wrong_input(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    code, said = command(*words, file=WHOLE.replace("  network", "  netwrk"))
    assert code == 2, said
    assert "nodes.r2.frr: r2.conf: line 7: unknown command: netwrk 10.0.2.0/24" in said
    assert not (tmp_path / "out").exists()


def test_a_line_that_no_daemon_takes_is_named(command: Command) -> None:
    """vtysh knows each of them. A neighbor needs `remote-as` first."""
    broken = WHOLE.replace(" neighbor 10.0.1.1 remote-as 100\n", " neighbor 10.0.1.1 passive\n")
    code, said = command(*UP, file=broken)
    assert code == 2, said
    assert "r2: r2.conf: line 4: no daemon takes `neighbor 10.0.1.1 passive`" in said
    assert "Specify remote-as or peer-group commands first" in said
    assert LAB not in command("topo", "list", file=broken)[1]
    code, said = command(*RUN, file=broken)
    assert code == 2, said
    assert "r2: r2.conf: line 4: no daemon takes" in said


def test_a_file_adds_to_the_configuration_or_is_all_of_it(command: Command, tmp_path: Path) -> None:
    code, said = command(*RUN, file=WHOLE)
    assert code == 0, said
    done = load(tmp_path / "out")
    at_start = done.routes.filter(pl.col("time") == 0, pl.col("protocol") == "bgp")
    assert set(at_start["node"]) == {"r1", "r2"}
    assert not done.pings["lost"].all()


def test_what_the_console_saves_stays_in_its_node(command: Command) -> None:
    """`write` in the console of a router is not the machine's own /etc/frr/frr.conf."""
    saved = Path("/etc/frr")

    def times() -> dict[str, int]:
        readable = saved.iterdir() if os.access(saved, os.R_OK) else ()
        return {one.name: one.stat().st_mtime_ns for one in readable}

    before = times()
    code, said = command(*UP, file=WHOLE)
    assert code == 0, said
    try:
        inside = ("sh", "-c", "vtysh -c write && cat /etc/frr/frr.conf")
        code, said = command("topo", "exec", "--lab", LAB, "r1", "--", *inside, file=WHOLE)
        assert code == 0, said
        assert "neighbor 10.0.1.2 remote-as 200" in said
        assert "Can't open" not in said
    finally:
        command("topo", "down", LAB, file=WHOLE)
    assert times() == before


def test_without_frr_the_command_that_installs_it_is_named(command: Command, tmp_path: Path) -> None:
    hidden = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {FRR.parent} && exec "$@"', "sh")
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting takes privileges")
    code, said = command(*RUN, file=WHOLE, around=hidden)
    assert (code, "sudo apt-get install frr" in said) == (3, True), said
    assert not (tmp_path / "out").exists()
