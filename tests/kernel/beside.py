"""A client, a router and a server in namespaces of their own, for programs that know nothing of tcplab."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tcplab.testbed.agent import agent_command

CLIENT, ROUTER, SERVER = "client", "router", "server"
# Addresses of the server by IP version, and what a URL has for them.
ADDRESS = {4: "10.9.2.1", 6: "fd09:2::1"}
HOST = {4: "10.9.2.1", 6: "[fd09:2::1]"}
# The client's address, and the router's that face the server and the client.
CLIENT_ADDRESS = {4: "10.9.1.1", 6: "fd09:1::1"}
ROUTER_ADDRESS = {4: "10.9.2.2", 6: "fd09:2::2"}
NEAR_ROUTER_ADDRESS = {4: "10.9.1.2", 6: "fd09:1::2"}
# Takes a host off the network without a word.
GONE = """
table inet gone {
    chain in { type filter hook input priority 0; policy drop; }
    chain out { type filter hook output priority 0; policy drop; }
}
"""
_LINKS = (
    (CLIENT, "c0", ("10.9.1.1/24", "fd09:1::1/64"), "r0", ("10.9.1.2/24", "fd09:1::2/64")),
    (SERVER, "s0", ("10.9.2.1/24", "fd09:2::1/64"), "r1", ("10.9.2.2/24", "fd09:2::2/64")),
)
_FORWARD = """\
cd /proc/sys/net
echo 1 | tee ipv4/ip_forward ipv6/conf/all/forwarding
echo 0 | tee ipv4/conf/all/rp_filter ipv4/conf/r0/rp_filter ipv4/conf/r1/rp_filter
"""


class Program:
    """A program in a namespace that writes JSON, an object a line, until its input ends."""

    def __init__(self, command: list[str], first: dict[str, Any] | None = None) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if first is not None:
            self.send(first)

    def send(self, line: dict[str, Any]) -> None:
        """Write a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def next(self, **wanted: Any) -> dict[str, Any]:
        """Its next line that has these values; AssertionError when its output ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            assert said.get("event") != "error", said
            if all(said.get(key) == value for key, value in wanted.items()):
                return said
        raise AssertionError(f"{self.process.args!r} ended before it said {wanted}")

    def end(self) -> dict[str, Any]:
        """Ends its input; its last line."""
        out, _ = self.process.communicate(timeout=60)
        lines = out.splitlines()
        return dict(json.loads(lines[-1])) if lines else {}

    def kill(self) -> None:
        """As `kill -9` does."""
        self.process.kill()
        self.process.wait(60)


class Network:
    """client - router - server, until it is left."""

    def __init__(self) -> None:
        self._agents: dict[str, Program] = {}
        self._programs: list[Program] = []

    def __enter__(self) -> Network:
        for name in (CLIENT, ROUTER, SERVER):
            self._agents[name] = Program(agent_command("node", "--new-net"))
            self._agents[name].next(event="hello")
        pid = {name: str(agent.process.pid) for name, agent in self._agents.items()}
        for node, end, own, far, routers in _LINKS:
            _ip("link", "add", end, "netns", pid[node], "type", "veth", "peer", far, "netns", pid[ROUTER])
            for where, name, addresses in ((node, end, own), (ROUTER, far, routers)):
                for address in addresses:
                    nodad = ["nodad"] if ":" in address else []
                    self.run(where, "ip", "address", "add", address, "dev", name, *nodad)
                self.run(where, "ip", "link", "set", name, "up")
            for address in routers:
                self.run(node, "ip", "route", "add", "default", "via", address.partition("/")[0])
        self.run(ROUTER, "sh", "-c", _FORWARD)
        for family in (4, 6):
            self._reach(family)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in [*self._programs, *self._agents.values()]:
            program.kill()

    def command(self, node: str, *words: str) -> list[str]:
        """The command that runs a program at a node."""
        return ["nsenter", "-t", str(self._agents[node].process.pid), "-n", *words]

    def run(self, node: str, *words: str) -> str:
        """The output of a program at a node; CalledProcessError if it fails."""
        done = subprocess.run(self.command(node, *words), capture_output=True, timeout=120, check=True)
        return done.stdout.decode()

    def status(self, node: str, *words: str) -> int:
        """The exit status of a program at a node."""
        return subprocess.run(self.command(node, *words), capture_output=True, timeout=120).returncode

    def start(self, node: str, code: str, *words: str) -> Program:
        """Start a program in Python at a node."""
        return self.keep(Program(self.command(node, sys.executable, "-u", "-c", code, *words)))

    def proxy(self, kind: str, settings: dict[str, Any], files: int | None = None) -> Program:
        """Start `tcplab-agent KIND` at the router, with so many open files at most."""
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        proxy = self.keep(Program(self.command(ROUTER, *limit, *agent_command(kind)), settings))
        proxy.next(pid=proxy.process.pid)
        return proxy

    def keep(self, program: Program) -> Program:
        """End it with the network."""
        self._programs.append(program)
        return program

    def _reach(self, family: int) -> None:
        """Wait until the links carry packets."""
        for _ in range(100):
            if self.status(CLIENT, "ping", f"-{family}", "-c1", "-W1", ADDRESS[family]) == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"IPv{family} does not pass the router")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=60, cwd=Path("/"))
