"""A control in the running kernel for as long as someone holds it."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Self

from tcplab.testbed.agent import agent_command
from tcplab.testbed.controls import Ours, load_command
from tcplab.testbed.errors import TestbedError

Json = dict[str, Any]
# How long the loader may take to end before it is killed, seconds.
_PATIENCE = 5.0


class RefusedError(TestbedError):
    """The kernel does not take a control."""

    def __init__(self, answer: Json) -> None:
        super().__init__(str(answer.get("message", "it was rejected")), str(answer.get("hint", "")))
        self.refusal: Json | None = answer.get("refusal")
        """The verifier's verdict, in parts, where it was the verifier."""


class Held:
    """A loader with one control, which goes with it, whatever ends it.

    Raises TestbedError when it cannot be compiled, RefusedError when it is not taken.
    """

    def __init__(self, control: Ours) -> None:
        command = load_command(control)
        self._process = subprocess.Popen(
            agent_command("controls"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C is for whoever holds it.
            start_new_session=True,
        )
        try:
            self._read()
            self.answer = self._ask(command)
        except BaseException:
            self.close()
            raise

    @property
    def registered(self) -> str:
        """The name by which to choose it."""
        return str(self.answer["registered"])

    @property
    def other(self) -> str:
        """The name it would have if another process had not taken that; empty if it has it."""
        wanted = str(self.answer["wanted"])
        return "" if wanted == self.registered else wanted

    def wait(self) -> None:
        """Wait until the loader ends, which it does not do by itself."""
        self._process.wait()

    def close(self) -> None:
        """Take it away."""
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, command: Json) -> Json:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**command, "id": 1}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if answer["event"] != "ok":
            raise RefusedError(answer)
        return answer

    def _read(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise TestbedError("the process that loads controls has died", "install tcplab again: uv sync")
        said: Json = json.loads(line)
        return said
