"""Hosts without tcplab at the far end: discard, chargen and echo of inetd, and an iperf3 server."""

from __future__ import annotations

import shutil
import sys

import pytest

from .hosts import Hosts, wait_for
from .running import Run

# As RFC 862, 863 and 864 have them: what inetd serves.
SERVICES = """
import socketserver, threading

class Discard(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(1 << 16):
            pass

class Chargen(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while True:
                self.request.sendall(b"x" * (1 << 16))
        except OSError:
            pass

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)

socketserver.ThreadingTCPServer.daemon_threads = True
for port, service in ((9, Discard), (19, Chargen), (7, Echo)):
    server = socketserver.ThreadingTCPServer(("10.77.0.3", port), service)
    threading.Thread(target=server.serve_forever).start()
"""
FLOW = """
tcplab: 1
name: to-a-peer
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - %s
duration: 3 s
sample: {sockets: 20 ms}
"""


@pytest.fixture(scope="module", autouse=True)
def _served(hosts: Hosts) -> None:
    right = hosts.all["right"]
    right.start(sys.executable, "-c", SERVICES)
    wait_for(lambda: ":7 " in right.run("ss", "-Htln").stdout)


def run(hosts: Hosts, flow: str, right: str, code: int = 0) -> tuple[Run, str]:
    made = Run(hosts, FLOW % flow, at={"left": "ssh://10.77.0.2", "right": right}, default_places=False)
    ended, said = made.end()
    assert ended == code, said
    return made, said


def test_discard_takes_a_flow_and_says_nothing_of_it(hosts: Hosts) -> None:
    made, _ = run(hosts, "{name: bulk, kind: tcp, cc: reno, duration: 2 s}", "discard://10.77.0.3")
    [flow] = made.table("flows").iter_rows(named=True)
    assert flow["bytes_sent"] > 0
    assert flow["bytes_received"] is None
    assert flow["goodput"] is None
    assert made.table("sockets")["node"].unique().to_list() == ["left"]
    assert made.manifest["facts"]["peers"] == {"right": "10.77.0.3"}
    assert list(made.manifest["facts"]["hosts"]) == ["left"]


def test_chargen_sends_a_flow_from_the_peer(hosts: Hosts) -> None:
    flow = "{name: bulk, from: right, to: left, kind: tcp, cc: reno, streams: 2, duration: 2 s}"
    made, _ = run(hosts, flow, "chargen://10.77.0.3")
    flows = made.table("flows")
    assert flows.height == 2
    assert (flows["bytes_received"] > 0).all()
    assert flows["bytes_sent"].null_count() == 2
    assert (flows["goodput"] > 0).all()
    # The peer would send for as long as the connection stands: to the run's end, a second later.
    assert (flows["end"] < 3e9).all()
    assert flows["complete"].all()


def test_echo_answers_requests_as_long_as_its_answers(hosts: Hosts) -> None:
    flow = "{name: asks, kind: request, request: 200 B, response: 200 B, count: 50}"
    made, _ = run(hosts, flow, "echo://10.77.0.3")
    [row] = made.table("flows").iter_rows(named=True)
    assert row["bytes_received"] == 50 * 200
    assert made.table("echoes").height == 50


def test_this_machine_sends_to_a_peer(hosts: Hosts) -> None:
    text = FLOW % "{name: bulk, kind: tcp, cc: reno, duration: 1 s}"
    made = Run(hosts, text, at={"left": "local:", "right": "discard://10.77.0.3"}, default_places=False)
    status, said = made.end()
    assert status == 0, said
    assert made.table("flows")["bytes_sent"].sum() > 0
    assert made.manifest["facts"]["hosts"]["left"]["address"] == "10.77.0.1"


def test_an_iperf3_server_is_tested_in_both_directions(hosts: Hosts) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed")
    right = hosts.all["right"]
    server = right.start("iperf3", "-s", "-B", "10.77.0.3", "-p", "5301")
    wait_for(lambda: ":5301 " in right.run("ss", "-Htln").stdout)
    try:
        peer = "iperf3://10.77.0.3:5301"
        made, _ = run(hosts, "{name: bulk, kind: tcp, cc: reno, duration: 1 s, streams: 2}", peer)
        assert (made.table("flows")["bytes_sent"] > 0).all()
        # A row of each stream at every time, so that they add up to the flow.
        times = made.table("intervals").group_by("time").len()
        assert times["len"].unique().to_list() == [2]
        test = (
            "{name: one, kind: tcp, cc: reno, duration: 1 s}\n  - {name: two, kind: tcp, cc: reno, start: %s}"
        )
        _, said = run(hosts, test % "0.5 s", peer, code=3)
        assert "flows.two: iperf3 serves one test at a time: one runs until 1 s" in said
        run(hosts, test % "2 s", peer)
        backward = "{name: bulk, from: right, to: left, kind: tcp, cc: reno, duration: 1 s}"
        made, _ = run(hosts, backward, peer)
        [down] = made.table("flows").iter_rows(named=True)
        assert down["bytes_received"] > 0
    finally:
        server.terminate()
        server.wait(10)


def test_a_web_server_is_asked_for_the_object_of_its_url(hosts: Hosts) -> None:
    right = hosts.all["right"]
    pages = right.folder / "pages"
    pages.mkdir()
    (pages / "large file").write_bytes(bytes(300_000))
    serve = ("--directory", "/run/keep/pages", "--bind", "10.77.0.3", "--protocol", "HTTP/1.1", "8000")
    right.start(sys.executable, "-m", "http.server", *serve)
    wait_for(lambda: ":8000 " in right.run("ss", "-Htln").stdout)
    flow = "{name: web, kind: http, sizes: [1 kB], connections: 2, page: 2, count: 5}"
    made, _ = run(hosts, flow, "http://10.77.0.3:8000/large%20file?who")
    fetches = made.table("fetches")
    assert fetches["bytes"].to_list() == [300_000] * 10
    assert fetches["size"].to_list() == [300_000] * 10
    assert sorted(fetches["stream"].unique()) == [0, 1]
    assert (fetches["first_byte"] <= fetches["duration"]).all()
    assert made.table("flows")["bytes_received"].sum() > 3_000_000
    assert list(made.manifest["facts"]["hosts"]) == ["left"]
    _, said = run(hosts, flow, "http://10.77.0.3:8000/nothing", code=4)
    assert "the server answered 404" in said


def test_a_peer_that_does_not_serve_is_named(hosts: Hosts) -> None:
    _, said = run(hosts, "{name: bulk, kind: tcp, cc: reno}", "discard://10.77.0.3:99", code=4)
    assert "bulk: nothing passed between left and right, 10.77.0.3, TCP port 99" in said
    assert "check that discard is served there" in said


@pytest.mark.parametrize(
    ("flow", "peer", "message"),
    [
        ("{name: a, from: right, to: left, kind: tcp, cc: reno}", "discard", "discard sends nothing"),
        ("{name: a, kind: tcp, cc: reno}", "chargen", "chargen only sends"),
        ("{name: a, kind: request, request: 1 B, response: 2 B}", "echo", "set `response: 1 B`"),
        ("{name: a, kind: request, request: 1 B, response: 1 B}", "iperf3", "flows of kind tcp or udp"),
        (
            "{name: a, kind: http, sizes: [1 kB], from: right, to: left}",
            "http",
            "a web server begins nothing",
        ),
        ("{name: a, kind: tcp, cc: reno}", "http", "a web server takes flows of kind http"),
        ("{name: a, kind: http, sizes: [1 kB], ranges: 2}", "http", "leave out `ranges`"),
    ],
)
def test_a_flow_that_a_peer_cannot_serve_is_refused(hosts: Hosts, flow: str, peer: str, message: str) -> None:
    _, said = run(hosts, flow, f"{peer}://10.77.0.3", code=3)
    assert message in said
