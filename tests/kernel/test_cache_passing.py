"""Requests that a cache on the real stack passes on: other methods and other protocols."""

from __future__ import annotations

import os
from pathlib import Path

from .beside import CLIENT, HOST, SERVER, Network, Program
from .cached import cache, curl, status

# Answers whatever comes, with text that is not HTTP.
SHOUTER = """
import json, socket
listener = socket.create_server(("0.0.0.0", 80))
print(json.dumps({"event": "serves"}))
while True:
    peer, _ = listener.accept()
    while data := peer.recv(100):
        peer.sendall(data.upper())
    peer.close()
"""


def test_what_is_not_for_a_cache_passes(net: Network, origin: Program) -> None:
    proxy = cache(net)
    unstored = f"http://{HOST[4]}/u/100/60/unstored"
    assert [status(net, unstored)[1] for _ in range(2)] == ["fwd=uri-miss"] * 2
    url = f"http://{HOST[4]}/p/100/60"
    assert [status(net, url)[1] for _ in range(2)] == ["fwd=uri-miss", "hit"]
    # curl waits for a 100 Continue before a body of this size.
    body = "0123456789" * 200_000
    path = Path(f"/tmp/tcplab-cache-{os.getpid()}")
    try:
        path.write_text(body, encoding="ascii")
        assert curl(net, "--data-binary", f"@{path}", url) == body[::-1]
    finally:
        path.unlink(missing_ok=True)
    assert status(net, url)[1] == "fwd=uri-miss", "what was changed is not stored any longer"
    assert proxy.end()["passed"] == 1


def test_other_protocols_pass(net: Network) -> None:
    net.start(SERVER, SHOUTER).next(event="serves")
    proxy = cache(net)
    talk = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), 30)
for word in (b"\\x01\\x02 one", b"two"):
    peer.sendall(word)
    assert peer.recv(100) == word.upper()
peer.shutdown(socket.SHUT_WR)
assert peer.recv(100) == b""
"""
    # Words that a request could begin with, too: after three seconds it is clear that none follows.
    for code in (talk, talk.replace("\\x01\\x02 one", "one")):
        net.run(CLIENT, "python3", "-c", code, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"]) == (2, 0)


def test_a_protocol_in_which_the_server_speaks_first_passes(net: Network) -> None:
    greeter = """
import json, socket
listener = socket.create_server(("0.0.0.0", 80))
print(json.dumps({"event": "serves"}))
while True:
    peer, _ = listener.accept()
    peer.sendall(b"220 welcome")
    while data := peer.recv(100):
        peer.sendall(data.upper())
    peer.close()
"""
    net.start(SERVER, greeter).next(event="serves")
    proxy = cache(net)
    talk = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), 30)
assert peer.recv(100) == b"220 welcome"
peer.sendall(b"get x")
assert peer.recv(100) == b"GET X"
peer.shutdown(socket.SHUT_WR)
assert peer.recv(100) == b""
"""
    net.run(CLIENT, "python3", "-c", talk, HOST[4])
    counts = proxy.end()
    assert (counts["passed"], counts["broken"]) == (1, 0)
