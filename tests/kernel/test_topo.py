"""Labs that stay up: `tcplab topo`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tcplab.engine.kernel_check import FRR
from tcplab.testbed import held, link_change
from tcplab.testbed.link_change import present

SCENARIO = """\
tcplab: 1
name: stays
network:
  nodes: [a, {name: r, kind: router}, b]
  links:
    - {ends: [a, r], rate: 50 Mbit/s, delay: 5 ms}
    - {ends: [r, b]}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: a, to: b}
"""
TCPLAB = [sys.executable, "-m", "tcplab"]
# Prints how long a datagram to the discard port takes to be refused, ms: a round trip.
ROUND_TRIP = """\
import socket, time
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(5)
one.connect(("10.0.1.2", 9))
began = time.monotonic()
one.send(b"x")
try:
    one.recv(1)
except ConnectionRefusedError:
    print((time.monotonic() - began) * 1e3)
"""

Topo = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "stays.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture
def name() -> str:
    return f"test-{os.getpid()}"


@pytest.fixture
def topo(scenario: Path, name: str) -> Iterator[Topo]:
    """Run `tcplab topo` on a lab that is up."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TCPLAB_LAB": name}
        command = [*TCPLAB, "topo", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    done = run("up", scenario, "--name", name)
    assert done.returncode == 0, done.stderr
    yield run
    run("down", name)


def processes(topo: Topo, name: str) -> dict[str, int]:
    """The lab's processes by what they are."""
    lab = next(one for one in json.loads(topo("list", "--json").stdout)["labs"] if one["name"] == name)
    return {"lab": lab["process"], **lab["pids"]}


def alive(process: int) -> bool:
    """Whether it is there, and not only because nobody has waited for it."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def gone(pids: dict[str, int]) -> bool:
    deadline = time.monotonic() + 60
    while any(map(alive, pids.values())) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(alive, pids.values()))


def test_a_lab_stays_up_until_down(topo: Topo, name: str) -> None:
    assert topo("wait").returncode == 0
    there = processes(topo, name)
    assert all(map(alive, there.values()))
    assert json.loads(topo("down", name, "--json").stdout)["labs"] == [name]
    assert gone(there)
    assert topo("exec", "a", "--", "true").returncode == 2


def test_a_cable_of_a_lab_is_emulated_so_its_mtu_is_smaller(scenario: Path, tmp_path: Path) -> None:
    wide = [scenario, "--set", "network.links.1.mtu=65535 B"]
    for words in (
        ["topo", "up", *wide],
        ["run", *wide, "--engine", "kernel", "--keep", "--output", tmp_path / "out"],
    ):
        ended = subprocess.run([*TCPLAB, *map(str, words)], capture_output=True, text=True, check=False)
        assert ended.returncode == 2
        error, hint = ended.stderr.splitlines()[-2:]
        assert "links.r-b.mtu: every link of a lab is emulated" in error
        assert hint == "hint: set `mtu: 65521 B`"
    # It is said before the run.
    assert not (tmp_path / "out").exists()


def test_a_lab_of_this_name_is_said_before_a_run(
    topo: Topo, scenario: Path, name: str, tmp_path: Path
) -> None:
    named = [*TCPLAB, "run", str(scenario), "--set", f"name={name}", "--engine", "kernel", "--keep"]
    ended = subprocess.run(
        [*named, "--output", tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert f"there is a lab '{name}' already" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_keeps_no_lab(scenario: Path, name: str, tmp_path: Path) -> None:
    named = [*TCPLAB, "run", str(scenario), "--set", f"name={name}", "--engine", "kernel", "--keep"]
    with subprocess.Popen(
        [*named, "--output", tmp_path / "out"], stderr=subprocess.PIPE, text=True
    ) as running:
        while not list(tmp_path.glob("out/run-1/*.arrows")) and running.poll() is None:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    listed = subprocess.run([*TCPLAB, "topo", "list", "--json"], capture_output=True, text=True, check=True)
    assert name not in [lab["name"] for lab in json.loads(listed.stdout)["labs"]]


def test_a_program_in_a_node_has_its_own_network_and_exit_code(topo: Topo) -> None:
    said = topo("exec", "a", "--", "sh", "-c", "cat /proc/net/dev; hostname; exit 7")
    assert said.returncode == 7
    assert "eth0" in said.stdout
    assert "eth1" not in said.stdout
    assert said.stdout.splitlines()[-1] == "a"
    assert topo("exec", "a", "--", "no-such-program").returncode == 127
    assert topo("exec", "a", "--", "/").returncode == 126
    assert topo("exec", "a", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_nodes_know_each_other_by_name_and_the_machine_does_not(topo: Topo) -> None:
    names = Path("/etc/hosts").read_text(encoding="utf-8")
    said = topo("exec", "a", "--", "getent", "hosts", "b", "b.v6", "a")
    assert [line.split() for line in said.stdout.splitlines()] == [
        ["10.0.1.2", "b"],
        ["fd00:0:0:1::2", "b.v6"],
        ["10.0.0.1", "a"],
    ]
    assert "localhost" in topo("exec", "a", "--", "cat", "/etc/hosts").stdout or not names
    assert Path("/etc/hosts").read_text(encoding="utf-8") == names


def test_settings_of_a_link_change_at_once(topo: Topo) -> None:
    def round_trip() -> float:
        return float(topo("exec", "a", "--", sys.executable, "-c", ROUND_TRIP).stdout)

    assert topo("set", "a-r", "delay=200ms", "--direction", "forward").returncode == 0
    assert round_trip() >= 205
    assert topo("set", "a-r", "delay=0 ms").returncode == 0
    assert topo("set", "a-r", "up=off").returncode == 0
    assert topo("wait", "--timeout", "0 s").returncode == 1
    assert topo("set", "a-r", "up=on").returncode == 0
    assert topo("wait").returncode == 0


def test_settings_are_read_as_those_of_the_link_as_it_is_now(topo: Topo) -> None:
    def limit(settings: str) -> int:
        printed = topo("set", "a-r", settings, "queue=1 BDP", "--direction", "forward", "--json")
        return int(json.loads(printed.stdout)["changes"]["forward"]["limit"]["bytes"])

    whole = limit("rate=10 Mbit/s")
    assert topo("set", "a-r", "rate=1 Mbit/s").returncode == 0
    assert limit("loss=0 %") * 10 == whole


def test_of_two_changes_at_one_instant_both_are_recorded(
    topo: Topo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = link_change.recorded

    def overtaken(*arguments: Any) -> Any:
        monkeypatch.setattr(held, "recorded", record)
        held.change(held.find(name), "a-r", changes("rate", 20_000_000))
        return record(*arguments)

    def changes(key: str, value: int) -> Any:
        return {"forward": {"at": 0, key: value}}

    monkeypatch.setattr(held, "recorded", overtaken)
    held.change(held.find(name), "a-r", changes("delay", 7_000_000))
    found = held.find(name)
    now = present(found.link("a-r")["forward"], found.elapsed())
    assert (now["rate"], now["delay"]) == (20_000_000, 7_000_000)


def test_a_direction_is_forward_or_reverse(topo: Topo) -> None:
    printed = topo("set", "a-r", "delay=7 ms", "--direction", "reverse", "--json")
    changes = json.loads(printed.stdout)["changes"]
    assert [(key, change["delay"]) for key, change in changes.items()] == [("backward", 7_000_000)]
    old = topo("set", "a-r", "delay=8 ms", "--direction", "backward")
    assert (old.returncode, "--direction backward is deprecated, use reverse" in old.stderr) == (0, True)
    assert "both, forward or reverse" in topo("set", "a-r", "delay=8 ms", "--direction", "back").stderr


def test_a_wait_has_a_limit_with_a_unit(topo: Topo) -> None:
    printed = json.loads(topo("wait", "--timeout", "1 min", "--json").stdout)
    assert (printed["version"], printed["reached"], printed["unreached"]) == (1, True, [])
    assert topo("set", "a-r", "up=off").returncode == 0
    ended = topo("wait", "--timeout", "100 ms", "--json")
    printed = json.loads(ended.stdout)
    assert (ended.returncode, printed["reached"]) == (1, False)
    assert {"from": "a", "to": "b"} in printed["unreached"]
    assert "no answer after 0.1 s: a to b" in ended.stderr
    bare = topo("wait", "--timeout", "0")
    assert "--timeout 0 has no unit: write '0 s'" in bare.stderr
    wrong = topo("wait", "--timeout", "5 parsecs")
    assert (wrong.returncode, "unknown unit `parsecs`" in wrong.stderr) == (2, True)


def test_what_cannot_be_set_is_said(topo: Topo) -> None:
    wrong = topo("set", "a-r", "rat=5Mbit/s")
    assert wrong.returncode == 2
    assert "rat" in wrong.stderr
    assert "a-r, r-b" in topo("set", "a-b", "rate=5Mbit/s").stderr
    twice = topo("set", "a-r", "rate=5Mbit/s", "rate=6Mbit/s")
    assert (twice.returncode, "rate is given twice" in twice.stderr) == (2, True)
    bare = topo("set", "a-r", "rate=5", "delay=5")
    assert "error: rate: `5` has no unit; delay: `5` has no unit\n" in bare.stderr
    assert "hint: did you mean `5 Mbit/s` and `5 ms`?\n" in bare.stderr


def test_a_queue_is_set_as_in_a_scenario_and_a_program_must_be_named(topo: Topo) -> None:
    assert topo("set", "a-r", "queue={limit: 50 packets}").returncode == 0
    for words in (("--",), ("--", "")):
        wrong = topo("exec", "a", *words)
        assert (wrong.returncode, "COMMAND" in wrong.stderr) == (2, True)
    late = topo("exec", "a", "--lab", "mine", "--", "true")
    assert (late.returncode, "options stand before NODE" in late.stderr) == (2, True)


def test_a_capture_is_pcapng_of_the_link(topo: Topo, tmp_path: Path) -> None:
    path = tmp_path / "link.pcapng"
    command = [*TCPLAB, "topo", "capture", "a-r", "-o", str(path)]
    environment = {**os.environ, "TCPLAB_LAB": f"test-{os.getpid()}"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as running:
        deadline = time.monotonic() + 60
        while not (path.exists() and path.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert topo("wait").returncode == 0
        running.send_signal(signal.SIGINT)
        _, said = running.communicate()
    assert running.returncode == 0
    # An echo request and its reply, each way.
    packets, _, words = said.partition(" ")
    assert words.startswith("packets captured")
    assert int(packets) >= 4
    assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


@pytest.mark.parametrize("victim", ["lab", "a", "r", ":emulator"])
def test_kill_9_of_any_process_leaves_nothing(topo: Topo, name: str, victim: str) -> None:
    there = processes(topo, name)
    command = [*TCPLAB, "topo", "exec", "--lab", name, "b", "--", "sleep", "1000"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as inside:
        deadline = time.monotonic() + 60
        while f"{there['b']}" not in _same_network(inside.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(there[victim], signal.SIGKILL)
        assert inside.wait(20) != 0
    assert gone(there)


def test_a_shell_ends_with_its_terminal_and_so_do_its_jobs(topo: Topo, name: str) -> None:
    command = [*TCPLAB, "topo", "exec", "--lab", name, "a", "--", "bash", "--norc", "-i"]
    shell, terminal = pty.fork()
    if shell == 0:
        os.execv(command[0], command)
    os.write(terminal, b"sleep 1000 & sleep 1000\n")
    node = processes(topo, name)["a"]
    jobs: list[int] = []
    deadline = time.monotonic() + 60
    while len(jobs) < 2 and time.monotonic() < deadline:
        inside = map(int, _same_network(node))
        jobs = [process for process in inside if _program(process) == "sleep"]
    assert len(jobs) == 2
    os.close(terminal)
    ended = gone({str(one): one for one in (shell, *jobs)})
    for one in () if ended else (shell, *jobs):
        os.kill(one, signal.SIGKILL)
    os.waitpid(shell, 0)
    assert ended


def _program(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text(encoding="ascii").strip()
    return ""


def _daemons(node: int) -> dict[str, int]:
    """The programs in a node besides the process that holds it."""
    found = {}
    for process in map(int, _same_network(node)):
        with suppress(OSError):
            if process != node:
                found[Path(f"/proc/{process}/comm").read_text(encoding="ascii").strip()] = process
    return found


def _same_network(process: int) -> list[str]:
    """The processes in the network namespace of one."""
    try:
        own = Path(f"/proc/{process}/ns/net").readlink()
    except OSError:
        return []
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if path.readlink() == own:
                found.append(path.parts[2])
        except OSError:
            continue
    return found


def test_two_labs_side_by_side(topo: Topo, scenario: Path, name: str) -> None:
    other = f"{name}-2"
    second = topo("up", scenario, "--name", other)
    assert second.returncode == 0
    assert f"tcplab topo shell a --lab {other}\n" in second.stdout
    try:
        assert topo("wait").returncode == 0
        assert topo("wait", "--lab", other).returncode == 0
        refused = topo("up", scenario, "--name", name)
        assert refused.returncode == 2
        assert "already" in refused.stderr
    finally:
        assert topo("down", other).returncode == 0
    assert topo("wait").returncode == 0


TWO_SYSTEMS = """\
tcplab: 1
name: two-as
network:
  nodes:
    - h1
    - {name: r1, kind: router, routing: {bgp: {as: 100}}}
    - {name: r2, kind: router, routing: {bgp: {as: 200}}}
    - h2
  links:
    - {ends: [h1, r1], rate: 100 Mbit/s}
    - {ends: [r1, r2], rate: 100 Mbit/s, delay: 10 ms}
    - {ends: [r2, h2], rate: 100 Mbit/s}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: h1, to: h2}
"""


@pytest.mark.skipif(not FRR.exists(), reason="FRR is not installed")
class TestTwoAutonomousSystems:
    """The published network: two systems, two routers, two hosts."""

    @pytest.fixture
    def scenario(self, tmp_path: Path) -> Path:
        path = tmp_path / "two-as.yaml"
        path.write_text(TWO_SYSTEMS, encoding="utf-8")
        return path

    def test_bgp_finds_the_way(self, topo: Topo) -> None:
        assert topo("wait", "--timeout", "100").returncode == 0
        routes = json.loads(topo("exec", "r1", "--", "ip", "-j", "route").stdout)
        assert [one["gateway"] for one in routes if one["protocol"] == "bgp"] == ["10.0.1.2"]
        said = topo("exec", "r1", "--", "vtysh", "-c", "show ip bgp summary json")
        peers = json.loads(said.stdout)["ipv4Unicast"]["peers"]
        assert {at: (one["remoteAs"], one["state"]) for at, one in peers.items()} == {
            "10.0.1.2": (200, "Established")
        }

    @pytest.mark.parametrize("daemon", ["zebra", "bgpd"])
    def test_a_daemon_that_has_ended_is_named_and_nothing_outlives_down(
        self, topo: Topo, name: str, daemon: str
    ) -> None:
        inside = _daemons(processes(topo, name)["r1"])
        assert set(inside) == {"zebra", "bgpd"}
        os.kill(inside[daemon], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while "has ended" not in (said := topo("list").stderr) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert f"{name}: FRR has ended in r1: {daemon}" in said
        labs = {lab["name"]: lab for lab in json.loads(topo("list", "--json").stdout)["labs"]}
        assert labs[name]["ended"] == [f"r1: {daemon}"]
        assert topo("down", name).returncode == 0
        assert gone(inside)

    @pytest.mark.parametrize("victim", ["lab", "r1"])
    def test_no_daemon_survives_its_lab(self, topo: Topo, name: str, victim: str) -> None:
        there = processes(topo, name)
        inside = {one: int(one) for one in _same_network(there["r1"])}
        assert len(inside) == 3, "zebra, bgpd, and the process that holds the node"
        os.kill(there[victim], signal.SIGKILL)
        assert gone(there)
        assert gone(inside)
