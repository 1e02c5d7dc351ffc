"""`tcplab list`: results, and directories without any or that cannot be read."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_list_without_results_says_how_to_make_some(tcplab: Command) -> None:
    ended = tcplab("list")
    assert ended.returncode == 0
    assert "tcplab run" in ended.stdout


def test_list_of_a_directory_that_is_not_there(tcplab: Command) -> None:
    ended = tcplab("list", "absent")
    assert (ended.returncode, ended.stderr) == (2, "tcplab: error: absent: no such directory\n")
    ended = tcplab("list", "short.yaml")
    assert (ended.returncode, ended.stderr) == (2, "tcplab: error: short.yaml: is a file, not a directory\n")


def test_list_names_what_is_there(done: Path, tcplab: Command) -> None:
    ended = tcplab("list", ".")
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[1].split()[:5] == ["done", "run", "short", "sim", "1"]
    (listed,) = json.loads(tcplab("list", ".", "--json").stdout)["results"]
    assert (listed["name"], listed["repetitions"]) == ("short", 1)


def test_times_are_those_of_the_readers_time_zone(done: Path, process: Command) -> None:
    manifest = done / "run-1" / "manifest.json"
    started = {"started": "2026-01-02T06:00:00+05:30"}
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | started))
    assert "2026-01-01 19:30:00" in process("list", ".", TZ="EST5").stdout
    assert "started 2026-01-02 00:30:00, seed" in process("show", "done", TZ="UTC0").stdout


def test_list_names_a_directory_that_it_may_not_read(
    done: Path, here: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, to whom every directory is open."""
    (here / "secret").mkdir()
    scan = os.scandir

    def scandir(path: Any = ".") -> Any:
        if Path(path).name == "secret":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    ended = tcplab("list", ".")
    assert (ended.returncode, ended.stdout.splitlines()[1].split()[0]) == (0, "done")
    assert ended.stderr == "tcplab: warning: secret: cannot be read: Permission denied\n"
    assert tcplab("list", ".", "--json").stderr == ended.stderr
    for command in ("list", "ui"):
        ended = tcplab(command, "secret")
        assert ended.returncode == 2
        assert ended.stderr == "tcplab: error: secret: cannot be read: Permission denied\n"
