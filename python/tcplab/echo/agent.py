"""The program behind `tcplab echo`: the agent, given its settings by one line, reports by lines."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import Any

from tcplab.testbed.agent import agent_command, agent_missing

Event = dict[str, Any]
# How long it may take to end once it is asked to, seconds.
_PATIENCE = 10.0


class EchoAgentError(Exception):
    """The agent cannot do what it was asked; `hint` is empty or says how to fix it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class EchoAgent:
    """An agent at one end of an echo; its events, in order, by iterating over it."""

    def __init__(self, command: str, settings: dict[str, Any]) -> None:
        missing = agent_missing()
        if missing:
            raise EchoAgentError(missing)
        self._process = subprocess.Popen(
            agent_command(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._send_line(json.dumps(settings) + "\n")

    def __enter__(self) -> EchoAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __iter__(self) -> Iterator[Event]:
        if self._process.stdout is None:
            return
        for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "error":
                raise EchoAgentError(event["message"], event.get("hint") or "")
            yield event

    def stop(self) -> None:
        """Have it end. Its measurements are still reported."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def _send_line(self, line: str) -> None:
        if self._process.stdin is not None:
            # One that has ended already has reported why.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line)
                self._process.stdin.flush()
