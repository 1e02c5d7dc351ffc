"""Talking to the agents of a network: commands out, answers and events in (docs/agent-protocol.md).

There are no threads: whoever waits for an answer or an event reads whatever any agent says meanwhile.
"""

from __future__ import annotations

import json
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tcplab.testbed.errors import TestbedError

Json = dict[str, Any]
SAME_VERSION = "install the agent and tcplab from one version; in a source tree: scripts/agent"
PROTOCOL = 1
# Longest an agent may take to answer, seconds. It may have to share its CPU with many others.
_PATIENCE = 30.0
_BUSY = "the machine may be too busy: end other programs"


@dataclass(frozen=True)
class Event:
    """Something an agent has said unasked; `gone` is its end."""

    agent: str
    name: str
    content: Json


class _Message(Json):
    """A message of an agent; one of another version may leave out what is needed."""

    def __missing__(self, key: str) -> Any:
        raise TestbedError(f"a message of the agent lacks {key!r}: it is of another version", SAME_VERSION)


class Agents:
    """All agents of a network, by name."""

    def __init__(self, sockets: Mapping[str, socket.socket]) -> None:
        self._sockets = dict(sockets)
        self._rest = dict.fromkeys(sockets, b"")
        self._answers: dict[tuple[str, int], Json] = {}
        self._events: deque[Event] = deque()
        self._number = 0
        self._selector = selectors.DefaultSelector()
        for name, one in self._sockets.items():
            self._selector.register(one, selectors.EVENT_READ, name)

    def greet(self) -> dict[str, Json]:
        """Wait until every agent has said hello; returns what each said."""
        hellos: dict[str, Json] = {}
        deadline = time.monotonic() + _PATIENCE
        while len(hellos) < len(self._sockets):
            event = self.next_event(deadline - time.monotonic())
            if event is None:
                silent = next(name for name in self._sockets if name not in hellos)
                raise TestbedError(f"{called(silent)} did not start within {_PATIENCE:g} s", _BUSY)
            if event.name == "hello":
                if event.content["protocol"] != PROTOCOL:
                    raise TestbedError(
                        f"the agent speaks protocol version {event.content['protocol']}, not {PROTOCOL}",
                        SAME_VERSION,
                    )
                hellos[event.agent] = event.content
            else:
                raise failure(event)
        return hellos

    def ask(self, commands: Iterable[tuple[str, Json]]) -> list[Json]:
        """Give commands and wait for all answers; raises TestbedError for the first that is refused."""
        asked = [(name, self._send(name, command)) for name, command in commands]
        deadline = time.monotonic() + _PATIENCE
        while any(key not in self._answers for key in asked):
            if not self._read(deadline - time.monotonic()) and time.monotonic() > deadline:
                silent = next(name for name, number in asked if (name, number) not in self._answers)
                raise TestbedError(f"{called(silent)} did not answer within {_PATIENCE:g} s", _BUSY)
            gone = next((one for one in self._events if one.name == "gone"), None)
            if gone is not None:
                raise failure(gone)
        answers = [self._answers.pop(key) for key in asked]
        for (name, _), answer in zip(asked, answers, strict=True):
            if answer["event"] == "error":
                raise TestbedError(f"{name.lstrip(':')}: {answer['message']}", answer.get("hint", ""))
        return answers

    def send(self, command: Json, names: Iterable[str] | None = None) -> None:
        """Give agents, all that are still there unless named, a command; do not wait for answers."""
        for name in self.alive if names is None else names:
            self._send(name, command)

    def next_event(self, timeout: float) -> Event | None:
        """The next event of any agent; none when there is none in time."""
        deadline = time.monotonic() + timeout
        while not self._events:
            left = deadline - time.monotonic()
            if not self._read(max(0.0, left)) and left <= 0:
                return None
        return self._events.popleft()

    @property
    def alive(self) -> set[str]:
        """The agents that still hold their end."""
        return set(self._sockets)

    def close(self) -> None:
        """End all agents: theirs is the end of their input."""
        for name in list(self._sockets):
            self._drop(name)
        self._selector.close()

    def _send(self, name: str, command: Json) -> int:
        self._number += 1
        line = json.dumps({**command, "id": self._number}, separators=(",", ":")) + "\n"
        if name not in self._sockets:
            raise failure(Event(name, "gone", {}))
        try:
            self._sockets[name].sendall(line.encode())
        except OSError:
            self._lose(name)
        return self._number

    def _read(self, timeout: float) -> bool:
        """Take what has come; false when nothing came in time."""
        ready = self._selector.select(max(0.0, timeout))
        for key, _ in ready:
            name = key.data
            try:
                data = self._sockets[name].recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                self._lose(name)
                continue
            *lines, self._rest[name] = (self._rest[name] + data).split(b"\n")
            for line in lines:
                self._take(name, line)
        return bool(ready)

    def _take(self, name: str, line: bytes) -> None:
        try:
            content = json.loads(line, object_hook=_Message)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            content = {"event": "error", "message": f"said {line[:100]!r}"}
        self._sort(name, content)

    def _sort(self, name: str, content: Json) -> None:
        number = content.get("id")
        if number is not None and content["event"] in ("ok", "error"):
            self._answers[name, number] = content
        elif content["event"] != "ok":
            self._events.append(Event(name, content["event"], content))

    def _lose(self, name: str) -> None:
        if name in self._sockets:
            self._drop(name)
            self._events.append(Event(name, "gone", self._reason(name)))

    def _reason(self, name: str) -> Json:
        """Why an agent is gone, as `message` and `hint`, where that is known."""
        return {}

    def _drop(self, name: str) -> None:
        one = self._sockets.pop(name)
        self._selector.unregister(one)
        one.close()


def failure(event: Event) -> TestbedError:
    """The error for an event that must not come."""
    if event.name == "gone" and "message" not in event.content:
        return TestbedError(
            f"{called(event.agent)} has died",
            "if nobody ended it, the kernel's log may say why: sudo dmesg | tail",
        )
    message = event.content.get("message", f"said {event.name!r}")
    return TestbedError(f"{event.agent.lstrip(':')}: {message}", event.content.get("hint", ""))


def called(agent: str) -> str:
    """An agent in words: nodes have names of their own, our own processes begin with a colon."""
    return f"the {agent[1:]} process" if agent.startswith(":") else f"the process of {agent}"
