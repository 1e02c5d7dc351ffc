"""Transfers over the TCP of the kernel that it runs in, through a bottleneck with a queue of that kernel.

It runs inside User-mode Linux in virtual time, with nothing but the standard library. A router joins the
hosts `a` and `b`: netem delays what either sends, and the queue is where the router sends to `b`. Offloads
are off: each segment is a packet.

    transfers.py CASES RESULTS

CASES is a JSON file: a list of `{name, queue, delay, drop_every, sysctls, controls, apart, seconds}`.
`queue` holds arguments of `tc qdisc add dev ...`, one list a command; `delay` is that of one way in ms; of
the packets from `a` one in `drop_every` is lost (0: none); `sysctls`, below net.ipv4, are set in both hosts;
each stream starts `apart` seconds after the one before. RESULTS gets by name, for each stream, the bytes
`received` within so many `seconds`, the segments `retransmitted`, and `srtt`: the mean of the smoothed
round-trip time in ms, sampled every 10 ms.
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
_PORT = 5000
_RTT, _TOTAL_RETRANS = 68, 100  # offsets in struct tcp_info


def main(cases: str, results: str) -> None:
    for node in "arb":
        _sh(f"ip netns add {node}")
    _link("a", "r", 0)
    _link("r", "b", 1)
    _sh("ip -n a route add default via 10.0.0.2")
    _sh("ip -n b route add default via 10.0.1.1")
    _sh("ip netns exec r sysctl -q -w net.ipv4.ip_forward=1")
    _sh("tc -n r qdisc add dev r-a clsact")
    _meet()
    answers = {case["name"]: _run(case) for case in json.loads(Path(cases).read_text(encoding="utf-8"))}
    Path(results).write_text(json.dumps(answers), encoding="utf-8")


def _link(one: str, other: str, number: int) -> None:
    _sh(f"ip link add {one}-{other} netns {one} type veth peer name {other}-{one} netns {other}")
    for last, (node, device) in enumerate([(one, f"{one}-{other}"), (other, f"{other}-{one}")], 1):
        _sh(f"ip -n {node} address add 10.0.{number}.{last}/24 dev {device}")
        _sh(f"ip -n {node} link set dev {device} up gso_max_segs 1")


def _meet() -> None:
    """A first connection, as often as it takes until the interfaces are in service and neighbours known."""
    with _socket("b") as listener:
        listener.bind(("10.0.1.2", _PORT))
        listener.listen()
        for _ in range(10):
            with _socket("a") as first, contextlib.suppress(OSError):
                first.settimeout(3)
                first.connect(("10.0.1.2", _PORT))
                return
            time.sleep(1)


def _run(case: dict[str, Any]) -> dict[str, list[float]]:
    sys.stderr.write(f"{case['name']}\n")
    for node, device in [("a", "a-r"), ("b", "b-r")]:
        _sh(f"tc -n {node} qdisc replace dev {device} root netem delay {case['delay']}ms limit 1000000")
        for name, value in case["sysctls"].items():
            setting = f"net.ipv4.{name}={value}"
            subprocess.run(["ip", "netns", "exec", node, "sysctl", "-q", "-w", setting], check=True)
    subprocess.run(
        ["tc", "-n", "r", "qdisc", "del", "dev", "r-b", "root"], check=False, stderr=subprocess.DEVNULL
    )
    for words in case["queue"]:
        subprocess.run(["tc", "-n", "r", "qdisc", "add", "dev", "r-b", *words], check=True)
    _sh("tc -n r filter del dev r-a ingress")
    if case["drop_every"]:
        chance = f"random determ drop {case['drop_every']}"
        _sh(f"tc -n r filter add dev r-a ingress matchall action ok {chance}")

    listener = _socket("b")
    listener.bind(("10.0.1.2", _PORT))
    # A receiver echoes marks as its control has it, which is its listener's.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, case["controls"][0].encode())
    listener.listen(len(case["controls"]))
    # A connection that could not be made is an error, not an endless wait for it.
    listener.settimeout(case["seconds"])
    senders = [_socket("a") for _ in case["controls"]]
    received = [0] * len(senders)

    def send(sender: socket.socket, start: float) -> None:
        time.sleep(start)
        with contextlib.suppress(OSError):
            sender.connect(("10.0.1.2", _PORT))
            while True:
                sender.send(bytes(1 << 16))

    def receive(receiver: socket.socket, stream: int) -> None:
        with contextlib.suppress(OSError):
            while data := receiver.recv(1 << 16):
                received[stream] += len(data)

    for number, (sender, control) in enumerate(zip(senders, case["controls"], strict=True)):
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        sender.bind(("10.0.0.1", _PORT + number))
    end = time.monotonic() + case["seconds"]
    threads = [
        threading.Thread(target=send, args=[sender, number * case["apart"]])
        for number, sender in enumerate(senders)
    ]
    for thread in threads:
        thread.start()
    receivers = []
    for _ in senders:
        receiver, (_, port) = listener.accept()
        receivers.append(receiver)
        threads.append(threading.Thread(target=receive, args=[receiver, port - _PORT]))
        threads[-1].start()
    samples: list[list[float]] = [[] for _ in senders]
    while (now := time.monotonic()) < end:
        for sender, rtts in zip(senders, samples, strict=True):
            rtts.append(_info(sender, _RTT) / 1e3)
        time.sleep(min(0.01, max(0.0, end - now)))
    answer = {
        "received": [float(count) for count in received],
        "retransmitted": [float(_info(sender, _TOTAL_RETRANS)) for sender in senders],
        "srtt": [sum(rtts) / len(rtts) for rtts in samples],
    }
    for one in [*senders, *receivers, listener]:
        # Reset, so that nothing of it is sent in the next case.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    for one in [*senders, *receivers, listener]:
        one.close()
    time.sleep(1)
    return answer


def _socket(node: str) -> socket.socket:
    """A socket in a node's network."""
    with Path(f"/run/netns/{node}").open(encoding="ascii") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), node)
    return socket.socket()


def _info(of: socket.socket, offset: int) -> int:
    (value,) = struct.unpack_from("I", of.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), offset)
    return int(value)


def _sh(command: str) -> None:
    subprocess.run(command.split(), check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
