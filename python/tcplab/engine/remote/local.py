"""An agent on this machine, as one end of a run with a host elsewhere."""

from __future__ import annotations

import os
import socket
import subprocess

from tcplab.engine.remote.place import Place
from tcplab.testbed.agent import agent_command, agent_missing
from tcplab.testbed.errors import TestbedError

# How long it may take to end, seconds.
_PATIENCE = 15.0


class LocalConnection:
    """An agent that is a child of ours, from its start until `close`."""

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.place = place
        self.rest = b""
        self.socket, theirs = socket.socketpair()
        # Of a login over ssh: the agent would take that connection for ours to it.
        environment = {key: value for key, value in os.environ.items() if key != "SSH_CONNECTION"}
        with theirs:
            end = theirs.fileno()
            self._process = subprocess.Popen(
                agent_command("node"), stdin=end, stdout=end, start_new_session=True, env=environment
            )

    def prepare(self) -> None:
        """See that there is a program; raises TestbedError."""
        missing = agent_missing()
        if missing:
            raise TestbedError(f"{self.name}: {missing}")

    def start(self) -> None:
        """Nothing: it runs."""

    def close(self) -> None:
        """End the agent."""
        self.socket.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def problem(self) -> TestbedError | None:
        """Nothing is known but that it has ended."""
        return None
