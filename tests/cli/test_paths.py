"""Paths that cannot be read or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def test_a_default_place_that_cannot_be_written_is_the_machines_doing(here: Path, tcplab: Command) -> None:
    (here / "runs").touch()
    (here / "study.yaml").write_text(
        "tcplab: 1\nstudy: small\nscenario: short.yaml\ngrid: {flows.bulk.cc: [reno, cubic]}\n"
    )
    for words in (
        ["run", "short.yaml"],
        ["run", "short.yaml", "--with-accelerator"],
        ["study", "study.yaml"],
        ["tune", "short.yaml", "--goal", "goodput", "--over", "cc"],
    ):
        ended = tcplab(*words)
        assert ended.returncode == 3, (words, ended.stderr)
        assert "hint: --output DIR puts results elsewhere" in ended.stderr
        chosen = tcplab(*words, "--output", "runs/x")
        assert chosen.returncode == 2, (words, chosen.stderr)
        assert "a part of the path is not a directory" in chosen.stderr


@pytest.mark.parametrize(
    "words", [["run"], ["check"], ["show"], ["report"], ["run", "short.yaml", "--output"]]
)
def test_a_path_that_no_file_can_have_is_wrong_input(words: list[str], here: Path, tcplab: Command) -> None:
    (here / "loop").symlink_to("loop")
    for path, said in (("a" * 300, "File name too long"), ("loop/x", "Too many levels of symbolic links")):
        ended = tcplab(*words, path)
        assert ended.returncode == 2, ended.stderr
        assert ended.stderr.startswith("tcplab: error: ")
        assert said in ended.stderr or "no such" in ended.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["run", "short.yaml", "--output"], "'--output' / '-o'"),
        (["export", "done", "--format", "csv", "-o"], "'--output' / '-o'"),
        (["pcap", "c.pcap", "--csv"], "'--csv'"),
        (["check", "short.yaml"], "'SCENARIO...'"),
        (["show"], "'RUN'"),
        (["list"], "'[ROOT]'"),
    ],
)
def test_an_empty_path_is_wrong_input(words: list[str], name: str, here: Path, tcplab: Command) -> None:
    """As `--output "$OUT"` gives where the variable is not set: not the working directory."""
    before = sorted(here.iterdir())
    ended = tcplab(*words, "")
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.startswith(f"tcplab: error: invalid value for {name}: the path is empty\n")
    assert sorted(here.iterdir()) == before


def test_a_working_directory_that_has_gone_is_wrong_input(
    here: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ended = tcplab("check", "one-cubic")
    assert ended.returncode == 2
    assert ended.stderr == "tcplab: error: the working directory does not exist any more\n"
