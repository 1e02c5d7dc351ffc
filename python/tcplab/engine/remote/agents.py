"""The agents of remote hosts: their records are kept here, their clocks compared, their silence noticed."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable
from pathlib import Path

from tcplab.engine.remote.clocks import Clock, Exchange
from tcplab.engine.remote.connections import SILENCE, Connection
from tcplab.testbed.agents import SAME_VERSION, Agents, Json
from tcplab.testbed.errors import TestbedError

# How often each clock is asked while a run goes on, seconds. It also shows an agent that we are there.
_ASK = 0.5
# Exchanges before a run, close together: the clocks must be known when its start is set.
_EXCHANGES = 12


class RemoteAgents(Agents):
    """Agents over connections; files that they send are appended to in `run_dir`."""

    def __init__(self, connections: Iterable[Connection], run_dir: Path) -> None:
        self._connections = {one.name: one for one in connections}
        super().__init__({name: one.socket for name, one in self._connections.items()})
        self._rest = {name: one.rest for name, one in self._connections.items()}
        self._run_dir = run_dir
        self.clocks = {name: Clock() for name in self._connections}
        # CLOCK_REALTIME less CLOCK_MONOTONIC of each, ns, at each exchange.
        self.realtime_leads: dict[str, list[int]] = {name: [] for name in self._connections}
        self.received = dict.fromkeys(self._connections, 0)
        """Bytes of files that came, by host."""
        now = time.monotonic()
        self._heard = dict.fromkeys(self._connections, now)
        self._asked: dict[tuple[str, int], int] = {}
        self._captures: dict[str, set[str]] = {}
        self._next = now

    def compare_clocks(self) -> None:
        """Exchange the time with every host; raises TestbedError."""
        for _ in range(_EXCHANGES):
            wanted = {name: clock.count + 1 for name, clock in self.clocks.items()}
            self._ask_clocks()
            deadline = time.monotonic() + SILENCE
            while any(
                self.clocks[name].count < count for name, count in wanted.items() if name in self.alive
            ):
                self._read(deadline - time.monotonic())
            lost = next((name for name in wanted if name not in self.alive), None)
            if lost is not None:
                reason = self._reason(lost)
                raise TestbedError(f"{lost}: {reason['message']}", reason["hint"])

    def _read(self, timeout: float) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._ask_clocks()
        found = super()._read(max(0.0, min(timeout, self._next - now)))
        now = time.monotonic()
        for name in self.alive:
            if now - self._heard[name] > SILENCE:
                self._lose(name)
        return found

    def _ask_clocks(self) -> None:
        self._next = time.monotonic() + _ASK
        for name in self.alive:
            asked = time.monotonic_ns()
            number = self._send(name, {"do": "clock"})
            self._asked[name, number] = asked

    def _sort(self, name: str, content: Json) -> None:
        try:
            self._take_message(name, content)
        except (TypeError, ValueError) as problem:
            # It is the word of another machine.
            raise TestbedError(
                f"{name} sent a message that cannot be understood: {problem}", SAME_VERSION
            ) from None

    def _take_message(self, name: str, content: Json) -> None:
        received = time.monotonic_ns()
        self._heard[name] = received / 1e9
        asked = self._asked.pop((name, content.get("id", 0)), None)
        if asked is not None and "monotonic" in content:
            self.clocks[name].add(Exchange(asked, int(content["monotonic"]), received))
            self.realtime_leads[name].append(int(content["realtime_lead"]))
        elif content.get("event") == "bytes":
            self._keep(name, str(content["file"]), base64.b64decode(content["data"]))
        else:
            if content.get("event") == "done":
                self._finish_captures(name)
            super()._sort(name, content)

    def _keep(self, name: str, file: str, data: bytes) -> None:
        """Append to a file; its name is the word of another machine."""
        table = f".{name}." in file and file.endswith(".arrows")
        capture = file.startswith(f"{name}.") and file.endswith(".pcapng")
        if "/" in file or not (table or capture):
            raise TestbedError(f"{name} sent a file called {file!r}", "check that it is the right host")
        self.received[name] += len(data)
        if capture:
            # As captures of a network are called, by the node and where; under this name until it is whole.
            file = f"{name}-{file.removeprefix(f'{name}.')}.part"
            self._captures.setdefault(name, set()).add(file)
        with (self._run_dir / file).open("ab") as stream:
            stream.write(data)

    def _finish_captures(self, name: str) -> None:
        for file in self._captures.pop(name, ()):
            (self._run_dir / file).rename(self._run_dir / file.removesuffix(".part"))

    def _reason(self, name: str) -> Json:
        connection = self._connections[name]
        quiet = time.monotonic() - self._heard[name]
        if quiet > SILENCE:
            message = f"{connection.place.host} has not answered for {quiet:.1f} s"
            return {"message": message, "hint": "check the connection to it; the run there ends by itself"}
        problem = connection.problem()
        if problem is not None:
            # Whoever reads it says which agent it is of.
            return {"message": problem.message.removeprefix(f"{name}: "), "hint": problem.hint}
        message = f"the connection to {connection.place.host} has ended"
        return {"message": message, "hint": "check whether the agent was killed there: dmesg"}
