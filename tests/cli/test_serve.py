"""`tcplab serve` as a process."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Start = Callable[..., subprocess.Popen[str]]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_its_process_alone_ends_it(ending: signal.Signals, start: Start, here: Path) -> None:
    server = start("serve", "--bind", "127.0.0.1", "--port", "0", "--state", here / "state")
    assert server.stdout is not None
    assert server.stdout.readline().startswith("listening on 127.0.0.1:")
    server.send_signal(ending)
    _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (0, "")
