"""Many clients of one `tcplab serve` at a time, and some that behave badly beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import polars as pl
import pytest

from .hosts import obstacle, wait_for
from .test_serve import TCPLAB, Served

pytestmark = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))

CLIENTS = 64
# Each thread is a client: a connection, an agent, a run. All are admitted before the first run starts.
CROWD = """
import json, socket, sys, tempfile, threading, time
from pathlib import Path
from typing import Any
from tcplab.engine.remote.agents import RemoteAgents
from tcplab.engine.remote.place import Place
from tcplab.engine.remote.service import ServiceConnection

url, count = sys.argv[1], int(sys.argv[2])
admitted, logging_in = [], threading.Semaphore(8)
received = [0] * count

def client(number):
    name = f"client{number}"
    with logging_in:
        connection = ServiceConnection(name, Place.read(url))
        connection.prepare()
        connection.start()
        agents = RemoteAgents([connection], Path(tempfile.mkdtemp(dir="/tmp")))
        agents.greet()
        admitted.append(number)
    while len(admitted) < count:
        agents.next_event(0.2)
    flow: dict[str, Any] = {"name": "bulk", "from": "us", "to": name, "start": 0, "streams": 1, "kind": "tcp"}
    flow |= {"cc": {"name": "reno"}, "bytes": 200_000, "sender": {}, "receiver": {}}
    agents.compare_clocks()
    agents.ask([(name, {"do": "configure", "node": name})])
    [answer] = agents.ask([(name, {"do": "flow", "role": "server", "address": "10.77.0.2", "flow": flow})])
    now = time.monotonic_ns()
    offset, _ = agents.clocks[name].offset_at(now)
    agents.ask([(name, {"do": "start", "at": now + offset, "duration": 60_000_000_000})])
    with socket.create_connection(("10.77.0.2", answer["ports"][0]), timeout=60) as data:
        data.sendall(b"x" * 200_000)
        data.shutdown(socket.SHUT_WR)
        data.recv(1)
        finished = False
        while not finished or received[number] < 200_000:
            event = agents.next_event(0.2)
            if event is not None and event.name in ("gone", "error"):
                raise SystemExit(str(event))
            if event is not None and event.name == "progress":
                received[number] = event.content["flows"]["bulk"]["received"]
            finished = finished or event is not None and event.name == "finished"
    agents.close()
    connection.close()

threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(120)
print(json.dumps(received))
"""
# Bytes that trickle in: no line ever ends, and nobody is silent.
SLOWLORIS = """
import select, socket, sys, time
held = [socket.create_connection(("10.77.0.2", 5230), timeout=5) for _ in range(24)]
print("held", flush=True)
closed, begin = set(), time.monotonic()
while len(closed) < len(held) and time.monotonic() < begin + 60:
    for one in held:
        try:
            one.send(b"\\x16")
            if select.select([one], [], [], 0)[0] and not one.recv(99):
                closed.add(one)
        except OSError:
            closed.add(one)
    time.sleep(0.5)
print(len(closed), time.monotonic() - begin)
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("crowd"))
    try:
        made.hosts.up()
        yield made
    finally:
        made.hosts.down()


@pytest.fixture
def served(network: Served) -> Iterator[Served]:
    network.start("--max-clients", str(CLIENTS))
    try:
        yield network
    finally:
        network.stop()


def test_64_clients_run_at_the_same_time(served: Served) -> None:
    done = served.python(CROWD, served.url, str(CLIENTS))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [200_000] * CLIENTS, done.stderr
    assert len(served.events("admitted")) == CLIENTS
    # Their places are free again, and nothing of their agents is left.
    wait_for(lambda: len(served.events("ended")) == CLIENTS)
    wait_for(lambda: len(served.server.agents()) <= 1)


def test_a_run_over_many_hosts_loses_none_while_it_connects_to_the_others(served: Served) -> None:
    names = [f"h{number}" for number in range(24)]
    scenario = {
        "tcplab": 1,
        "name": "many",
        "network": {
            "nodes": ["left", *names],
            "links": [{"ends": ["left", name], "rate": "unlimited"} for name in names],
        },
        "flows": [
            {"name": name, "from": "left", "to": name, "kind": "tcp", "cc": "reno", "bytes": "200 kB"}
            for name in names
        ],
        "sample": {"sockets": "1 s"},
        "duration": "30 s",
    }
    folder = served.hosts.us.folder
    (folder / "many.yaml").write_text(json.dumps(scenario))
    at = [word for name in names for word in ("--at", f"{name}={served.url}")]
    done = served.client(
        "run", "/run/keep/many.yaml", "--engine", "remote", "--at", "left=local:", *at,
        "--output", "/run/keep/many", "--no-report",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    flows = pl.read_parquet(folder / "many/run-1/flows.parquet")
    assert flows["bytes_received"].to_list() == [200_000] * len(names)


def test_bytes_that_trickle_in_are_given_up_and_others_are_served_meanwhile(served: Served) -> None:
    loris = subprocess.Popen(
        [*served.hosts.us._enter(), sys.executable, "-c", SLOWLORIS], stdout=subprocess.PIPE, text=True
    )
    assert loris.stdout is not None
    assert loris.stdout.readline() == "held\n"
    done = served.client("doctor", served.url)
    assert done.returncode == 0, done.stderr
    said, _ = loris.communicate(timeout=90)
    count, seconds = said.split()
    assert (int(count), float(seconds) < 60) == (24, True)


def test_a_client_that_vanishes_in_mid_run_is_given_up(served: Served) -> None:
    us = served.hosts.us
    client = subprocess.Popen(
        [*us._enter(), *TCPLAB, "bulk", "run", served.url, "--duration", "60 s"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"TCPLAB_TOKEN": served.token},
    )  # fmt: skip
    try:
        wait_for(lambda: served.events("admitted") != [], patience=60)
        # No FIN and no RST reach the server: its connection stays half open.
        us.run("ip", "link", "set", "eth0", "down")
        wait_for(lambda: served.events("ended") != [], patience=60)
    finally:
        client.kill()
        client.wait()
        us.run("ip", "link", "set", "eth0", "up")
    wait_for(lambda: len(served.server.agents()) <= 1)
    done = served.client("doctor", served.url)
    assert done.returncode == 0, done.stderr
