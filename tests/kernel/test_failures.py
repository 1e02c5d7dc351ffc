"""Failures are reported once, with the cause and the fix, and leave nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcplab.engine.kernel_check import FRR
from tcplab.results import load
from tcplab.testbed.agent import agent_command

SCENARIO = """\
tcplab: 1
name: short
network:
  path: {rate: 100 Mbit/s, rtt: 10 ms}
flows:
  - {name: f, kind: tcp, streams: 20}
sample: {sockets: 1 ms}
duration: DURATION
"""
RUN = [sys.executable, "-m", "tcplab", "run", "short.yaml", "--engine", "kernel", "--no-report", "--quiet"]
# An ordinary user whose files are ours: without privileges over the machine.
ORDINARY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "short.yaml").write_text(SCENARIO.replace("DURATION", "1 s"), encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, around: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code of a run and what it said."""
    command = [*around, *RUN, "--output", "out", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def in_a_shell(prepare: str) -> tuple[str, ...]:
    """Start in new namespaces, after a command has changed them."""
    return ("sh", "-c", f'{prepare} && exec "$@"', "sh")


def can_unshare(*words: str) -> bool:
    return subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def users() -> None:
    if not can_unshare(*ORDINARY):
        pytest.skip("this machine lets nobody make user namespaces")


@pytest.fixture
def mounts() -> None:
    if not can_unshare("unshare", "--mount"):
        pytest.skip("mounting takes privileges")


@pytest.mark.usefixtures("users")
def test_an_ordinary_user_runs_networks_too(folder: Path) -> None:
    code, said = run(folder, around=tuple(ORDINARY))
    assert code == 0, said
    # Of all together: who loses its SYN on a busy machine tries again only after this second.
    assert load(folder / "out").flows["bytes_received"].sum() > 0


@pytest.mark.usefixtures("users")
@pytest.mark.skipif(not FRR.exists(), reason="FRR is not installed")
def test_an_ordinary_user_runs_routers_too(folder: Path) -> None:
    routed = Path(__file__).parents[2] / "scenarios" / "bgp-two-as.yaml"
    (folder / "short.yaml").write_text(routed.read_text(encoding="utf-8"), encoding="utf-8")
    code, said = run(folder, "--set", "duration=5 s", around=tuple(ORDINARY))
    assert code == 0, said
    run_of_it = load(folder / "out")
    assert (run_of_it.flows["bytes_received"] > 0).all()
    assert "bgp" in set(run_of_it.routes["protocol"])


@pytest.mark.usefixtures("users")
def test_a_window_an_ordinary_user_would_not_get_is_refused_and_the_privileged_get_it(folder: Path) -> None:
    limit = int(Path("/proc/sys/net/core/rmem_max").read_text(encoding="ascii"))
    window = f"flows.f.window={limit + 1} B"
    code, said = run(folder, "--set", window, around=tuple(ORDINARY))
    assert code == 3
    assert f"sudo sysctl -w net.core.rmem_max={limit + 1}" in said
    assert not (folder / "out").exists()
    if os.geteuid() != 0:
        return
    code, said = run(folder, "--set", window)
    assert code == 0, said
    assert not [one for one in load(folder / "out").warnings if "granted" in one]


@pytest.mark.usefixtures("users")
def test_without_privileges_and_user_namespaces_the_setting_is_named(folder: Path) -> None:
    closed = "echo 0 > /proc/sys/user/max_user_namespaces"
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    around = ("unshare", "--user", "--map-root-user", *in_a_shell(closed), *drop)
    code, said = run(folder, around=around)
    assert code == 3
    assert "user namespaces" in said
    assert "sudo sysctl -w user.max_user_namespaces=" in said
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("mounts")
def test_without_tun_the_commands_that_make_it_are_named(folder: Path) -> None:
    hidden = in_a_shell("mount -t tmpfs none /dev/net")
    code, said = run(folder, around=("unshare", "--mount", *hidden))
    assert code == 3
    assert "TUN" in said
    assert "mknod" in said


@pytest.mark.usefixtures("mounts")
def test_settings_that_nobody_may_change_are_named_with_the_command_that_opens_them(folder: Path) -> None:
    """Docker mounts them so."""
    closed = in_a_shell("mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys")
    around = ("unshare", "--mount", *closed)
    code, said = run(folder, around=around)
    assert code == 3
    assert "Read-only file system" in said
    assert "sudo mount -o remount,rw /proc/sys" in said
    assert not (folder / "out").exists()
    doctor = [*around, sys.executable, "-m", "tcplab", "doctor", "--json"]
    done = subprocess.run(doctor, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    grades = {one["name"]: one["grade"] for one in json.loads(done.stdout)["findings"]}
    assert grades["sysctls"] == "missing"


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("lacking", ["net_admin", "net_raw", "sys_admin"])
def test_root_without_one_of_the_privileges_takes_a_user_namespace(folder: Path, lacking: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has privileges to give up")
    code, said = run(folder, around=("setpriv", f"--bounding-set=-{lacking}", f"--inh-caps=-{lacking}"))
    assert code == 0, said
    assert load(folder / "out").flows["bytes_received"].sum() > 0


@pytest.mark.usefixtures("mounts")
def test_a_full_disk_is_named_and_what_was_recorded_can_be_read(folder: Path) -> None:
    (folder / "short.yaml").write_text(SCENARIO.replace("DURATION", "20 s"), encoding="utf-8")
    small, kept = folder / "small", folder / "kept"
    small.mkdir()
    # Room for some batches of rows, which are the larger the busier the machine is.
    # The mount is gone with its namespace, so what is in it is taken out first.
    script = f'mount -t tmpfs -o size=8m none {small} && "$@"; code=$?; cp -r {small} {kept}; exit $code'
    around = ("unshare", "--mount", "sh", "-c", script, "sh")
    code, said = run(folder, "--output", str(small / "out"), "--yes", around=around)
    assert code == 3
    assert "the disk is full" in said
    assert "make room" in said
    read = load(kept / "out")
    assert read.status in ("interrupted", "failed")
    assert read.sockets.height > 100


@pytest.mark.parametrize(
    ("setting", "what", "hint"), [("flows.f.generator=iperf3", "iperf3", "sudo apt-get install iperf3")]
)
def test_what_is_missing_is_named_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, setting: str, what: str, hint: str
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    code, said = run(folder, "--set", setting)
    assert code == 3
    assert what in said
    assert hint in said
    assert not (folder / "out").exists()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = agent_command("node")
    with subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize(("ip", "address"), [(4, "127.0.0.1"), (6, "::1")])
def test_a_port_in_use_is_named(agent: subprocess.Popen[str], tmp_path: Path, ip: int, address: str) -> None:
    assert agent.stdin is not None
    assert agent.stdout is not None
    assert json.loads(agent.stdout.readline())["event"] == "hello"

    def ask(**command: object) -> dict[str, object]:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps({**command, "id": 1}) + "\n")
        agent.stdin.flush()
        answer: dict[str, object] = json.loads(agent.stdout.readline())
        return answer

    ask(do="configure", node="a", dir=str(tmp_path), cpus=[])
    flow = {
        "name": "f",
        "from": "b",
        "to": "a",
        "kind": "tcp",
        "start": 0,
        "streams": 1,
        "cc": {"name": "reno", "params": {}},
        "sender": {},
        "receiver": {},
        "ip": ip,
    }
    server = {"do": "flow", "role": "server", "address": address, "flow": flow}
    first = ask(**server, ports=[])
    assert first["event"] == "ok"
    second = ask(**server, ports=first["ports"])
    assert second["event"] == "error"
    assert str(first["ports"]).strip("[]") in str(second["message"])
    assert second["hint"]
