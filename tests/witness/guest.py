"""Offers packets to queue disciplines of the kernel that it runs in, and writes down when each one leaves.

It runs inside User-mode Linux in virtual time, with nothing but the standard library. Packets leave one
end of a pair of veths, through the discipline, and are received with the kernel's own time stamps at the
other.

    guest.py CASES RESULTS

CASES is a JSON file: a list of `{name, qdisc, arrivals, drain}`. `qdisc` holds the arguments of `tc qdisc
replace dev out`, one list a command; `arrivals` are `[ns, flow, bytes, tos]`, the bytes those of the
Ethernet frame; `drain` is for how many seconds after the last arrival packets may leave. RESULTS gets by
name `sent`, when each arrival was offered, `left`, when it left (null: it was dropped), both in ns since
the first, `tos`, as it left, and `tc`, what `tc -s` said at the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_PR_SET_TIMERSLACK = 29
_ETH_P_IP = 0x0800
_CLOCK = time.CLOCK_REALTIME


def main(cases: str, results: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    _sh("ip link add out type veth peer name in")
    for name in ("out", "in"):
        _sh(f"ip link set {name} up")
    answers = {case["name"]: _run(case) for case in json.loads(Path(cases).read_text(encoding="utf-8"))}
    Path(results).write_text(json.dumps(answers), encoding="utf-8")


def _run(case: dict[str, Any]) -> dict[str, Any]:
    subprocess.run(["tc", "qdisc", "del", "dev", "out", "root"], check=False, stderr=subprocess.DEVNULL)
    for words in case["qdisc"]:
        subprocess.run(["tc", "qdisc", "replace", "dev", "out", *words], check=True)
    ours = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    ours.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 29)
    ours.bind(("out", _ETH_P_IP))
    theirs = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
    theirs.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 28)
    theirs.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    theirs.bind(("in", _ETH_P_IP))
    theirs.setblocking(False)
    # Jiffies start at the same phase in every case.
    time.sleep(1 - time.monotonic() % 1)

    sent: list[int] = []
    left: list[int | None] = [None] * len(case["arrivals"])
    marks: list[int | None] = [None] * len(case["arrivals"])
    begin = time.clock_gettime_ns(_CLOCK)
    for number, (at, flow, length, tos) in enumerate(case["arrivals"]):
        wait = begin + at - time.clock_gettime_ns(_CLOCK)
        if wait > 0:
            time.sleep(wait / 1e9)
        sent.append(time.clock_gettime_ns(_CLOCK) - begin)
        # The call says so when the discipline refuses a packet.
        with contextlib.suppress(OSError):
            ours.send(_frame(number, flow, length, tos))
        _receive(theirs, begin, left, marks)
    time.sleep(case["drain"])
    _receive(theirs, begin, left, marks)
    said = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", "out"], check=True, capture_output=True)
    ours.close()
    theirs.close()
    return {"sent": sent, "left": left, "tos": marks, "tc": json.loads(said.stdout)}


def _frame(number: int, flow: int, length: int, tos: int) -> bytes:
    """An Ethernet frame with a UDP packet of a flow; its payload begins with the packet's number."""
    udp = struct.pack("!HHHHI", 5000 + flow % 50000, 9, length - 34, 0, number)
    sources, targets = bytes([10, 0, flow >> 8 & 255, 1 + flow % 250]), bytes([10, 1, 0, 1])
    head = struct.pack("!BBHHHBBH4s4s", 0x45, tos, length - 14, 0, 0x4000, 64, 17, 0, sources, targets)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    head = head[:10] + struct.pack("!H", total) + head[12:]
    return (b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00" + head + udp).ljust(length, b"\0")


def _receive(receiver: socket.socket, begin: int, left: list[int | None], marks: list[int | None]) -> None:
    while True:
        try:
            frame, ancillary, _, _ = receiver.recvmsg(64, 64)
        except BlockingIOError:
            return
        (number,) = struct.unpack_from("!I", frame, 42)
        seconds, ns = struct.unpack("qq", ancillary[0][2])
        left[number] = seconds * 1_000_000_000 + ns - begin
        marks[number] = frame[15]


def _sh(words: str) -> None:
    subprocess.run(words.split(), check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
