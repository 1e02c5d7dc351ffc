"""Offers packets to queue disciplines of the kernel that it runs in, and writes down when each one leaves.

It runs inside User-mode Linux in virtual time, with nothing but the standard library. `fq` in a network of
its own sends each packet at its time; from `near` it is redirected to `out`, leaves there through the
discipline, and arrives at `in`. The kernel stamps packets at `near` and at `in`.

    guest.py CASES RESULTS

CASES is a JSON file: a list of `{name, qdisc, arrivals, drain}`. `qdisc` holds the arguments of `tc qdisc
replace dev out`, one list a command; `arrivals` are `[ns, flow, bytes, tos]`, the bytes those of the
Ethernet frame; `drain` is for how many seconds after the last arrival packets may leave. Packets are of UDP,
or of TCP where a fifth element says what they acknowledge: `{number, sack, ece, time}`, `time` null without
the option. RESULTS gets by name `sent`, when each arrival was offered, `left`, when it left (null: it was
dropped), both in ns since the first was offered, `tos`, as it left, and `tc`, what `tc -s` said at the end.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_CLONE_NEWNET = 0x40000000
_SO_SNDBUFFORCE, _SO_TXTIME = 32, 61
_SOL_PACKET, _PACKET_RX_RING, _PACKET_VERSION, _TPACKET_V2 = 263, 5, 10, 1
_ETH_P_ALL, _ETH_P_IP = 3, 0x0800
_LIBC = ctypes.CDLL(None, use_errno=True)
# From the first call to the first packet; fq takes packets of the next 10 s only.
_LEAD, _AHEAD = 1_000_000_000, 8_000_000_000
# Packets of a system call, and room for each: a call takes as long as the work for some packets.
_BATCH, _SLOT = 64, 2048
# Bytes kept of a packet, with the header that the kernel puts before it.
_FRAME, _BLOCK = 256, 1 << 20


def main(cases: str, results: str) -> None:
    # The sender is in a network of its own: so packets leave their times behind.
    _sh("ip netns add far")
    _sh("ip link add far netns far type veth peer name near")
    _sh("ip link add out type veth peer name in")
    _sh("ip -n far link set far up")
    for name in ("near", "out", "in"):
        _sh(f"ip link set {name} up")
    # It sends each packet at the time that the packet carries.
    _sh("tc -n far qdisc replace dev far root fq limit 100000 flow_limit 100000 timer_slack 0")
    _sh("tc qdisc add dev near clsact")
    _sh("tc filter add dev near ingress matchall action mirred egress redirect dev out")
    answers = {case["name"]: _run(case) for case in json.loads(Path(cases).read_text(encoding="utf-8"))}
    Path(results).write_text(json.dumps(answers), encoding="utf-8")


def _run(case: dict[str, Any]) -> dict[str, Any]:
    # Few commands: each takes as long as the packets of a case.
    _tc([f"qdisc replace dev out {' '.join(words)}" for words in case["qdisc"]])
    count = len(case["arrivals"])
    with Sender() as sender, Ring("near", count) as offered, Ring("in", count) as received:
        # Jiffies start at the same phase in every case.
        time.sleep(1 - time.monotonic() % 1)
        begin = now = time.monotonic_ns()
        for number, (at, *packet) in enumerate(case["arrivals"]):
            at += begin + _LEAD
            if at - now > _AHEAD:
                sender.flush()
                time.sleep((at - now - _AHEAD // 4) / 1e9)
                now = time.monotonic_ns()
            sender.add(_frame(number, *packet), at)
        sender.flush()
        time.sleep((at - time.monotonic_ns()) / 1e9 + case["drain"])
        sent = offered.packets()
        first = sent[0][0]
        left: list[int | None] = [None] * count
        marks: list[int | None] = [None] * count
        for number, (at, tos) in received.packets().items():
            left[number], marks[number] = at - first, tos
    said = _tc(["qdisc show dev out", "qdisc del dev out root"], "-s", "-j")
    times = [sent[number][0] - first for number in range(count)]
    return {"sent": times, "left": left, "tos": marks, "tc": json.loads(said)}


class Sender:
    """A socket whose packets carry the times at which they are sent: many for a system call (sendmmsg(2))."""

    def __init__(self) -> None:
        with Path("/run/netns/far").open("rb") as far, Path("/proc/self/ns/net").open("rb") as here:
            _LIBC.setns(far.fileno(), _CLONE_NEWNET)
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.bind(("far", _ETH_P_IP))
            _LIBC.setns(here.fileno(), _CLONE_NEWNET)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 29)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TXTIME, struct.pack("iI", time.CLOCK_MONOTONIC, 0))
        # Of each packet: its frame; struct iovec; struct cmsghdr with the time; struct mmsghdr.
        parts = [bytearray(_BATCH * size) for size in (_SLOT, 16, 24, 64)]
        self._frames, self._vectors, self._controls, self._heads = parts
        frames, vectors, controls, self._first = (
            ctypes.addressof(ctypes.c_char.from_buffer(part)) for part in parts
        )
        for n in range(_BATCH):
            struct.pack_into("QQ", self._vectors, 16 * n, frames + _SLOT * n, 0)
            struct.pack_into("QiiQ", self._controls, 24 * n, 24, socket.SOL_SOCKET, _SO_TXTIME, 0)
            struct.pack_into(
                "QQQQQQQQ", self._heads, 64 * n, 0, 0, vectors + 16 * n, 1, controls + 24 * n, 24, 0, 0
            )
        self._count = 0

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def add(self, frame: bytes, at: int) -> None:
        """A frame, to be sent at a time of the clock."""
        n = self._count
        self._frames[_SLOT * n : _SLOT * n + len(frame)] = frame
        struct.pack_into("Q", self._vectors, 16 * n + 8, len(frame))
        struct.pack_into("Q", self._controls, 24 * n + 16, at)
        self._count += 1
        if self._count == _BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand over what was added."""
        done = 0
        while done < self._count:
            first = ctypes.c_void_p(self._first + 64 * done)
            sent = _LIBC.sendmmsg(self._socket.fileno(), first, self._count - done, 0)
            if sent < 0:
                raise OSError(ctypes.get_errno(), "sendmmsg")
            done += sent
        self._count = 0


class Ring:
    """The packets that arrive at an interface, in memory that the kernel writes: no system call reads it."""

    def __init__(self, device: str, count: int) -> None:
        blocks = count * _FRAME // _BLOCK + 1
        self._frames = blocks * _BLOCK // _FRAME
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V2)
        size = struct.pack("IIII", _BLOCK, blocks, _FRAME, self._frames)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, size)
        self._memory = mmap.mmap(self._socket.fileno(), blocks * _BLOCK)
        # A redirected packet is seen by sockets for all protocols only.
        self._socket.bind((device, _ETH_P_ALL))

    def __enter__(self) -> Ring:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        self._socket.close()

    def packets(self) -> dict[int, tuple[int, int]]:
        """Of each packet, by its number: when it arrived, in ns, and its type of service."""
        found = {}
        for at in range(0, self._frames * _FRAME, _FRAME):
            # linux/if_packet.h: status, two lengths, where frame and payload begin, seconds, nanoseconds.
            status, _, _, begins, _, seconds, ns = struct.unpack_from("IIIHHII", self._memory, at)
            if not status & 1:
                break
            kind, _, tos, _, number = struct.unpack_from("!HBBHH", self._memory, at + begins + 12)
            if kind == _ETH_P_IP:
                found[number] = seconds * 1_000_000_000 + ns, tos
        return found


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


def _tc(commands: list[str], *options: str) -> str:
    """Commands of `tc`, and what they say."""
    words = ["tc", *options, "-batch", "-"]
    done = subprocess.run(words, input="\n".join(commands), text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout


def _sh(words: str) -> None:
    subprocess.run(words.split(), check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
