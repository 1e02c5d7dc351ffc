"""An agent on a remote host: the system's ssh carries it there and talks to it.

One connection does it all. A shell on the host takes the program into a private directory, opens it, removes
the directory and runs it. From then on nothing of it is on any disk, whatever ends the connection.
Where a process of this command holds the same program there already, that one is run (`kept`).
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tcplab.engine.remote.binary import agent_for
from tcplab.engine.remote.connections import SILENCE
from tcplab.engine.remote.kept import process_at
from tcplab.engine.remote.place import Place
from tcplab.testbed.errors import TestbedError

_BOOTSTRAP = Path(__file__).with_name("bootstrap.sh")
_MARK = b"tcplab "
# How long ssh may take to connect, and a host to take the next part of the agent or to answer, seconds.
_CONNECT, _PATIENCE = 10, 15.0
_OPTIONS = (
    "-T",
    "-x",
    "-o", "BatchMode=yes",
    "-o", f"ConnectTimeout={_CONNECT}",
    "-o", "ClearAllForwardings=yes",
    "-o", "Compression=yes",
)  # fmt: skip
# Messages of ssh, and the hint for each.
_HINTS = (
    (
        "host identification has changed",
        "if the host was installed again, compare its key with its owner's, then: ssh-keygen -R {host}",
    ),
    ("host key verification failed", "compare the host's key with its owner's by connecting once: {ssh}"),
    (
        "permission denied",
        "let a key log in without a password: ssh-copy-id, or ssh-add for one with a passphrase",
    ),
    ("could not resolve", "check the host's name: {ssh}"),
    ("connection refused", "check that sshd runs there, and on which port"),
    ("timed out", "check that the host is up and that its firewall lets ssh in"),
    ("no route to host", "check that the host is up: {ssh}"),
    ("received no command", "check the connection to it, and that this machine is not overloaded"),
)


class SshConnection:
    """A host, from the first packet to it until `close`."""

    def __init__(self, name: str, place: Place) -> None:
        """Start to connect; `name` is the host's in the scenario."""
        self.name = name
        self.place = place
        self.rest = b""
        """The agent's output that has not been read yet."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self.socket, theirs = socket.socketpair()
        try:
            # A session of its own: Ctrl-C is the run's to answer.
            self._process = subprocess.Popen(
                ["ssh", *_OPTIONS, *place.destination(), "exec /bin/sh"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._stderr,
                start_new_session=True,
            )
        finally:
            theirs.close()

    def prepare(self) -> None:
        """Have the host take the agent; raises TestbedError."""
        self.socket.settimeout(_PATIENCE)
        script = _BOOTSTRAP.read_text(encoding="ascii")
        self._send(f"{script}\ntcplab_main {SILENCE}\n".encode())
        system, machine, *forms = self._expect("machine", _CONNECT + _PATIENCE).split()
        if system != "Linux":
            raise TestbedError(f"{self.name} is {system}, not Linux", "choose another host")
        agent = agent_for(machine)
        digest = hashlib.sha256(agent).hexdigest()[:16]
        self._send(f"{len(agent)} {digest} {process_at(self.place)}\n".encode())
        if self._expect("agent") == "wanted":
            form, sent = ("gzip", _compressed(agent)) if "gzip" in forms else ("plain", agent)
            self._send(f"{len(sent)} {form}\n".encode())
            for at in range(0, len(sent), 1 << 16):
                self._send(sent[at : at + (1 << 16)])
        self._expect("ready")

    def start(self) -> None:
        """Run the agent."""
        self._send(b"start\n")
        self.socket.settimeout(None)

    def close(self) -> None:
        """End the connection, and with it the agent."""
        self.socket.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()

    def problem(self) -> TestbedError | None:
        """Why ssh has ended, if it said so."""
        # Its last words may come a moment after the end of its output.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._stderr.seek(0)
        said = self._stderr.read().decode(errors="replace").strip()
        if not said:
            return None
        hint = next((hint for sign, hint in _HINTS if sign in said.lower()), "try it yourself: {ssh}")
        line = said.splitlines()[-1].strip().removeprefix("ssh: ")
        return TestbedError(
            f"{self.name}: ssh to {self.place.host}: {line}",
            hint.format(host=self.place.host, ssh=f"ssh {' '.join(self.place.destination())}"),
        )

    def _send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise TestbedError(
                f"{self.name}: {self.place.host} took nothing for {_PATIENCE:g} s",
                "check the connection to it",
            ) from None
        except OSError:
            # Its message is the useful one.
            self._expect("nothing more")

    def _expect(self, word: str, patience: float = _PATIENCE) -> str:
        """Wait for a line that begins so; the rest of it."""
        deadline = time.monotonic() + patience
        wanted = _MARK + word.encode()
        while True:
            line = self._line(deadline)
            if line.startswith(_MARK + b"error "):
                raise TestbedError(
                    f"{self.name}: {line.removeprefix(_MARK + b'error ').decode(errors='replace')}"
                )
            if line.startswith(wanted):
                return line.removeprefix(wanted).decode(errors="replace").strip()

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            self.socket.settimeout(max(0.01, left))
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                raise self.problem() or TestbedError(
                    f"{self.name}: {self.place.host} did not answer in time", "check the connection to it"
                ) from None
            except OSError:
                data = b""
            if not data:
                raise self.problem() or TestbedError(f"{self.name}: {self.place.host} closed the connection")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        self.socket.settimeout(_PATIENCE)
        return line


@lru_cache(maxsize=2)
def _compressed(agent: bytes) -> bytes:
    """Once for all hosts: ssh would compress it for each, which takes twice as long."""
    return gzip.compress(agent, 4, mtime=0)


def ssh_missing() -> str | None:
    """Why ssh cannot be run; none if it can."""
    return None if shutil.which("ssh") else "ssh is not installed"
