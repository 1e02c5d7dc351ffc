"""`tcplab serve` and its clients, between namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .hosts import ROOT, Host, Hosts, obstacle, wait_for
from .test_firewall import firewall

pytestmark = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))

TCPLAB = (sys.executable, "-m", "tcplab")


class Served:
    """A network of `us` and `server`, on which the service runs."""

    def __init__(self, folder: Path) -> None:
        self.server = Host("server", "10.77.0.2", folder / "server")
        self.hosts = Hosts(folder, server=self.server)
        self.state = self.server.folder / "state"
        self.log = self.server.folder / "serve.log"

    def start(self, *options: str, by: tuple[str, ...] = ()) -> None:
        """Run the service until `stop`, `by` a program that gives it fewer rights."""
        self.log.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(*self.server._enter(), *by, *TCPLAB, "serve"),
                    *("--state", "/run/keep/state", "--json", *options),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_for(lambda: self.events("listening") or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()

    def stop(self) -> None:
        """End the service; nothing of it is left."""
        self.process.terminate()
        assert self.process.wait(20) == 0, self.log.read_text()
        wait_for(lambda: self.server.agents() == [])

    def events(self, name: str) -> list[dict[str, Any]]:
        """The output of the service."""
        said = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [event for event in said if event["event"] == name]

    @property
    def url(self) -> str:
        return f"tcplab://10.77.0.2?certificate={self.events('listening')[0]['certificate']}"

    @property
    def token(self) -> str:
        return (self.state / "token").read_text().strip()

    def client(self, *words: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run tcplab at `us`."""
        return subprocess.run(
            [*self.hosts.us._enter(), *TCPLAB, *words],
            capture_output=True, text=True, timeout=90, check=False, stdin=subprocess.DEVNULL,
            env=os.environ | {"TCPLAB_TOKEN": token or self.token},
        )  # fmt: skip

    def python(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python at `us`."""
        return subprocess.run(
            [*self.hosts.us._enter(), sys.executable, "-c", program, *arguments],
            capture_output=True, text=True, timeout=180, check=False,
            env=os.environ | {"TCPLAB_TOKEN": self.token},
        )  # fmt: skip


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    try:
        made.hosts.up()
        yield made
    finally:
        made.hosts.down()


@pytest.fixture
def served(network: Served) -> Iterator[Served]:
    network.start("--max-duration", "20 s", "--max-clients", "3")
    try:
        yield network
    finally:
        network.stop()


def test_bulk_in_both_directions_and_what_the_path_is_like(served: Served) -> None:
    for options in ((), ("--reverse",), ("--udp", "10 Mbit/s")):
        done = served.client("bulk", "run", served.url, "--duration", "1 s", "--json", *options)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["summary"]
    assert len(served.events("admitted")) == 3
    done = served.client("bulk", "run", served.url, "--duration", "1 s")
    assert "MTU 1500 B, 1 hop" in done.stdout, done.stdout + done.stderr


def test_echoes_of_the_service_by_size(served: Served) -> None:
    options = ("--sizes", "1,1024", "--iterations", "20", "--clients", "2", "--duration", "9 s", "--json")
    done = served.client("echo", "run", served.url, *options)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [(one["size"], one["count"]) for one in said["sizes"]] == [(1, 40), (1024, 40)]
    late = served.client("echo", "run", served.url, "--sizes", "1", "--interval", "1 s", "--duration", "1 s")
    assert late.returncode == 4, late.stdout
    assert "were not sent within 1 s" in late.stderr
    assert "TCP/1/1000" in late.stdout


def test_ping_and_doctor(served: Served) -> None:
    done = served.client("ping", served.url, "--count", "3", "--interval", "20 ms", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lost"] == 0
    done = served.client("doctor", served.url)
    assert done.returncode == 0, done.stderr
    assert "server: Linux" in done.stdout
    assert "`tcplab serve` makes none" in done.stdout


def test_a_wrong_token_and_a_wrong_certificate_are_refused(served: Served) -> None:
    done = served.client("doctor", served.url, token="x" * 48)
    assert done.returncode == 4
    assert "token" in done.stderr
    done = served.client("doctor", f"tcplab://10.77.0.2?certificate={'0' * 64}")
    assert done.returncode == 4
    assert "certificate" in done.stderr
    done = served.client("doctor", "tcplab://10.77.0.2")
    assert done.returncode == 4
    assert "self-signed" in done.stderr
    assert served.events("admitted") == []


def test_a_run_that_is_too_long_is_refused_by_the_service(served: Served) -> None:
    done = served.client("bulk", "run", served.url, "--duration", "21 s")
    assert done.returncode == 4
    assert "20 s at most" in done.stderr


GARBAGE = """
import os, random, socket, sys
for number in range(200):
    with socket.create_connection(("10.77.0.2", 5230), timeout=60) as one:
        try:
            one.sendall(random.Random(number).randbytes(1 + number * 40))
        except OSError:
            pass
"""
SILENT = """
import socket, sys
held = []
for number in range(100):
    try:
        held.append(socket.create_connection(("10.77.0.2", 5230), timeout=60))
    except OSError:
        pass
print(len(held), flush=True)
sys.stdin.read()
"""
CONNECTS = """
import socket
for number in range(10_000):
    socket.create_connection(("10.77.0.2", 5230), timeout=60).close()
"""


def memory(process: int) -> int:
    """kB resident in the service."""
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if "VmRSS" in line]
    return int(line.split()[1])


def test_garbage_silence_and_10_000_connections_leave_it_serving(served: Served) -> None:
    agent = served.events("listening")[0]["pid"]
    assert served.python(GARBAGE).returncode == 0
    before = memory(agent)
    silent = subprocess.Popen(
        [*served.hosts.us._enter(), sys.executable, "-c", SILENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert silent.stdout is not None
        silent.stdout.readline()
        assert served.python(CONNECTS).returncode == 0
        # One address may hold so many places; they are free again when their time is over.
        wait_for(lambda: served.client("doctor", served.url).returncode == 0, patience=40)
    finally:
        silent.communicate()
    assert memory(agent) < before + 50_000
    assert sum(event["count"] for event in served.events("turned_away")) > 0


def test_more_clients_than_places_are_reported_so(served: Served) -> None:
    served.stop()
    served.start("--max-clients", "1")
    held = subprocess.Popen(
        [*served.hosts.us._enter(), *TCPLAB, "bulk", "run", served.url, "--duration", "15 s"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"TCPLAB_TOKEN": served.token},
    )  # fmt: skip
    try:
        wait_for(lambda: served.events("admitted") != [])
        done = served.client("doctor", served.url)
        assert done.returncode == 4
        assert "all places are taken" in done.stderr
    finally:
        held.terminate()
        held.wait(20)


def test_flows_arrive_at_the_ports_that_its_owner_has_named(served: Served) -> None:
    served.stop()
    served.start("--ports", "5300-5303")
    opened = "tcp dport {5230, 5300-5303} accept; udp dport 5300-5303 accept"
    with firewall(served.server, opened):
        for options in (("--streams", "3"), ("--reverse",), ("--udp", "10 Mbit/s")):
            done = served.client("bulk", "run", served.url, "--duration", "1 s", "--json", *options)
            assert done.returncode == 0, done.stderr
        # One more is for measuring the path.
        done = served.client("bulk", "run", served.url, "--duration", "1 s", "--streams", "5")
        assert done.returncode == 4
        assert "all of this service's ports are in use" in done.stderr


UNIT = ROOT / "packaging/systemd/tcplab-serve.service"


def test_it_serves_without_privileges_as_its_unit_has_it(served: Served) -> None:
    served.stop()
    served.start(by=("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"))
    capabilities = Path(f"/proc/{served.events('listening')[0]['pid']}/status").read_text()
    assert "CapEff:\t0000000000000000" in capabilities
    for options in ((), ("--reverse",), ("--udp", "10 Mbit/s")):
        done = served.client(
            "bulk", "run", served.url, "--duration", "1 s", "--cc", "reno", "--json", *options
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_its_unit_exposes_little() -> None:
    words = ("systemd-analyze", "security", "--offline=yes", "--threshold=18", "--no-pager", UNIT)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    # In tenths of its scale from 0 to 10. It exits with 1 above the threshold.
    assert done.returncode == 0, done.stdout


def test_who_is_not_on_the_list_is_not_answered(served: Served) -> None:
    served.stop()
    served.start("--allow", "192.0.2.0/24")
    done = served.client("doctor", served.url)
    assert done.returncode == 4, done.stdout
    assert served.events("admitted") == []
