"""Transfers over the TCP of the kernel that it runs in, through a bottleneck with a queue of that kernel.

It runs inside User-mode Linux in virtual time, with nothing but the standard library. A router joins the
hosts `a` and `b`: netem delays what either sends, and the queue is where the router sends to `b`.

    transfers.py CASES RESULTS

CASES is a JSON file: a list of `{name, queue, delay, drop_every, sysctls, controls, apart, ip, both_ways,
bursts, request, buffer, seconds}`. `queue` holds arguments of `tc qdisc add dev ...`, one list a command;
`delay` is that of one way in ms; of the packets from `a` one in `drop_every` is lost (0: none); `sysctls`,
below net.ipv4, are set in both hosts; `ip` is 4 or 6; without `bursts` each segment is a packet. A `buffer`
is set as SO_SNDBUF and SO_RCVBUF; none: both are auto-tuned. Each stream starts `apart` seconds after the one
before: one with each of `controls`, from `a` to `b`, or every second the other way (`both_ways`, with a queue
there too). With a `request`, which is `[bytes, bytes of the response, ms to think]`, each stream is a client
at `b` that asks a server at `a`.

RESULTS gets by name, for each stream, the bytes `received` within so many `seconds`, the segments
`retransmitted`, and `srtt`: the mean of the smoothed round-trip time in ms, sampled every 50 ms. Of all
streams, `responses` has the ms from each request that was answered to its response.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

_CLONE_NEWNET = 0x40000000
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_PORT = 5000
_ADDRESS = {("a", 4): "10.0.0.1", ("b", 4): "10.0.1.2", ("a", 6): "fd00:0::1", ("b", 6): "fd00:1::2"}
_MUCH = 1 << 20
_ROOM = bytearray(_MUCH)
# Offset and format of members of struct tcp_info.
_RTT, _TOTAL_RETRANS, _BYTES_RECEIVED = (68, "I"), (100, "I"), (128, "Q")


def main(cases: str, results: str) -> None:
    for node in "arb":
        _sh(f"ip netns add {node}")
    _link("a", "r", 0)
    _link("r", "b", 1)
    for node, router in [("a", "0.2"), ("b", "1.1")]:
        _sh(f"ip -n {node} route add default via 10.0.{router}")
        _sh(f"ip -n {node} route add default via fd00:{router.replace('.', '::')}")
    _sh("ip netns exec r sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    _sh("tc -n r qdisc add dev r-a clsact")
    _meet()
    answers, bursts = {}, None
    for case in json.loads(Path(cases).read_text(encoding="utf-8")):
        answers[case["name"]] = _run(case, bursts)
        bursts = case["bursts"]
    Path(results).write_text(json.dumps(answers), encoding="utf-8")


def _link(one: str, other: str, number: int) -> None:
    _sh(f"ip link add {one}-{other} netns {one} type veth peer name {other}-{one} netns {other}")
    for last, (node, device) in enumerate([(one, f"{one}-{other}"), (other, f"{other}-{one}")], 1):
        _sh(f"ip -n {node} address add 10.0.{number}.{last}/24 dev {device}")
        _sh(f"ip -n {node} address add fd00:{number}::{last}/64 dev {device} nodad")
        _sh(f"ip -n {node} link set dev {device} up")


def _meet() -> None:
    """First connections, as often as it takes until the interfaces are in service and neighbours known."""
    for ip in (4, 6):
        with _socket("b", ip) as listener:
            listener.bind((_ADDRESS["b", ip], _PORT))
            listener.listen()
            for _ in range(10):
                with _socket("a", ip) as first, contextlib.suppress(OSError):
                    first.settimeout(3)
                    first.connect((_ADDRESS["b", ip], _PORT))
                    break
                time.sleep(1)


class Stream:
    """A connection between the hosts."""

    def __init__(self, number: int, case: dict[str, Any]) -> None:
        control, ip = case["controls"][number].encode(), case["ip"]
        backwards = case["request"] is not None or (case["both_ways"] and number % 2 == 1)
        client, server = "ba" if backwards else "ab"
        self.listener, self.client = _socket(server, ip), _socket(client, ip)
        for end in (self.listener, self.client):
            # A receiver echoes marks as its control has it.
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if case["buffer"]:
                for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
                    end.setsockopt(socket.SOL_SOCKET, option, case["buffer"])
        self.to = (_ADDRESS[server, ip], _PORT + number)
        self.listener.bind(self.to)
        self.listener.listen()
        # A connection that could not be made is an error, not an endless wait for it.
        self.listener.settimeout(case["seconds"])
        self.server = self.client
        self.start = number * case["apart"]
        self.request = case["request"]
        self.srtt: list[float] = []
        self.responses: list[float] = []

    def ask(self) -> None:
        """The client, until the end."""
        time.sleep(self.start)
        with contextlib.suppress(OSError):
            self.client.connect(self.to)
            while self.request is None:
                self.client.send(bytes(1 << 16))
            size, answer, think = self.request
            while True:
                began = time.monotonic()
                self.client.sendall(bytes(size))
                if not _take(self.client, answer):
                    return
                self.responses.append((time.monotonic() - began) * 1e3)
                time.sleep(think / 1e3)

    def serve(self) -> None:
        """The server, until the end."""
        self.server, _ = self.listener.accept()
        self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            if self.request is None:
                while _take(self.server, _MUCH):
                    pass
                return
            size, answer, _ = self.request
            while _take(self.server, size):
                self.server.sendall(bytes(answer))

    def close(self) -> None:
        for one in (self.client, self.server, self.listener):
            # Reset, so that nothing of it is sent in the next case.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _take(of: socket.socket, size: int) -> bool:
    """Whether so much came."""
    # The kernel discards it as it arrives: no segment wakes this program.
    while size > 0 and (came := of.recv_into(_ROOM, min(size, _MUCH), socket.MSG_WAITALL | socket.MSG_TRUNC)):
        size -= came
    return size == 0


def _run(case: dict[str, Any], bursts: bool | None) -> dict[str, list[float]]:
    """The case; `bursts`: what the one before had."""
    sys.stderr.write(f"{case['name']}\n")
    # Few commands: here each takes as long as a second of a transfer.
    for node, device in [("a", "a-r"), ("b", "b-r")]:
        _enter(node)
        if case["bursts"] != bursts:
            _sh(f"ip link set dev {device} gso_max_segs {65535 if case['bursts'] else 1}")
        _tc([f"qdisc replace dev {device} root netem delay {case['delay']}ms limit 1000000"])
        for name, value in case["sysctls"].items():
            Path("/proc/sys/net/ipv4", name).write_text(str(value), encoding="ascii")
    _enter("r")
    # Qdiscs and a filter of the case before, where there are any.
    _tc(
        [*(f"qdisc del dev {device} root" for device in ("r-a", "r-b")), "filter del dev r-a ingress"],
        "-force",
    )
    devices = ("r-a", "r-b") if case["both_ways"] else ("r-b",)
    commands = [f"qdisc add dev {device} {' '.join(words)}" for device in devices for words in case["queue"]]
    if case["drop_every"]:
        chance = f"random determ drop {case['drop_every']}"
        commands.append(f"filter add dev r-a ingress matchall action ok {chance}")
    _tc(commands)

    streams = [Stream(number, case) for number in range(len(case["controls"]))]
    end = time.monotonic() + case["seconds"]
    threads = [threading.Thread(target=act) for one in streams for act in (one.serve, one.ask)]
    for thread in threads:
        thread.start()
    while (now := time.monotonic()) < end:
        for one in streams:
            # None before the connection is there.
            if srtt := _info(one.client, _RTT):
                one.srtt.append(srtt / 1e3)
        time.sleep(min(0.05, max(0.0, end - now)))
    received = [float(_info(one.server, _BYTES_RECEIVED)) for one in streams]
    retransmitted = [
        float(sum(_info(each, _TOTAL_RETRANS) for each in {one.client, one.server})) for one in streams
    ]
    answer = {
        "received": received,
        "retransmitted": retransmitted,
        "srtt": [sum(one.srtt) / len(one.srtt) for one in streams],
        "responses": [took for one in streams for took in one.responses],
    }
    for one in streams:
        one.close()
    for thread in threads:
        thread.join()
    for one in streams:
        for each in {one.client, one.server, one.listener}:
            each.close()
    time.sleep(1)
    return answer


def _enter(node: str) -> None:
    """Go on in a node's network."""
    with Path(f"/run/netns/{node}").open(encoding="ascii") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), node)


def _socket(node: str, ip: int) -> socket.socket:
    """A socket in a node's network."""
    _enter(node)
    return socket.socket(socket.AF_INET6 if ip == 6 else socket.AF_INET)


def _info(of: socket.socket, member: tuple[int, str]) -> int:
    offset, form = member
    (value,) = struct.unpack_from(form, of.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), offset)
    return int(value)


def _tc(commands: list[str], *options: str) -> None:
    """Commands of `tc` in this network. With `-force` they go on after one that fails, and show no error."""
    force = "-force" in options
    said = subprocess.DEVNULL if force else None
    subprocess.run(
        ["tc", *options, "-batch", "-"], input="\n".join(commands), text=True, check=not force, stderr=said
    )


def _sh(command: str) -> None:
    subprocess.run(command.split(), check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
