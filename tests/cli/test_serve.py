"""`tcplab serve` as a process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_echo import Ended

Start = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_its_process_alone_ends_it(ending: signal.Signals, start: Start, here: Path) -> None:
    server = start("serve", "--bind", "127.0.0.1", "--port", "0", "--state", here / "state")
    assert server.stdout is not None
    assert server.stdout.readline().startswith("listening on 127.0.0.1:")
    server.send_signal(ending)
    _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (0, "")


@pytest.mark.parametrize("command", ["bulk run", "echo run", "ping", "doctor"])
def test_a_url_that_cannot_be_read_is_wrong_input(command: str, tcplab: Callable[..., Ended]) -> None:
    for url, why in (
        ("tcplab://[::1", "Invalid IPv6 URL"),
        ("tcplab://right?foo=1", "unknown setting 'foo'"),
        (f"tcplab://{'a' * 70}", "is not the name of a host"),
    ):
        done = tcplab(*command.split(), url)
        assert done.returncode == 2, done.stderr
        assert why in done.stderr
        assert "internal error" not in done.stderr
