"""Ends of a cache on the real stack that are slow, leave or vanish, and its own death."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from .beside import CLIENT, GONE, HOST, SERVER, Network, Program
from .cached import SLOW, cache, sockets, status


def test_a_client_that_takes_its_time_is_served(net: Network, origin: Program) -> None:
    """As a browser that connects before it has anything to ask."""
    proxy = cache(net)
    late = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 80), 30)
time.sleep(2)
peer.sendall(b"GET /l/5/60 HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n")
said = b""
while data := peer.recv(1000):
    said += data
assert said.endswith(b"lllll"), said
"""
    for _ in range(2):
        net.run(CLIENT, "python3", "-c", late, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"], counts["hits"], counts["misses"]) == (0, 0, 1, 1)


@pytest.mark.parametrize("gone", [CLIENT, SERVER])
def test_an_end_that_vanishes_is_given_up_after_the_user_timeout(
    gone: str, net: Network, origin: Program
) -> None:
    settings = {"size": 10_000_000, "user_timeout": 3 * 10**9}
    proxy = net.proxy("cache", {"cache": settings, "ports": [80]})
    slow = net.start(CLIENT, SLOW, HOST[4], "/z/30000000/60")
    slow.next(event="begun")
    net.run(gone, "nft", GONE)
    if gone == SERVER:
        slow.send({})
    # Linux would wait for 15 minutes or longer. Counts come each second.
    reports = (proxy.next(event="counts", accepted=1) for _ in range(60))
    said = next(said for said in reports if said["open"] == 0)
    assert (said["broken"], said["memory"], said["stored"]) == (1, 0, 0)
    assert sockets(net) == []


def test_a_client_that_does_not_read_holds_no_memory_of_the_cache(net: Network, origin: Program) -> None:
    """An object larger than the cache is neither stored nor read ahead; others are served meanwhile."""
    legs = {
        leg: {"send_buffer": 100_000, "receive_buffer": 100_000}
        for leg in ("towards_client", "towards_server")
    }
    proxy = net.proxy("cache", {"cache": {"size": 1_000_000}, "ports": [80], **legs})
    slow = net.start(CLIENT, SLOW, HOST[4], "/z/30000000/60")
    slow.next(event="begun")
    url = f"http://{HOST[4]}/a/100/60"
    assert [status(net, url)[1] for _ in range(2)] == ["fwd=uri-miss", "hit"]
    held = [int(one.split()[0]) + int(one.split()[1]) for one in sockets(net)]
    assert sum(held) < 30_000_000 / 10, "the rest is still the server's"
    said = proxy.next(event="counts", hits=1)
    assert said["memory"] == 100
    slow.send({})
    assert slow.next(event="read")["bytes"] > 30_000_000
    assert proxy.end()["broken"] == 0


def test_a_client_that_leaves_takes_nothing_with_it(net: Network, origin: Program, tmp_path: Path) -> None:
    """Half an object is not stored."""
    proxy = cache(net)
    path = "/s/5000/60/stalls"
    part = tmp_path / "part"
    words = ["curl", "--silent", "--no-buffer", "-o", str(part), f"http://{HOST[4]}{path}"]
    fetch = subprocess.Popen(net.command(CLIENT, *words))
    while not part.exists() or part.stat().st_size < 1000:
        assert fetch.poll() is None
        time.sleep(0.05)
    assert proxy.next(event="counts", misses=1)["memory"] == 1000
    fetch.kill()
    fetch.wait(60)
    origin.kill()
    assert status(net, f"http://{HOST[4]}{path}")[0] == "502", "nothing of it is stored"
    said = proxy.next(event="counts", open=0, misses=2)
    assert (said["memory"], said["stored"]) == (0, 0)


def test_its_death_ends_fetches_with_an_error(net: Network, origin: Program, tmp_path: Path) -> None:
    """Connections that come afterwards pass the router."""
    proxy = cache(net)
    url = f"http://{HOST[4]}/s/5000/60/stalls"
    part = tmp_path / "part"
    fetch = subprocess.Popen(net.command(CLIENT, "curl", "--silent", "--no-buffer", "-o", str(part), url))
    origin.next(path="/s/5000/60/stalls")
    while not part.exists() or part.stat().st_size < 1000:
        assert fetch.poll() is None
        time.sleep(0.05)
    proxy.kill()
    assert fetch.wait(60) == 56, "recv failure: connection reset by peer (curl(1))"
    assert status(net, f"http://{HOST[4]}/a/100/60") == ("200", "")
