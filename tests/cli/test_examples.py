"""Every example in a help text is a command that works."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
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
    "tcplab bulk run": "needs another machine: tests/remote has one",
    "tcplab ping": "needs another machine: tests/remote has one",
    "tcplab cc check": "tests/cli/test_cc.py has it, with its runs on the kernel",
    "tcplab cc load": "registers a control system-wide until it is stopped",
    **{
        f"tcplab topo {word}": "builds a network, or needs one that is up: tests/kernel/test_topo.py has it"
        for word in ("up", "down", "exec", "shell", "capture", "set", "wait")
    },
}
# Examples that serve until they are stopped, and one that a server answers.
SERVERS = ("tcplab echo serve", "tcplab serve", "tcplab ui")
CLIENT = "tcplab echo run server.example.org"
# Options that shorten an example of minutes, or of the kernel engine.
SHORTER = {
    "tcplab tune satellite": ["--dry-run"],
    "tcplab study studies/mine.yaml": ["--dry-run"],
    CLIENT: ["--iterations", "20"],
}


PUBLISHED = """{"version": "2", "application": {"startCLI": "0"}, "controllers": [], "switches": [],
"hosts": [{"number": "1", "x": "100", "y": "100", "opts": {"hostname": "h1", "nodeNum": 1}},
          {"number": "2", "x": "500", "y": "100", "opts": {"hostname": "h2", "nodeNum": 2}}],
"links": [{"src": "h1", "dest": "h2", "opts": {"bw": 10, "delay": "5ms"}}]}"""


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
        output=folder / "runs/four-controls-20260101-120000",
    )
    for name in ("cubic", "bbr1"):
        shutil.copytree(results.path, folder / "runs" / name)
    captured = tcplab.run(
        ROOT / "scenarios/one-cubic.yaml",
        set={"duration": "1 s", "capture": "headers"},
        output=folder / "captured",
    )
    for end in ("left", "right"):
        shutil.copy(captured.path / f"run-1/{end}-path.pcapng", folder / f"{end}.pcapng")
    shutil.copy(folder / "left.pcapng", folder / "capture.pcapng")
    (folder / "mine.c").write_text(starting_file("mine"), encoding="utf-8")
    study = (
        "tcplab: 1\nstudy: tuning\nscenario: SCENARIO\nrepeat: 2\ngrid: {network.path.rtt: [50 ms, 100 ms]}\n"
    )
    (folder / "study.yaml").write_text(study.replace("SCENARIO", "scenarios/four-controls.yaml"))
    (folder / "studies").mkdir()
    (folder / "studies/mine.yaml").write_text(study.replace("SCENARIO", "../scenarios/four-controls.yaml"))
    (folder / "published.mn").write_text(PUBLISHED)
    tcplab.study.run(
        folder / "study.yaml", set={"duration": "2 s"}, output=folder / "runs/tuning-20260101-120000"
    )
    return folder


def test_there_are_examples() -> None:
    assert len(examples()) >= 20


@pytest.mark.parametrize("example", [one for one in examples() if not one.startswith((*SERVERS, CLIENT))])
def test_it_works(example: str, made: Path, tmp_path: Path, tcplab: Command, monkeypatch: Any) -> None:
    why = next((why for begin, why in ELSEWHERE.items() if example.startswith(begin)), None)
    if why is not None:
        pytest.skip(why)
    shutil.copytree(made, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    _, *arguments = shlex.split(example)
    arguments += next((more for begin, more in SHORTER.items() if example.startswith(begin)), [])
    if arguments[:2] == ["cc", "new"]:
        Path("mine.c").unlink()
    if arguments[:2] == ["new", "mine"]:
        Path("mine.yaml").unlink(missing_ok=True)
    ended = tcplab(*arguments)
    # The second of doctor: this machine cannot do it.
    assert ended.returncode in ((0, 3) if arguments[0] == "doctor" else (0,)), ended.stderr


@pytest.mark.parametrize("example", [one for one in examples() if one.startswith(SERVERS)])
def test_it_serves_until_it_is_interrupted(
    example: str, made: Path, tmp_path: Path, tcplab: Command, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenarios").symlink_to(made / "scenarios")
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "BROWSER": "true", "PYTHONUNBUFFERED": "1"}
    # A file: the end of a pipe would be waited for as long as any process of the server's has it.
    with Path("said").open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", *shlex.split(example)],
            stdout=said,
            stderr=said,
            env=os.environ | state,
            # A shell's job in the background has Ctrl-C ignored, and what it starts, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        while not (text := Path("said").read_text()).count("\n") and server.poll() is None:
            time.sleep(0.05)
        if "in use" in text:
            pytest.skip(text)
        if example.startswith("tcplab echo serve"):
            (asked,) = (one for one in examples() if one.startswith(CLIENT))
            _, *arguments = shlex.split(asked.replace("server.example.org", "127.0.0.1"))
            ended = tcplab(*arguments, *SHORTER[CLIENT])
            assert ended.returncode == 0, ended.stderr
            assert "65536" in Path("echo.csv").read_text()
        server.send_signal(signal.SIGINT)
        assert server.wait() in (0, 130), Path("said").read_text()
        assert "Traceback" not in Path("said").read_text()
    finally:
        server.kill()
        server.wait()
