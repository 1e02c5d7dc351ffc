"""Problems of an engine with a scenario are reported at the line that they are about."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcplab as library

Command = Callable[..., Any]

# Cables without a rate or a delay: the simulator's clock would stand still.
INSTANT = """\
tcplab: 1
name: cables
network:
  topology: {kind: fat-tree, k: 4}
flows:
  - {name: bulk, kind: tcp, from: h1, to: h16}
duration: 1 s
"""
PLACED = """\
cables.yaml:6:5: error: flows.bulk: \
no link on its path has a rate or a delay, so a round trip would take no time
  6 |   - {name: bulk, kind: tcp, from: h1, to: h16}
    |     ^
hint: give a link on the path a `rate` or a `delay`; \
to a generated `topology` add `edge: {rate: 1 Gbit/s, delay: 10 us}`
"""


@pytest.fixture
def cables(here: Path) -> Path:
    path = here / "cables.yaml"
    path.write_text(INSTANT, encoding="utf-8")
    return path


def test_a_control_in_capitals_is_recognised(here: Path, tcplab: Command) -> None:
    assert "did you mean `cubic`?" in tcplab("check", "short.yaml", "--set", "flows.0.cc=CUBIC").stderr


def test_one_packet_is_not_plural(here: Path, tcplab: Command) -> None:
    flow = "flows=[{name: a, kind: udp, rate: 1 Mbit/s, bytes: 1 B}]"
    assert "estimate: about 1 packet, 2 rows, " in tcplab("check", "short.yaml", "--set", flow).stdout


def test_a_plan_that_cannot_be_simulated_is_reported_at_its_line(cables: Path, tcplab: Command) -> None:
    ended = tcplab("check", cables.name)
    assert (ended.returncode, ended.stderr) == (3, PLACED)
    ended = tcplab("run", cables.name)
    assert ended.returncode == 3
    assert ended.stderr == "tcplab: error: the engine sim cannot run this:\n" + PLACED


def test_scripts_get_the_line_too(cables: Path, tcplab: Command) -> None:
    (found,) = json.loads(tcplab("check", "--json", cables.name).stdout)["files"][0]["problems"]
    assert (found["file"], found["line"], found["column"]) == ("cables.yaml", 6, 5)
    (problem,) = library.check(cables)
    assert problem.at is not None
    assert (problem.at.line, problem.at.column) == (6, 5)


def test_an_override_that_helps_is_enough(cables: Path, tcplab: Command) -> None:
    faster = "network.topology.edge={rate: 1 Gbit/s, delay: 10 us}"
    assert tcplab("check", cables.name, "--set", faster).returncode == 0


def test_what_the_text_does_not_hold_has_no_line(tcplab: Command) -> None:
    ended = tcplab("check", "short.yaml", "--set", "emulator=netem", "--set", "repeat=1")
    assert ended.stderr.startswith("--set:1:10: warning: emulator: the simulator ignores emulator")
    (problem,) = library.check({**_data(), "emulator": "netem"})
    assert problem.at is not None
    assert problem.at.line == 0


def _data() -> dict[str, Any]:
    flow = {"name": "bulk", "kind": "tcp", "duration": "1 s"}
    return {
        "tcplab": 1,
        "name": "x",
        "network": {"path": {"rate": "1 Mbit/s", "rtt": "9 ms"}},
        "flows": [flow],
    }


@pytest.mark.parametrize("command", ["check", "run", "study", "cc check", "topo import"])
def test_a_file_without_permission_is_refused_in_the_same_words_by_all(
    here: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Whoever runs the tests may be root, to whom every file is open."""
    file = here / "secret.yaml"
    file.touch()
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def opened(_path: Path, *_arguments: object, **_settings: object) -> None:
        raise denied

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(Path, "open", opened)
    ended = tcplab(*command.split(), file)
    assert ended.returncode == 2
    assert "cannot be read: Permission denied" in ended.stderr


@pytest.mark.parametrize("command", ["show", "report", "list", "pcap"])
def test_a_directory_without_permission_is_wrong_input(
    here: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    (here / "secret").mkdir()

    def refuse(path: Any, *_arguments: object, **_settings: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    for place, name in ((os, "scandir"), (os, "listdir"), (Path, "stat"), (Path, "open")):
        monkeypatch.setattr(place, name, refuse)
    monkeypatch.setattr(Path, "is_dir", lambda _: True)
    ended = tcplab(*command.split(), "secret")
    assert ended.returncode == 2
    assert ended.stderr.startswith("tcplab: error: secret: cannot be read: Permission denied")
