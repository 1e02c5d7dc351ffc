"""Shipped scenarios and studies by name, in any directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tcplab as library
from tcplab.shipped import scenario_names

Command = Callable[..., Any]
ROOT = Path(__file__).parents[2]


def test_a_second_copy_takes_the_traces_that_are_there(tcplab: Command, here: Path) -> None:
    assert tcplab("examples", "copy", "cellular-trace", "one.yaml").returncode == 0
    assert tcplab("examples", "copy", "cellular-trace", "two.yaml").returncode == 0
    (here / "traces" / "cellular.down").write_text("1\n")
    ended = tcplab("examples", "copy", "cellular-trace", "three.yaml")
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "tcplab: error: traces/cellular.down: already exists",
        "hint: copy to another directory",
    ]
    assert not (here / "three.yaml").exists()


def test_a_shipped_scenario_is_checked_by_its_name(tcplab: Command) -> None:
    ended = tcplab("check", "one-cubic", "tuning")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("one-cubic: 1 run of 60 s")
    assert "tuning" in ended.stdout


def test_a_file_of_that_name_comes_first(here: Path, tcplab: Command) -> None:
    text = (ROOT / "scenarios/two-flows.yaml").read_text(encoding="utf-8")
    (here / "one-cubic").write_text(text, encoding="utf-8")
    assert tcplab("check", "one-cubic").stdout.startswith("two-flows:")


def test_the_list_has_every_shipped_scenario_with_its_description(tcplab: Command) -> None:
    found = json.loads(tcplab("examples", "list", "--json").stdout)["scenarios"]
    assert not [one for one in found if one["description"] != one["description"].strip()]
    assert [one["name"] for one in found] == sorted(path.stem for path in ROOT.glob("scenarios/*.yaml"))
    assert all(one["description"] for one in found)


def test_a_copy_runs_as_the_original_does(here: Path, tcplab: Command) -> None:
    assert tcplab("examples", "copy", "cellular-trace", "mine.yaml").returncode == 0
    copied = json.loads(tcplab("check", "--json", "mine.yaml").stdout)["files"][0]["plan"]
    shipped = json.loads(tcplab("check", "--json", "cellular-trace").stdout)["files"][0]["plan"]
    assert copied == shipped


def test_a_copy_replaces_nothing(here: Path, tcplab: Command) -> None:
    assert tcplab("examples", "copy", "two-flows").returncode == 0
    ended = tcplab("examples", "copy", "two-flows")
    assert ended.returncode == 2
    assert "two-flows.yaml: already exists" in ended.stderr


def test_an_unknown_name_is_answered_with_the_names(tcplab: Command) -> None:
    ended = tcplab("examples", "copy", "nonesuch")
    assert ended.returncode == 2
    assert all(name in ended.stderr for name in scenario_names())


def test_python_runs_a_shipped_scenario_and_compares(tmp_path: Path) -> None:
    runs = [
        library.run("two-flows", set={"duration": "12 s", "flows.first.cc": cc}, output=tmp_path / cc)
        for cc in ("cubic", "reno")
    ]
    found = library.compare(*runs)
    assert {row.flow for row in found.differences} == {"first", "second"}
    assert str(library.compare(tmp_path / "cubic", tmp_path / "reno")) == str(found)
