"""The process that builds a lab (`tcplab-agent lab`), commanded by lines of JSON and answering by lines."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tcplab.testbed.agent import agent_command
from tcplab.testbed.errors import InputFileError, TestbedError
from tcplab.testbed.tools import search_path

# How long processes may take to end before they are killed, seconds.
_PATIENCE = 5.0


class LabProcess:
    """A lab for as long as this process wants it, or on its own once it has been asked to `hold`."""

    def __init__(self, *options: str, descriptors: Sequence[int] = (), apart: bool = False) -> None:
        # Messages of our processes for people; the file has no name on disk.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            agent_command("lab", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=descriptors,
            env={**os.environ, "PATH": search_path()},
            # Signals to our process group, as of timeout(1) or a terminal that is closed, are for us.
            # A session of its own would be scheduled as a group, too, whatever our nice value (autogroup,
            # sched(7)).
            start_new_session=apart,
            process_group=None if apart else 0,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Give a command and return its answer; raises TestbedError when it is refused."""
        if self._process.stdin is None or self._process.stdout is None:
            raise TestbedError("the network has not been started")
        # A dead lab shows in the missing answer.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise TestbedError("the process that builds the network has died", self.last_error_line())
        return answered(json.loads(line))

    def end(self) -> None:
        """End its input and wait until it has ended, too."""
        self.let_go()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            # Its agents die with it.
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def let_go(self) -> None:
        """End its input: a lab that holds stays."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def last_error_line(self) -> str:
        """The last line that our processes wrote to standard error."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer of a lab; raises TestbedError for a refusal."""
    if "error" in answer:
        wrong = InputFileError if answer.get("input") else TestbedError
        raise wrong(answer["error"], answer["hint"])
    return answer
