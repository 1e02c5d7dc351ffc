"""The command as a person runs it, in a directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

SHORT = """\
tcplab: 1
name: short
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: {kind: droptail, limit: 50 packets}}
flows:
  - {name: bulk, kind: tcp, cc: cubic, duration: 2 s}
"""
# Minutes of simulation, unless it is stopped.
LONG = """\
tcplab: 1
name: long
network:
  path: {rate: 1 Gbit/s, rtt: 20 ms, queue: {kind: droptail, limit: 1 BDP}}
flows:
  - {name: bulk, kind: tcp, cc: cubic, streams: 4, duration: 20000 s}
sample: {sockets: 1 s, queues: 1 s, flows: 1 s}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The working directory, with a short and a long scenario in it."""
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    (tmp_path / "long.yaml").write_text(LONG, encoding="utf-8")
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def tcplab(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Run the command within this process, which saves a second of imports each time."""
    from tcplab.cli.app import app

    monkeypatch.chdir(here)

    def call(*arguments: object) -> Ended:
        result = CliRunner().invoke(app, [*map(str, arguments)], prog_name="tcplab")
        return Ended(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def process(here: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Run the command in a process of its own; keyword arguments are environment variables."""

    def call(*arguments: object, **more: str) -> Ended:
        ended = subprocess.run(
            [sys.executable, "-m", "tcplab", *map(str, arguments)],
            cwd=here,
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return call


@pytest.fixture
def start(here: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command and do not wait; what still runs at the test's end is killed."""
    started: list[subprocess.Popen[str]] = []

    def call(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tcplab", *map(str, arguments)],
            cwd=here,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def done(here: Path, tcplab: Callable[..., Ended]) -> Path:
    """The directory of a short run that is done."""
    ended = tcplab("run", "short.yaml", "--output", "done", "--no-report", "--quiet")
    assert ended.returncode == 0, ended.stderr
    return here / "done"
