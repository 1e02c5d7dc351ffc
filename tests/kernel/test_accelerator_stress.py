"""An accelerator under stress: many connections, ends that reset, vanish or do not read, its own death."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .beside import (
    ADDRESS,
    CLIENT,
    CLIENT_ADDRESS,
    GONE,
    HOST,
    NEAR_ROUTER_ADDRESS,
    ROUTER,
    ROUTER_ADDRESS,
    SERVER,
    Network,
    Program,
)

CONNECTIONS = 10_000
# Buffers of both legs, bytes; Linux grants twice as much. A pipe between the legs holds 256 KiB.
BUFFER, PIPE = 200_000, 256 << 10
# A buffer that is not full takes a packet: Linux asks before (`tcp_can_ingest`, `sk_stream_memory_free`).
PACKET = 64 << 10
# The most that both legs and the pipe hold of one direction.
HELD = 4 * BUFFER + PIPE + 2 * PACKET
BOUNDED = {
    leg: {"send_buffer": BUFFER, "receive_buffer": BUFFER} for leg in ("towards_client", "towards_server")
}

_COMMON = """
import json, resource, selectors, socket, struct, sys, time

def say(**what):
    print(json.dumps(what))

def reset(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()

def buffers(one, size):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
"""
# Sends back what it gets, to any number of clients.
ECHO = (
    _COMMON
    + """
listener = socket.create_server(("", 5000), family=family, backlog=4096)
listener.setblocking(False)
ready = selectors.EpollSelector()
ready.register(listener, selectors.EVENT_READ)
say(event="serves")
while True:
    for key, _ in ready.select():
        if key.fileobj is listener:
            one, _ = listener.accept()
            ready.register(one, selectors.EVENT_READ)
        elif data := key.fileobj.recv(4096):
            key.fileobj.sendall(data)
        else:
            ready.unregister(key.fileobj)
            key.fileobj.close()
"""
)
# Opens connections, so many at a time before their answers; says how many were right; then ends them.
MANY = (
    _COMMON
    + """
count = int(sys.argv[2])
at_once = int(sys.argv[3])
opened = []
right = 0
while len(opened) < count:
    news = range(len(opened), min(count, len(opened) + at_once))
    for number in news:
        one = socket.socket(family)
        one.settimeout(50)
        one.connect((sys.argv[1], 5000))
        one.sendall(b"%08d" % number)
        opened.append(one)
    right += sum(opened[number].recv(8, socket.MSG_WAITALL) == b"%08d" % number for number in news)
say(event="open", right=right)
sys.stdin.readline()
ended = 0
for one in opened:
    one.shutdown(socket.SHUT_WR)
    ended += one.recv(1) == b""
say(event="ended", ended=ended)
sys.stdin.readline()
"""
)
# One connection, at either end. Words on the input say what to do with it; each is answered.
END = (
    _COMMON
    + """
if sys.argv[2] == "server":
    listener = socket.create_server(("", 5000), family=family)
    buffers(listener, 100_000)
    say(event="serves")
    one, _ = listener.accept()
else:
    one = socket.socket(family)
    buffers(one, 100_000)
    one.settimeout(30)
    one.connect((sys.argv[1], 5000))
one.settimeout(None)
say(event="connected")
sent = received = 0
right = True
block = bytes(range(251)) * 100

def acked():
    # `tcpi_bytes_acked` (linux/tcp.h), which counts the SYN of the end that connected.
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("Q", info, 120)[0] - (sys.argv[2] == "client")

for line in sys.stdin:
    word, *more = line.strip().strip('"').split()
    try:
        if word == "send":
            for _ in range(int(more[0])):
                at = sent % 251
                one.sendall(block[at:at + 10_000])
                sent += 10_000
        elif word == "fill":
            # Until no more is taken for two seconds.
            one.settimeout(2)
            try:
                while True:
                    at = sent % 251
                    sent += one.send(block[at:at + 10_000])
            except TimeoutError:
                one.settimeout(None)
        elif word == "read":
            # So many bytes, or to the end.
            wanted = int(more[0]) if more else None
            while wanted is None or received < wanted:
                data = one.recv(10_000)
                if not data:
                    break
                at = received % 251
                right = right and data == block[at:at + len(data)]
                received += len(data)
        elif word == "finish":
            one.shutdown(socket.SHUT_WR)
        elif word == "reset":
            reset(one)
            say(event="reset")
            continue
        say(event=word, sent=sent, received=received, right=right, acked=acked())
    except OSError as problem:
        say(event="broken", errno=problem.errno, sent=sent, received=received, acked=acked())
"""
)


def pair(net: Network, ip: int = 4) -> tuple[Program, Program]:
    """A connection's client and server."""
    server = net.start(SERVER, END, ADDRESS[ip], "server")
    server.next(event="serves")
    client = net.start(CLIENT, END, ADDRESS[ip], "client")
    client.next(event="connected")
    server.next(event="connected")
    return client, server


def do(program: Program, words: str) -> None:
    """Ask one end of a connection for something."""
    assert program.process.stdin is not None
    program.process.stdin.write(words + "\n")
    program.process.stdin.flush()


def counts(proxy: Program, **wanted: int) -> dict[str, Any]:
    """The report of an accelerator once it has these counts; it reports them each second."""
    return proxy.next(event="counts", **wanted)


def held_at_last(proxy: Program) -> int:
    """Bytes that an accelerator holds at a standstill. Earlier reports may not have been read yet."""
    reports: list[int] = []
    while len(reports) < 3 or len(set(reports[-3:])) > 1:
        reports.append(int(counts(proxy)["held"]))
    return reports[-1]


@pytest.mark.parametrize("ip", [4, 6])
def test_many_connections_at_a_time_are_all_split_and_ended(ip: int, net: Network) -> None:
    net.start(SERVER, ECHO, ADDRESS[ip]).next(event="serves")
    proxy = net.proxy("accelerate", {"connections": 2 * CONNECTIONS})
    before = resident(proxy)
    client = net.start(CLIENT, MANY, ADDRESS[ip], str(CONNECTIONS), "500")
    assert client.next(event="open")["right"] == CONNECTIONS
    said = counts(proxy, open=CONNECTIONS)
    assert (said["accepted"], said["broken"], said["refused"], said["passed"]) == (CONNECTIONS, 0, 0, 0)
    # The process keeps little of a connection that is idle.
    assert resident(proxy) - before < 2000 * CONNECTIONS
    do(client, "end")
    assert client.next(event="ended")["ended"] == CONNECTIONS
    # Other threads say ten times a second what they hold, and at once what they have open.
    said = counts(proxy, open=0, held=0)
    assert (said["accepted"], said["broken"]) == (CONNECTIONS, 0)


def resident(proxy: Program) -> int:
    """Memory of its process, bytes."""
    fields = Path(f"/proc/{proxy.process.pid}/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * resource.getpagesize()


@pytest.mark.parametrize("ip", [4, 6])
def test_connections_beyond_the_open_files_of_a_thread_are_split_by_another(ip: int, net: Network) -> None:
    """Whether the server or the router is addressed."""
    net.start(SERVER, ECHO, ADDRESS[ip]).next(event="serves")
    settings = {"connections": 600, "forward": {"5000": f"{HOST[ip]}:5000"}}
    proxy = net.proxy("accelerate", settings, files=400)
    # Of 168 that a thread has files for, it takes 152.
    clients = [
        net.start(CLIENT, MANY, address, "300", "5") for address in (ADDRESS[ip], NEAR_ROUTER_ADDRESS[ip])
    ]
    for client in clients:
        assert client.next(event="open")["right"] == 300
    said = counts(proxy, open=600)
    assert (said["accepted"], said["broken"], said["refused"], said["passed"]) == (600, 0, 0, 1)
    assert threads(proxy) == 4
    for client in clients:
        do(client, "end")
        assert client.next(event="ended")["ended"] == 300
    assert (counts(proxy, open=0)["broken"], proxy.end()["accepted"]) == (0, 600)


def test_connections_beyond_the_open_files_of_all_threads_pass(net: Network) -> None:
    """The limit that the settings name is above what 16 threads may have open."""
    net.start(SERVER, ECHO, ADDRESS[4]).next(event="serves")
    proxy = net.proxy("accelerate", {"connections": 1_000_000}, files=90)
    client = net.start(CLIENT, MANY, ADDRESS[4], "300", "1")
    assert client.next(event="open")["right"] == 300
    # Each has files for 13, one of them for a connection that comes until the diversion is closed.
    said = counts(proxy, passed=1)
    assert said["open"] in (192, 193)
    assert said["refused"] == 0
    assert threads(proxy) == 16


def threads(proxy: Program) -> int:
    """How many of its threads split connections."""
    tasks = Path(f"/proc/{proxy.process.pid}/task").iterdir()
    return 1 + sum((task / "comm").read_text(encoding="ascii").strip() == "accelerator" for task in tasks)


# Sends as much to each client as its argument says, and ends.
GIVE = (
    _COMMON
    + """
import threading
def give(one):
    one.sendall(bytes(int(sys.argv[2])))
    one.close()
listener = socket.create_server(("", 5000), family=family, backlog=4096)
say(event="serves")
while True:
    threading.Thread(target=give, args=(listener.accept()[0],), daemon=True).start()
"""
)
# Opens connections, and reads them to the end when asked to, each in turn.
SLOW = (
    _COMMON
    + """
opened = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(family)
    buffers(one, 50_000)
    one.settimeout(50)
    one.connect((sys.argv[1], 5000))
    opened.append(one)
say(event="open")
sys.stdin.readline()
read = []
for one in opened:
    read.append(0)
    while data := one.recv(1 << 20):
        read[-1] += len(data)
say(event="read", minimum=min(read), maximum=max(read))
"""
)


def test_slow_readers_take_no_open_files_from_others(net: Network) -> None:
    """Each would hold a pipe; there are files for fewer."""
    each, buffer = 500_000, 10_000
    net.start(SERVER, GIVE, ADDRESS[4], str(each)).next(event="serves")
    small = {leg: {"send_buffer": buffer, "receive_buffer": buffer} for leg in BOUNDED}
    proxy = net.proxy("accelerate", small, files=400)
    before = resident(proxy)
    client = net.start(CLIENT, SLOW, ADDRESS[4], "120")
    client.next(event="open")
    reports = (counts(proxy, open=120) for _ in range(30))
    # None reads: their data wait in the buffers.
    assert any(said["held"] > 120 * buffer for said in reports)
    # The process itself holds as much as it read at a time: no more than the buffer of a leg.
    assert resident(proxy) - before < 120 * 2 * buffer + 1_500_000
    do(client, "read")
    said = client.next(event="read")
    assert (said["minimum"], said["maximum"]) == (each, each)
    assert counts(proxy, open=0, accepted=120)["broken"] == 0


@pytest.mark.parametrize("resetting", ["client", "server"])
def test_a_reset_of_either_end_reaches_the_other(resetting: str, net: Network) -> None:
    proxy = net.proxy("accelerate", {})
    ends = dict(zip(("client", "server"), pair(net), strict=True))
    one = ends.pop(resetting)
    (other,) = ends.values()
    do(one, "send 100")
    do(other, "read 1000000")
    assert other.next(event="read")["right"]
    do(other, "read")
    do(one, "reset")
    assert other.next()["event"] in ("send", "broken")
    assert counts(proxy, open=0, accepted=1)["broken"] == 1


def test_a_client_that_vanishes_holds_up_the_server(net: Network) -> None:
    """Data that it has not acknowledged stay bounded, and the server's end ends both."""
    proxy = net.proxy("accelerate", BOUNDED)
    client, server = pair(net)
    do(client, "read 100000")
    do(server, "send 10")
    client.next(event="read")
    net.run(CLIENT, "nft", GONE)
    do(server, "fill")
    sent = server.next(event="fill")["sent"]
    # Twice each buffer on the way, and the server's own.
    assert sent - 100_000 < HELD + 200_000 + PACKET
    assert 0 < held_at_last(proxy) < HELD
    # One leg retransmits, the other one asks for a sign of life: each gives up when its end is gone.
    sockets = net.run(ROUTER, "ss", "-Htno", "state", "established").splitlines()
    timers = sorted(one.partition("timer:(")[2].partition(",")[0] for one in sockets)
    assert timers == ["keepalive", "on"]
    do(server, "reset")
    assert counts(proxy, open=0, accepted=1)["broken"] == 1


@pytest.mark.parametrize("idle", [False, True])
def test_a_client_that_vanishes_is_given_up_after_the_user_timeout(idle: bool, net: Network) -> None:
    proxy = net.proxy("accelerate", {**BOUNDED, "user_timeout": 3 * 10**9})
    client, server = pair(net)
    do(client, "read 100000")
    do(server, "send 10")
    client.next(event="read")
    net.run(CLIENT, "nft", GONE)
    if not idle:
        do(server, "fill")
    # Linux would retransmit for 15 minutes. Counts come each second.
    reports = (counts(proxy, accepted=1) for _ in range(60))
    said = next(said for said in reports if said["open"] == 0)
    assert (said["accepted"], said["broken"], said["held"]) == (1, 1, 0)
    assert net.run(ROUTER, "ss", "-Htn", "state", "established") == ""
    do(server, "read")
    server.next(event="broken")


def test_a_client_that_acknowledges_and_does_not_read_is_not_given_up(net: Network) -> None:
    proxy = net.proxy("accelerate", {**BOUNDED, "user_timeout": 3 * 10**9})
    client, server = pair(net)
    do(server, "fill")
    sent = server.next(event="fill")["sent"]
    for _ in range(8):
        assert counts(proxy, accepted=1)["open"] == 1
    do(client, f"read {sent}")
    assert client.next(event="read")["right"]


def test_a_client_that_does_not_read_slows_the_server(net: Network) -> None:
    proxy = net.proxy("accelerate", BOUNDED)
    client, server = pair(net)
    do(server, "fill")
    sent = server.next(event="fill")["sent"]
    # Data on the way are in buffers: twice each of both legs, of the ends, and a pipe.
    assert sent < HELD + 2 * (200_000 + PACKET)
    assert 0 < held_at_last(proxy) < HELD
    # All of it comes once it is read, and then more.
    do(server, "send 500")
    do(client, f"read {sent + 5_000_000}")
    assert client.next(event="read")["right"]
    assert server.next(event="send")["sent"] == sent + 5_000_000
    do(server, "finish")
    do(client, "read")
    assert client.next(event="read")["received"] == sent + 5_000_000
    do(client, "finish")
    assert counts(proxy, open=0)["broken"] == 0


def test_what_it_had_acknowledged_and_not_delivered_is_lost_with_it(net: Network) -> None:
    """The cost of a split connection, in bytes: they were acknowledged to the server."""
    proxy = net.proxy("accelerate", BOUNDED)
    client, server = pair(net)
    do(client, "read 100000")
    do(server, "fill")
    client.next(event="read")
    acked = server.next(event="fill")["acked"]
    # The client reads no more: what it has not got waits at the accelerator, or in its own buffer.
    held = held_at_last(proxy)
    assert held > 0
    proxy.kill()
    do(client, "read")
    # A reset discards what has not been read, too.
    received = client.next(event="broken")["received"]
    lost = acked - received
    assert held <= lost <= held + 2 * 100_000 + PACKET
    do(server, "send 1")
    assert server.next(event="broken")["acked"] == acked


def test_half_of_a_connection_that_has_ended_leaves_the_other_half(net: Network) -> None:
    proxy = net.proxy("accelerate", {})
    client, server = pair(net)
    do(client, "send 10")
    do(client, "finish")
    do(server, "read")
    assert server.next(event="read")["received"] == 100_000
    do(server, "send 500")
    do(client, "read 5000000")
    assert client.next(event="read")["right"]
    assert counts(proxy, open=1)["broken"] == 0
    do(server, "finish")
    do(client, "read")
    assert client.next(event="read", received=5_000_000)["right"]
    assert counts(proxy, open=0)["broken"] == 0


@pytest.mark.parametrize("ip", [4, 6])
def test_without_transparency_the_server_sees_the_router(ip: int, net: Network) -> None:
    who = """
import json, socket, sys
listener = socket.create_server(("", 5000), family=socket.AF_INET6, dualstack_ipv6=True)
print(json.dumps({"event": "serves"}))
while True:
    one, peer = listener.accept()
    one.sendall(peer[0].removeprefix("::ffff:").encode())
    one.close()
"""
    net.start(SERVER, who).next(event="serves")
    ask = f"import socket; print(socket.create_connection(({ADDRESS[ip]!r}, 5000), 30).recv(100).decode())"
    answers = []
    for settings in ({}, {"transparent": False}):
        proxy = net.proxy("accelerate", settings)
        answers.append(net.run(CLIENT, "python3", "-c", ask).strip())
        counts(proxy, open=0, accepted=1)
        proxy.end()
    assert answers == ([CLIENT_ADDRESS[ip], ROUTER_ADDRESS[ip]])


def test_it_can_be_addressed_as_a_proxy(net: Network) -> None:
    """The server sees the router; a connection to the server itself is split as well."""
    for ip in (4, 6):
        net.start(SERVER, ECHO, ADDRESS[ip]).next(event="serves")
    proxy = net.proxy("accelerate", {"forward": {"8443": f"{ADDRESS[4]}:5000", "8446": f"{HOST[6]}:5000"}})
    ask = """
import socket, sys
for to in sys.argv[1:]:
    host, _, port = to.rpartition(":")
    one = socket.create_connection((host, int(port)), 30)
    one.sendall(b"hello")
    assert one.recv(10) == b"hello"
    one.close()
"""
    places = [f"{NEAR_ROUTER_ADDRESS[4]}:8443", f"{NEAR_ROUTER_ADDRESS[6]}:8446", f"{ADDRESS[4]}:5000"]
    net.run(CLIENT, "python3", "-c", ask, *places)
    assert counts(proxy, open=0, accepted=3)["broken"] == 0


def test_curl_and_wget_fetch_through_it(net: Network, tmp_path: Path) -> None:
    """And through a cache and an accelerator in one router."""
    body = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(body)
    serve = net.command(SERVER, "python3", "-u", "-m", "http.server", "--bind", "::", "80")
    server = subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for ip in (4, 6):
            url = f"http://{HOST[ip]}/file"
            ready = ("--retry", "20", "--retry-connrefused", "--silent", "--output", "/dev/null")
            net.run(CLIENT, "curl", *ready, url)
            for cached in (False, True):
                proxy = net.proxy("accelerate", {})
                cache = net.proxy("cache", {"ports": [80]}) if cached else None
                for number, words in enumerate((("curl", "--silent", "-o"), ("wget", "--quiet", "-O"))):
                    got = tmp_path / f"{ip}-{cached}-{number}"
                    net.run(CLIENT, *words, str(got), url)
                    assert got.read_bytes() == body
                counted = proxy.end()
                # The cache comes first, and its own connections are not split.
                assert (counted["accepted"], counted["broken"]) == ((0, 0) if cached else (2, 0))
                if cache is not None:
                    assert cache.end()["accepted"] == 2
    finally:
        server.kill()
        server.wait(60)


def test_its_death_ends_the_connections_with_a_reset(net: Network) -> None:
    """New ones pass the router."""
    proxy = net.proxy("accelerate", {})
    client, server = pair(net)
    do(client, "read 1000000")
    do(server, "send 100000")
    client.next(event="read")
    do(client, "read")
    proxy.kill()
    for end in (client, server):
        assert end.next()["event"] == "broken"
    server.kill()
    client, server = pair(net)
    do(client, "send 100")
    do(server, "read 1000000")
    assert server.next(event="read")["right"]
