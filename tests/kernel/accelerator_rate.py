"""Rate of an accelerator on one core, over veth: plainly forwarded and split, by turns.

`python -m tests.kernel.accelerator_rate [SECONDS [ROUNDS]]`, as root. The router and the accelerator are on
CPU 1, both ends on CPU 0. The server reads and counts every byte. Packets are first as large as veth takes
them, 64 kB, then of 1500 bytes, as on a wire without offload.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .beside import ADDRESS, CLIENT, ROUTER, SERVER, Network, Program

_ENDS, _ROUTERS = 0, 1
_DEVICES = ((CLIENT, "c0", _ENDS), (SERVER, "s0", _ENDS), (ROUTER, "r0", _ROUTERS), (ROUTER, "r1", _ROUTERS))
_SINK = """
import json, socket
listener = socket.create_server(("", 5000))
print(json.dumps({"event": "serves"}))
peer, _ = listener.accept()
room, total = bytearray(128 << 10), 0
while count := peer.recv_into(room):
    total += count
print(json.dumps({"event": "end", "bytes": total}))
"""
# The file's pages are sent without a copy, so that this end is not what limits.
_SOURCE = """
import json, os, socket, sys, tempfile, time
peer = socket.create_connection((sys.argv[1], 5000))
with tempfile.TemporaryFile() as file:
    size = file.write(os.urandom(1 << 20))
    file.flush()
    began, total = time.monotonic(), 0
    while time.monotonic() < began + float(sys.argv[2]):
        at = 0
        while at < size:
            at += os.sendfile(peer.fileno(), file.fileno(), at, size - at)
        total += size
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
print(json.dumps({"event": "end", "bytes": total, "seconds": time.monotonic() - began}))
"""


def main() -> None:
    """Print a line for each way of packets and of forwarding."""
    words = [float(word) for word in sys.argv[1:]]
    seconds, rounds = words[0] if words else 5, int(words[1]) if len(words) > 1 else 3
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        _say("accelerator on one core: skipped: needs root and two CPUs")
        return
    columns = ("Gbit/s", "thread", "router", "CPU 1", "CPU 0")
    _say(f"{'over veth':26}{''.join(f'{name:>8}' for name in columns)}{'bytes a packet':>16}")
    for segments in (None, 1):
        for _ in range(rounds):
            for split in (False, True):
                _measure(split, segments, seconds)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _measure(split: bool, segments: int | None, seconds: float) -> None:
    with Network() as net:
        for node, device, cpu in _DEVICES:
            net.run(node, "unshare", "-m", "sh", "-c", _PLACE.format(device=device, mask=1 << cpu))
            if segments is not None:
                net.run(node, "ip", "link", "set", device, "gso_max_segs", str(segments))
        thread = 0
        if split:
            thread = net.proxy("accelerate", {}).process.pid
            subprocess.run(["taskset", "-apc", str(_ROUTERS), str(thread)], check=True, capture_output=True)
        pinned = ("taskset", "-c", str(_ENDS), sys.executable, "-u", "-c")
        sink = net.keep(Program(net.command(SERVER, *pinned, _SINK)))
        sink.next(event="serves")
        before = _busy(), _ticks(thread), _sent(net)
        source = net.keep(Program(net.command(CLIENT, *pinned, _SOURCE, ADDRESS[4], str(seconds))))
        said = source.next(event="end")
        after = _busy(), _ticks(thread), _sent(net)
        received = sink.next(event="end")["bytes"]
        assert received == said["bytes"], (received, said)
        taken = said["seconds"]
        busy = {cpu: (after[0][cpu][0] - before[0][cpu][0]) / taken for cpu in (_ENDS, _ROUTERS)}
        own = (after[1] - before[1]) / taken
        # Ticks of the thread may count packets that interrupted it, so this is the most that the router took.
        router = own + (after[0][_ROUTERS][1] - before[0][_ROUTERS][1]) / taken
        packets, carried = (b - a for a, b in zip(before[2], after[2], strict=True))
        name = f"{'split' if split else 'forwarded'}, {'64 kB' if segments is None else '1500 B'} packets"
        shares = "".join(f"{part:8.0%}" for part in (own, router, busy[_ROUTERS], busy[_ENDS]))
        _say(f"{name:26}{received * 8e-9 / taken:8.2f}{shares}{carried / packets:16.0f}")


# The device's packets come in on that CPU (receive packet steering).
_PLACE = "mount -t sysfs none /sys && echo {mask:x} | tee /sys/class/net/{device}/queues/rx-*/rps_cpus"
_TICK = os.sysconf("SC_CLK_TCK")


def _busy() -> dict[int, tuple[float, float]]:
    """Seconds that each CPU was not idle, and those of them that it handled packets (softirq)."""
    rows = [line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()]
    cpus = [row for row in rows if row[0].startswith("cpu") and row[0] != "cpu"]
    # user, nice, system, irq, softirq
    return {
        int(row[0][3:]): (sum(int(row[column]) for column in (1, 2, 3, 6, 7)) / _TICK, int(row[7]) / _TICK)
        for row in cpus
    }


def _ticks(pid: int) -> float:
    """Seconds of a process in user and kernel mode."""
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _sent(net: Network) -> tuple[int, int]:
    """Packets and bytes that the router has sent to the server."""
    rows = net.run(ROUTER, "cat", "/proc/net/dev").splitlines()
    fields = next(row for row in rows if row.strip().startswith("r1:")).partition(":")[2].split()
    return int(fields[9]), int(fields[8])


if __name__ == "__main__":
    main()
