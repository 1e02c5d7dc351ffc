"""Feed `tcplab serve` broken commands and bytes: it must keep serving, in bounded memory, and obey none.

`python fuzz_serve.py --seconds 60 [--seed N]` starts a service on loopback, and exits with 1 when it
dies, answers a whole client no more, or has traffic sent elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tcplab.engine.remote.place import Place
from tcplab.engine.remote.service import ServiceConnection
from tcplab.testbed.errors import TestbedError

SERVE = (sys.executable, "-m", "tcplab", "serve", "--bind", "127.0.0.1", "--port", "0", "--json")
MEMORY = 200_000
"""kB that the service may have."""
STRANGER = "127.9.9.9"
COMMANDS: list[dict[str, Any]] = [
    {"do": "clock"},
    {"do": "stop"},
    {"do": "host", "sysctls": ["net.ipv4.tcp_ecn", "/etc/passwd"]},
    {"do": "configure", "node": "a", "dir": "/tmp", "cpus": [0]},
    {"do": "reflect", "address": STRANGER, "token": 1, "from": STRANGER},
    {"do": "path", "address": STRANGER, "port": 9, "token": 1},
    {"do": "capture", "what": "full"},
    {"do": "accelerate", "accelerator": {}},
    {"do": "load", "name": "tl_reno", "params": {}},
    {"do": "impair", "towards": [{"address": "127.0.0.1", "netem": [["delay", "1s"]]}]},
    {"do": "probe", "sockets": 1, "hosts": 1, "processes": {"a": 1}},
    {"do": "start", "at": 0, "duration": 1000},
    {
        "do": "flow", "role": "client", "address": STRANGER, "ports": [9], "generator": None,
        "flow": {"name": "a", "from": "b", "to": "c", "start": 0, "streams": 1, "kind": "udp", "rate": 1000,
                 "payload": 100},
    },
]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    2**64 - 1,
    1e300,
    "",
    "\0",
    "../..",
    STRANGER,
    [],
    {},
    [[[]]],
    "x" * 5000,
]


def main() -> int:
    """Fuzz for the time asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=None)
    asked = arguments.parse_args()
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as state, _stranger() as stranger:
        log = Path(state, "log")
        service = subprocess.Popen(
            [*SERVE, "--state", state], stdout=log.open("w"), stdin=subprocess.DEVNULL, text=True
        )
        try:
            while "\n" not in log.read_text() and service.poll() is None:
                time.sleep(0.05)
            listening = json.loads(log.read_text().partition("\n")[0])
            os.environ["TCPLAB_TOKEN"] = Path(state, "token").read_text().strip()
            url = f"tcplab://{listening['addresses'][0]}?certificate={listening['certificate']}"
            end, tried = time.monotonic() + asked.seconds, 0
            while time.monotonic() < end:
                tried += talk(chance, url)
                broken = wrong(service, listening["pid"], url, stranger)
                if broken:
                    sys.stderr.write(f"seed {seed}: {broken}\n")
                    return 1
        finally:
            service.terminate()
            service.wait(20)
    sys.stdout.write(f"{tried} lines, none of which did harm (seed {seed})\n")
    return 0


def talk(chance: random.Random, url: str) -> int:
    """One client that says what it should not; how many lines it said."""
    connection = ServiceConnection("fuzz", Place.read(url))
    said = 0
    try:
        connection.prepare()
        connection.start()
        connection.socket.settimeout(5)
        for _ in range(chance.randrange(1, 60)):
            connection.socket.sendall(mutant(chance))
            said += 1
    except (TestbedError, OSError):
        # It was shown the door.
        pass
    finally:
        connection.close()
    return said


def mutant(chance: random.Random) -> bytes:
    """A line that is nearly a command."""
    command = json.loads(json.dumps(chance.choice(COMMANDS)))
    inside = command["flow"] if "flow" in command and chance.random() < 0.5 else command
    for _ in range(chance.randrange(3)):
        inside[chance.choice([*inside, "id", "streams", "kind"])] = chance.choice(VALUES)
    line = json.dumps(command).encode()
    match chance.randrange(8):
        case 0:
            at = chance.randrange(len(line))
            line = line[:at] + chance.randbytes(chance.randrange(4)) + line[at + 1 :]
        case 1:
            line = line[: chance.randrange(len(line))]
        case 2:
            line = chance.randbytes(chance.randrange(2000))
        case 3 if chance.random() < 0.1:
            line = b"[" * 100_000
    return line + b"\n"


def wrong(service: subprocess.Popen[str], process: int, url: str, stranger: socket.socket) -> str | None:
    """The faults of the service by now."""
    if service.poll() is not None:
        return f"the service ended with {service.returncode}"
    status = Path(f"/proc/{process}/status").read_text()
    if int(status.split("VmRSS:")[1].split()[0]) > MEMORY:
        return f"the service has more than {MEMORY} kB"
    with suppress(BlockingIOError):
        return f"{STRANGER} was sent {stranger.recv(100)!r}"
    connection = ServiceConnection("whole", Place.read(url))
    try:
        connection.prepare()
    except TestbedError as problem:
        return f"a whole client is not served: {problem}"
    finally:
        connection.close()
    return None


def _stranger() -> socket.socket:
    """Someone who must not be sent anything."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind((STRANGER, 9))
    one.setblocking(False)
    return one


if __name__ == "__main__":
    sys.exit(main())
