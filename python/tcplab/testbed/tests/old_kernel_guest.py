"""The guest's program on the old kernel: loads every control, sends with two, and kills whoever holds them.

It needs nothing but the standard library, for starting all of tcplab there takes half a minute. Its
arguments are how an agent is started; it writes what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
BYTES = 1_000_000
RATE = 20_000_000
ALLOWED = 20_000_000_000
MILLISECOND = 1_000_000


class Agent:
    """An agent that takes commands and answers."""

    def __init__(self, *arguments: str) -> None:
        words = [*sys.argv[1:], *arguments]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.hello = self.read()

    def read(self) -> Json:
        assert self.process.stdout is not None
        event: Json = json.loads(self.process.stdout.readline())
        return event

    def command(self, **command: Any) -> Json:
        """Raises RuntimeError when it is refused."""
        assert self.process.stdin is not None
        print(json.dumps({"id": 1, **command}), file=self.process.stdin, flush=True)
        while (answer := self.read()).get("id") != 1:
            pass
        if answer["event"] != "ok":
            raise RuntimeError(answer["message"])
        return answer

    def wait_for(self, event: str) -> None:
        while self.read()["event"] != event:
            pass


def offered() -> list[str]:
    """The controls that TCP offers."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return path.read_text(encoding="ascii").split()


def ours() -> list[str]:
    """Those of tcplab's among them."""
    return [name for name in offered() if name.startswith("tl_")]


def guardians() -> list[int]:
    """The processes that watch over controls."""
    names = {path: path.read_text(encoding="utf-8") for path in Path("/proc").glob("[0-9]*/comm")}
    return [int(path.parent.name) for path, name in names.items() if name == "tcplab-guardian\n"]


def transfer(controls: dict[str, Json]) -> None:
    """Send over loopback with each control at once, and sample the sending sockets."""
    server, client = Agent("node"), Agent("node")
    for node, agent in (("server", server), ("client", client)):
        agent.command(do="configure", node=node, dir=str(Path.cwd()))
    for name, control in controls.items():
        flow = {
            "name": name,
            "from": "client",
            "to": "server",
            "kind": "tcp",
            "start": 0,
            "stop": None,
            "streams": 1,
        }
        flow |= {"cc": {"name": control["registered"]}, "bytes": BYTES, "sender": {}, "receiver": {}}
        end = {"do": "flow", "address": "127.0.0.1", "max_pacing_rate": RATE, "flow": flow}
        ports = server.command(**end, role="server", ports=[])["ports"]
        client.command(**end, role="client", ports=ports)
    client.command(do="probe", sockets=MILLISECOND, controls=list(controls.values()))
    at = time.monotonic_ns() + 50 * MILLISECOND
    for agent in (server, client):
        agent.command(do="start", at=at, duration=ALLOWED)
    for _ in controls:
        server.wait_for("finished")
    for agent in (client, server):
        agent.command(do="stop")
        agent.wait_for("done")
        agent.process.kill()


def main() -> None:
    """Print what was seen."""
    loader = Agent("controls")
    loaded = {name: loader.command(do="load", name=name) for name in loader.hello["controls"]}
    during = ours()
    transfer({name: loaded[name] for name in ("bbr2", "cubic")})
    watching = len(guardians())
    loader.process.kill()
    patience = time.monotonic() + 10
    while ours() and time.monotonic() < patience:
        time.sleep(0.01)
    after = ours()
    other = Agent("controls")
    other.command(do="load", name="reno")
    for process in (*guardians(), other.process.pid):
        os.kill(process, signal.SIGKILL)
    other.process.wait()
    abandoned = ours()
    seen = {
        "release": platform.release(),
        "obstacle": loader.hello["obstacle"],
        "registered": [control["registered"] for control in loaded.values()],
        "offered": during,
        "guardians": watching,
        "after_kill": after,
        "abandoned": abandoned,
        "swept": Agent("controls").hello["swept"],
        "left": ours(),
    }
    os.write(sys.stdout.fileno(), json.dumps(seen).encode())


if __name__ == "__main__":
    main()
