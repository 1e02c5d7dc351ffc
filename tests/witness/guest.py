"""Offers packets to queue disciplines of the kernel that it runs in, and writes down when each one leaves.

It runs inside User-mode Linux in virtual time, with nothing but the standard library. Packets leave one
end of a pair of veths, through the discipline, and are received with the kernel's own time stamps at the
other.

    guest.py CASES RESULTS

CASES is a JSON file: a list of `{name, qdisc, arrivals, drain}`. `qdisc` holds the arguments of `tc qdisc
replace dev out`, one list a command; `arrivals` are `[ns, flow, bytes, tos]`, the bytes those of the
Ethernet frame; `drain` is for how many seconds after the last arrival packets may leave. Packets are of UDP,
or of TCP where a fifth element says what they acknowledge: `{number, sack, ece, time}`, `time` null without
the option. RESULTS gets by name `sent`, when each arrival was offered, `left`, when it left (null: it was
dropped), both in ns since the first, `tos`, as it left, and `tc`, what `tc -s` said at the end.
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
import time
from pathlib import Path
from typing import Any

_SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_PR_SET_TIMERSLACK = 29
_ETH_P_IP = 0x0800
_CLOCK = time.CLOCK_REALTIME
_TIMER_ABSTIME = 1
_LIBC = ctypes.CDLL(None)


def main(cases: str, results: str) -> None:
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1)
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
    for number, (at, *packet) in enumerate(case["arrivals"]):
        _sleep_until(begin + at)
        sent.append(time.clock_gettime_ns(_CLOCK) - begin)
        # The call says so when the discipline refuses a packet.
        with contextlib.suppress(OSError):
            ours.send(_frame(number, *packet))
        # They are stamped when they arrive. A system call takes much of this machine's time.
        if number % 500 == 0:
            _receive(theirs, begin, left, marks)
    time.sleep(case["drain"])
    _receive(theirs, begin, left, marks)
    said = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", "out"], check=True, capture_output=True)
    ours.close()
    theirs.close()
    return {"sent": sent, "left": left, "tos": marks, "tc": json.loads(said.stdout)}


def _sleep_until(at: int) -> None:
    """One system call; `time.sleep` makes two, and the time left takes a third."""
    until = (ctypes.c_int64 * 2)(*divmod(at, 1_000_000_000))
    if error := _LIBC.clock_nanosleep(_CLOCK, _TIMER_ABSTIME, until, None):
        raise OSError(error, os.strerror(error))


def _frame(number: int, flow: int, length: int, tos: int, ack: dict[str, Any] | None = None) -> bytes:
    """An Ethernet frame with a packet of a flow; the identification in its IP header is its number."""
    protocol, inside = (17, _udp(flow, length - 34)) if ack is None else (6, _tcp(flow, ack))
    sources, targets = bytes([10, 0, flow >> 8 & 255, 1 + flow % 250]), bytes([10, 1, 0, 1])
    head = struct.pack("!BBHHHBBH4s4s", 0x45, tos, length - 14, number, 0, 64, protocol, 0, sources, targets)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    head = head[:10] + struct.pack("!H", total) + head[12:]
    return (b"\x02" * 6 + b"\x04" * 6 + b"\x08\x00" + head + inside).ljust(length, b"\0")


def _udp(flow: int, length: int) -> bytes:
    return struct.pack("!HHHH", 5000 + flow % 50000, 9, length, 0)


def _tcp(flow: int, ack: dict[str, Any]) -> bytes:
    """The header of a segment; what its frame has room for besides is payload."""
    options = b""
    if ack["time"] is not None:
        options += struct.pack("!BBBBII", 1, 1, 8, 10, ack["time"], ack["time"])
    if ack["sack"]:
        options += struct.pack("!BBBB", 1, 1, 5, 2 + 8 * len(ack["sack"]))
        options += b"".join(struct.pack("!II", *block) for block in ack["sack"])
    words, flags = 5 + len(options) // 4, 0x10 | (0x40 if ack["ece"] else 0)
    ports = 5000 + flow % 50000, 9
    return struct.pack("!HHIIBBHHH", *ports, 1, ack["number"], words << 4, flags, 65535, 0, 0) + options


def _receive(receiver: socket.socket, begin: int, left: list[int | None], marks: list[int | None]) -> None:
    while True:
        try:
            frame, ancillary, _, _ = receiver.recvmsg(64, 64)
        except BlockingIOError:
            return
        (number,) = struct.unpack_from("!H", frame, 18)
        seconds, ns = struct.unpack("qq", ancillary[0][2])
        left[number] = seconds * 1_000_000_000 + ns - begin
        marks[number] = frame[15]


def _sh(words: str) -> None:
    subprocess.run(words.split(), check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
