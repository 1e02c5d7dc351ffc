"""A shell in a node of a lab has the terminal: size, Ctrl-C and Ctrl-Z. The exit code is the shell's."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tcplab.engine.kernel_check import FRR

TCPLAB = [sys.executable, "-m", "tcplab"]
LAB = f"shell-{os.getpid()}"
SCENARIO = """\
tcplab: 1
name: shells
network:
  nodes: [a, {name: r, kind: router%s}, b]
  links: [{ends: [a, r]}, {ends: [r, b]}]
flows:
  - {name: p, kind: ping, from: a, to: b}
verify: off
"""
# Makes its terminal the controlling one, as a login does.
LOGIN = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
PATIENCE = 120
CTRL_C, CTRL_Z = "\x03", "\x1a"


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self._master, slave = os.openpty()
        self.resize(33, 77)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOGIN, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TCPLAB_LAB": LAB, "TERM": "dumb", "LC_ALL": "C"},
        )
        os.close(slave)
        self._read = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, text: str) -> None:
        """Read on until the text has come."""
        until = time.monotonic() + PATIENCE
        while text not in self._read:
            ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} did not come, but {self._read!r}"
            try:
                self._read += os.read(self._master, 4096).decode(errors="replace")
            except OSError:
                pytest.fail(f"the program ended before {text!r} came: {self._read!r}")
        self._read = self._read.partition(text)[2]

    def code(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


def topo(*words: object) -> subprocess.CompletedProcess[str]:
    command = [*TCPLAB, "topo", *map(str, words)]
    environment = {**os.environ, "TCPLAB_LAB": LAB}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def up(folder: Path, routing: str = "") -> None:
    scenario = folder / "shells.yaml"
    scenario.write_text(SCENARIO % routing, encoding="utf-8")
    done = topo("up", scenario, "--name", LAB)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def shell() -> Iterator[Callable[..., Terminal]]:
    opened = []

    def open_shell(*words: str) -> Terminal:
        opened.append(Terminal(*TCPLAB, "topo", "shell", *words))
        return opened[-1]

    yield open_shell
    for terminal in opened:
        terminal.close()
    topo("down", LAB)


def test_a_shell_has_the_terminal_and_the_exit_code(tmp_path: Path, shell: Callable[..., Terminal]) -> None:
    up(tmp_path)
    bash = shell("a")
    # The terminal echoes what is typed: it differs from what is then printed.
    bash.type('echo "on: $(hostname)"\r')
    bash.expect("on: a")
    bash.type("echo size: $(stty size)\r")
    bash.expect("size: 33 77")
    bash.resize(40, 100)
    bash.type("echo size: $(stty size)\r")
    bash.expect("size: 40 100")
    bash.type("sh -c 'echo be''gun; exec sleep 10000'\r")
    bash.expect("begun")
    bash.type(CTRL_C)
    bash.type("echo code: $?\r")
    bash.expect("code: 130")
    bash.type("sh -c 'echo be''gun; exec sleep 10000'\r")
    bash.expect("begun")
    bash.type(CTRL_Z)
    bash.expect("Stopped")
    # Bash refuses the first exit where it does not know yet that the stopped job is gone, and no second one.
    bash.type("kill -9 %1\rexit 7\rexit 7\r")
    assert bash.code() == 7


def test_a_shell_ends_with_its_lab(tmp_path: Path, shell: Callable[..., Terminal]) -> None:
    up(tmp_path)
    bash = shell("a")
    bash.type("echo be''gun\r")
    bash.expect("begun")
    assert topo("down", LAB).returncode == 0
    assert bash.code() != 0


@pytest.mark.skipif(not FRR.exists(), reason="FRR is not installed")
def test_the_console_of_a_router(tmp_path: Path, shell: Callable[..., Terminal]) -> None:
    up(tmp_path, ", routing: {ospf: {}}")
    console = shell("r", "--vtysh")
    console.expect("r# ")
    console.type("show running-config\r")
    console.expect("router ospf")
    console.type("q\rexit\r")
    assert console.code() == 0
    refused = topo("shell", "a", "--vtysh")
    assert refused.returncode == 2
    assert refused.stderr == "tcplab: error: a does not run FRR\nhint: its routers with FRR: r\n"
