"""Every example in a help text is a command that works."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from tcplab.cli.app import app

Command = Callable[..., Any]
ROOT = Path(__file__).parents[2]
# Needs of an example that a test does not have, by how it begins.
ELSEWHERE = {
    "tcplab echo serve": "serves until it is stopped",
    "tcplab echo run": "needs a server on another machine",
    "tcplab bulk run": "needs another machine: tests/remote has one",
    "tcplab ping": "needs another machine: tests/remote has one",
    "tcplab serve": "serves until it is stopped",
    "tcplab cc load": "registers a control system-wide until it is stopped",
    "tcplab study tuning": "takes minutes",
    "tcplab study studies/mine.yaml": "needs a study of the reader's own, on both engines",
    "tcplab study run": "takes minutes",
    "tcplab tune satellite": "takes minutes",
    "tcplab topo": "builds a network, or needs one that is up: tests/kernel/test_topo.py has them",
    "tcplab ui": "serves until it is stopped",
}


def commands(command: Any, context: typer.Context) -> Iterator[tuple[Any, typer.Context]]:
    yield command, context
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, typer.Context(below, parent=context, info_name=name))


def examples() -> list[str]:
    """The lines that begin with `tcplab` behind `Example:`, with those that go on in the next line joined."""
    found = []
    root = get_command(app)
    for command, context in commands(root, typer.Context(root, info_name="tcplab")):
        _, _, behind = command.get_help(context).partition("Example:")
        found += re.findall(r"^ *(tcplab .*)$", behind, re.MULTILINE)
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples read: results, a capture and a control, in a working directory."""
    import tcplab
    from tcplab.cc.template import starting_file

    folder = tmp_path_factory.mktemp("examples")
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    results = tcplab.run(
        ROOT / "scenarios/four-controls.yaml",
        set={"duration": "2 s", "capture": "headers"},
        out=folder / "runs/four-controls-20260101-120000",
    )
    for name in ("cubic", "bbr1"):
        shutil.copytree(results.path, folder / "runs" / name)
    captured = tcplab.run(
        ROOT / "scenarios/one-cubic.yaml",
        set={"duration": "1 s", "capture": "headers"},
        out=folder / "captured",
    )
    for end in ("left", "right"):
        shutil.copy(captured.path / f"run-1/{end}-path.pcapng", folder / f"{end}.pcapng")
    shutil.copy(folder / "left.pcapng", folder / "capture.pcapng")
    (folder / "mine.c").write_text(starting_file("mine"), encoding="utf-8")
    (folder / "study.yaml").write_text(
        "tcplab: 1\nstudy: tuning\nscenario: scenarios/four-controls.yaml\nrepeat: 2\n"
        "grid: {network.path.rtt: [50 ms, 100 ms]}\n",
        encoding="utf-8",
    )
    return folder


def test_there_are_examples() -> None:
    assert len(examples()) >= 20


@pytest.mark.parametrize("example", examples())
def test_it_works(example: str, made: Path, tmp_path: Path, tcplab: Command, monkeypatch: Any) -> None:
    why = next((why for begin, why in ELSEWHERE.items() if example.startswith(begin)), None)
    if why is not None:
        pytest.skip(why)
    shutil.copytree(made, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    _, *arguments = shlex.split(example)
    if "runs/tuning-20260101-120000" in arguments:
        study = tcplab(
            "study", "study.yaml", "--set", "duration=2 s", "--output", "runs/tuning-20260101-120000"
        )
        assert study.returncode == 0, study.stderr
    if arguments[:2] == ["cc", "new"]:
        Path("mine.c").unlink()
    if arguments[:2] == ["new", "mine"]:
        Path("mine.yaml").unlink(missing_ok=True)
    ended = tcplab(*arguments)
    # The third: this machine cannot do it (cc check and doctor, of the kernel).
    assert ended.returncode in ((0, 3) if arguments[0] in ("cc", "doctor") else (0,)), ended.stderr
