"""`tcplab study`, and studies given to other commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STUDY = """\
tcplab: 1
study: small
scenario:
  tcplab: 1
  name: base
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
  flows: [{name: bulk, kind: tcp}]
  duration: 1 s
grid:
  flows.bulk.cc: [reno, cubic]
repeat: 2
"""


# A generator that the simulator has not.
NO_IPERF3 = ("flows.bulk.cc: [reno, cubic]", "flows.bulk.generator: [native, iperf3]")


@pytest.fixture
def study(here: Path) -> Callable[[str, str], str]:
    """The study with one text replaced, as a file."""

    def write(old: str = "", new: str = "") -> str:
        assert old in STUDY
        (here / "study.yaml").write_text(STUDY.replace(old, new, 1))
        return "study.yaml"

    return write


def test_a_study_with_runs_that_failed_exits_with_4(tcplab: Any, study: Any) -> None:
    ended = tcplab("study", study(*NO_IPERF3), "--output", "out", "--no-report")
    assert ended.returncode == 4
    assert "2 of 4 runs failed" in ended.stderr
    assert "iperf3" in ended.stderr


def test_a_study_of_which_no_cell_can_run_is_refused_once(tcplab: Any, study: Any, here: Path) -> None:
    ended = tcplab("study", study("kind: tcp}", "kind: tcp, generator: iperf3}"), "--output", "out")
    assert ended.returncode == 3
    assert ended.stderr == (
        "tcplab: error: the engine sim cannot run this:\n"
        "study.yaml: error: flows.bulk.generator: iperf3 is a program and needs a real network stack\n"
        "hint: leave `generator` out\n"
    )
    assert not (here / "out").exists()


def test_a_directory_may_have_any_name(tcplab: Any, study: Any, here: Path) -> None:
    name = "[a] *?ü %s {0}"
    ended = tcplab("study", study(), "--output", name, "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert tcplab("study", "query", name, "SELECT count(*) FROM intervals").returncode == 0
    assert tcplab("study", "report", name).stdout == f"{name}/report.html\n"
    for words in (["compare", name, name], ["export", name, "-f", "csv"]):
        assert f"hint: {name} is a study; results of its cells: {name}/cells" in tcplab(*words).stderr
    cell = next((here / name / "cells").iterdir()).relative_to(here)
    assert tcplab("show", str(cell), "--table", "flows").returncode == 0


def test_a_damaged_index_is_wrong_input(tcplab: Any, study: Any, here: Path) -> None:
    (here / "out").mkdir()
    for text in ("{", "[]", '{"asked": {}, "source": "s", "cells": []}'):
        (here / "out" / "study.json").write_text(text)
        for words in (["study", study(), "--resume", "out"], ["study", "report", "out"]):
            ended = tcplab(*words)
            assert (ended.returncode, "study.json: not a study's index" in ended.stderr) == (2, True)


def test_a_resumed_study_tells_failed_runs_from_missing_ones(tcplab: Any, study: Any, here: Path) -> None:
    file = study(*NO_IPERF3)
    tcplab("study", file, "--output", "out", "--no-report")
    shutil.rmtree(next((here / "out" / "cells").glob("native-*/run-2")))
    ended = tcplab("study", file, "--resume", "out", "--no-report")
    assert "resuming: 1 of 4 runs are there, 1 missing, 2 failed\n" in ended.stderr


def test_quiet_leaves_only_the_runs_that_failed(tcplab: Any, study: Any) -> None:
    assert tcplab("study", "run", study(), "--output", "out", "--no-report", "-q").stderr == ""
    mixed = study("flows.bulk.cc: [reno, cubic]", "flows.bulk.generator: [native, iperf3]")
    said = tcplab("study", "run", mixed, "--output", "mixed", "--no-report", "-q").stderr
    assert "failed" in said
    assert ": done" not in said


def test_one_failed_cell_is_enough_and_outdoes_the_verdicts(tcplab: Any, study: Any) -> None:
    file = study(NO_IPERF3[0], NO_IPERF3[1] + "\nexpect: [goodput(generator=native) > 1 Gbit/s]")
    ended = tcplab("study", file, "--output", "out", "--json")
    assert ended.returncode == 4
    assert json.loads(ended.stdout)["status"] == "failed"
    good = study("[reno, cubic]", "[reno]\nexpect: [goodput(cc=reno) > 1 Gbit/s]")
    assert tcplab("study", good, "--output", "good", "--no-report").returncode == 1


def test_check_checks_every_cell_of_a_study(tcplab: Any, study: Any) -> None:
    ended = tcplab("check", study())
    assert ended.returncode == 0, ended.stderr
    assert "small: a study of 2 cells, 4 runs on sim, seeds 1 to 2" in ended.stdout
    assert "cc: reno, cubic" in ended.stdout
    (found,) = json.loads(tcplab("check", study(), "--json").stdout)["files"]
    assert [cell["labels"] for cell in found["cells"]] == [{"cc": "reno"}, {"cc": "cubic"}]


@pytest.mark.parametrize("engines", ["foo", "sim,foo", "sim,"])
def test_an_unknown_engine_of_the_command_line_is_not_the_file_s(tcplab: Any, engines: str) -> None:
    ended = tcplab("study", "tuning", "--engine", engines, "--dry-run")
    unknown = engines.removeprefix("sim,")
    assert ended.returncode == 2
    assert f"'--engine' / '-e': '{unknown}' is not one of 'sim', 'kernel', 'remote'" in ended.stderr


def test_check_says_which_cells_the_engine_cannot_run(tcplab: Any, study: Any) -> None:
    ended = tcplab("check", study(*NO_IPERF3))
    assert ended.returncode == 3
    assert "flows.bulk.generator: " in ended.stderr
    assert "iperf3" in ended.stderr
    assert "(in 1 of 2 cells)" in ended.stderr


def test_a_control_that_there_is_not_is_a_mistake_of_the_file(tcplab: Any, study: Any) -> None:
    for command in ("check", "study"):
        ended = tcplab(command, study("[reno, cubic]", "[reno, nosuch]"))
        assert ended.returncode == 2
        assert "grid.flows.bulk.cc.nosuch: flows.bulk.cc: unknown congestion control `nosuch`" in ended.stderr


def test_check_tells_a_study_s_mistakes_with_their_lines(tcplab: Any, study: Any) -> None:
    ended = tcplab("check", study("repeat: 2", "repeat: 0"))
    assert ended.returncode == 2
    assert "study.yaml:11:" in ended.stderr
    assert "flows" not in ended.stderr


def test_run_says_that_a_study_is_not_a_scenario(tcplab: Any, study: Any) -> None:
    ended = tcplab("run", study())
    assert ended.returncode == 2
    assert "this is a study, not a scenario: `tcplab study FILE` runs it" in ended.stderr
    assert "`flows` is missing" not in ended.stderr


def test_study_says_that_a_scenario_is_not_a_study(tcplab: Any, here: Path) -> None:
    ended = tcplab("study", "short.yaml")
    assert ended.returncode == 2
    assert "this is a scenario, not a study: `tcplab run FILE` runs it" in ended.stderr
    assert "is missing" not in ended.stderr


def test_check_knows_a_study_whose_first_key_is_misspelt(tcplab: Any, study: Any) -> None:
    ended = tcplab("check", study("study: ", "stdy: "))
    assert ended.returncode == 2
    assert "unknown key `stdy`" in ended.stderr
    assert "did you mean `study`?" in ended.stderr
    assert "is missing" not in ended.stderr


def test_a_damaged_run_is_named_when_a_study_is_resumed(tcplab: Any, study: Any, here: Path) -> None:
    file = study()
    assert tcplab("study", file, "--output", "out", "--no-report").returncode == 0
    manifest = next((here / "out").glob("cells/reno-*/run-1/manifest.json"))
    manifest.write_text(manifest.read_text()[:40])
    ended = tcplab("study", file, "--resume", "out", "--no-report")
    assert ended.returncode == 0, ended.stderr
    assert f"{manifest.parent.relative_to(here)} is damaged, and is run again" in ended.stderr
    assert "resuming: 3 of 4 runs are there, 1 missing" in ended.stderr


def test_a_resumed_study_is_the_one_that_was_asked_for(tcplab: Any, study: Any, here: Path) -> None:
    """Options that are given again change it."""
    asked = ("--quick", "--repeat", "1", "--seed", "7", "--set", "network.path.rtt=30 ms")
    assert tcplab("study", study(), "--output", "out", "--no-report", *asked).returncode == 0
    same = tcplab("study", study(), "--resume", "out", "--no-report")
    assert "resuming: 2 of 2 runs are there\n" in same.stderr
    more = tcplab("study", study(), "--resume", "out", "--no-report", "--repeat", "2")
    assert "resuming: 2 of 4 runs are there, 2 missing\n" in more.stderr
    kept = json.loads((here / "out" / "study.json").read_text())["asked"]
    assert kept == {"engines": [], "sets": ["network.path.rtt=30 ms"], "repeat": 2, "seed": 7, "quick": True}


def test_repetitions_that_do_not_vary_are_deterministic_in_tables_expectations_and_queries(
    tcplab: Any, study: Any
) -> None:
    more = "vary: off\nbaseline: {cc: reno}\nexpect: [goodput(cc=reno) > 1 Gbit/s]"
    file = study("duration: 1 s", f"duration: 1 s\n  {more}")
    ended = tcplab("study", file, "--output", "out", "--no-report")
    assert ended.returncode == 1
    assert ended.stdout.count("deterministic") >= 4
    assert " ± " not in ended.stdout
    assert "(deterministic)" in ended.stdout
    asked = "SELECT cc, count(DISTINCT goodput) AS n FROM results WHERE flow IS NULL GROUP BY cc ORDER BY cc"
    answer = json.loads(tcplab("study", "query", "out", asked, "--json").stdout)["rows"]
    assert answer == [{"cc": "cubic", "n": 1}, {"cc": "reno", "n": 1}]


def test_a_study_is_one_line_of_the_list_and_report_writes_its_report(
    study: Any, here: Path, tcplab: Any
) -> None:
    assert tcplab("study", study(), "--output", "out", "--no-report").returncode == 0
    (listed,) = json.loads(tcplab("list", ".", "--json").stdout)["results"]
    assert (listed["kind"], listed["path"], listed["status"]) == ("study", "out", "done")
    shown = tcplab("show", "out")
    assert shown.returncode == 2
    assert "hint: tcplab study report out" in shown.stderr
    ended = tcplab("report", "out", "--level", "90 %")
    assert ended.stdout == "out/report.html\n", ended.stderr
    assert "90\N{NO-BREAK SPACE}%" in (here / "out/report.html").read_text()


def test_a_query_prints_its_rows_and_nothing_else(study: Any, process: Any, tcplab: Any) -> None:
    assert tcplab("study", study(), "--output", "out", "--no-report").returncode == 0
    asked = process("study", "query", "out", "SELECT count(*) AS runs FROM results WHERE flow IS NULL")
    assert (asked.returncode, asked.stdout.split(), asked.stderr) == (0, ["runs", "4"], "")


def test_a_query_of_another_directory_is_wrong_input(here: Path, tcplab: Any) -> None:
    asked = tcplab("study", "query", here, "SELECT 1")
    assert (asked.returncode, asked.stderr) == (
        2,
        f"tcplab: error: {here}: not the directory of a study\n",
    )


def test_tune_announces_what_it_will_do_and_leaves_nothing(here: Path, tcplab: Any) -> None:
    ended = tcplab("tune", "one-cubic", "--over", "cc=cubic|reno,window", "--dry-run", "--json")
    printed = json.loads(ended.stdout)
    assert (printed["space"], printed["runs"], len(printed["candidates"])) == (12, 24, 12)
    assert {one["window"] for one in printed["candidates"]} >= {"unchanged", "64 KiB"}
    assert not (here / "runs").exists()


def test_tune_says_what_it_cannot_search(here: Path, tcplab: Any) -> None:
    unmeasured = tcplab(
        "tune", "short.yaml", "--over", "cc=cubic|reno", "--goal", "minimize loss_rate", "-o", "one"
    )
    assert unmeasured.returncode == 2
    assert "--goal minimize loss_rate: no flow of short.yaml has this metric" in unmeasured.stderr
    assert "constraints" not in unmeasured.stdout + unmeasured.stderr
    taken = tcplab("tune", "short.yaml", "--over", "cc=cubic", "--output", "one")
    assert (taken.returncode, "already holds results" in taken.stderr) == (2, True)
    nothing = tcplab("tune", "short.yaml", "--over", " ", "--output", "two")
    assert (nothing.returncode, "a parameter is missing" in nothing.stderr) == (2, True)
    assert not (here / "two").exists()


@pytest.mark.parametrize(
    ("over", "message"),
    [("window=abc", "`abc` is not a size"), ("cc=reno|cubc", "did you mean `cubic`?")],
)
def test_tune_of_a_wrong_value_leaves_nothing(over: str, message: str, here: Path, tcplab: Any) -> None:
    ended = tcplab("tune", "short.yaml", "--over", over)
    assert (ended.returncode, message in ended.stderr) == (2, True)
    assert not (here / "runs").exists()


def test_tune_confirms_on_another_engine_than_its_own(here: Path, tcplab: Any) -> None:
    ended = tcplab("tune", "short.yaml", "--over", "cc=cubic|reno", "--confirm", "sim")
    assert (ended.returncode, "--confirm sim: candidates race in the simulator" in ended.stderr) == (2, True)
    assert not (here / "runs").exists()


def test_tune_takes_the_level_of_its_intervals(here: Path, tcplab: Any) -> None:
    asked = ("tune", "short.yaml", "--over", "window=64 KiB|1 MiB", "--json")
    printed = json.loads(tcplab(*asked, "--level", "99 %").stdout)
    assert (printed["version"], printed["level"], printed["space"]) == (1, 0.99, 2)
    assert {one["labels"]["window"] for one in printed["candidates"]} == {"64 KiB", "1 MiB"}
    cells = {path.name for path in (here / printed["path"] / "cells").iterdir()}
    assert sorted(name.rpartition("-")[0] for name in cells) == ["1-MiB", "64-KiB"]
    wrong = tcplab(*asked, "--level", "99")
    assert (wrong.returncode, "between 0 and 100 %; write 99 %" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("command", ["study", "tune", "remedies", "python"])
def test_a_place_that_another_process_takes_first_is_left_to_it(
    command: str, study: Any, here: Path, tcplab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcplab import runner
    from tcplab import study as api

    chosen = runner.place
    taken: list[Path] = []

    def late(*given: Any, **more: Any) -> Path:
        path = chosen(*given, **more)
        path.mkdir(parents=True)
        taken.append(path)
        return path

    monkeypatch.setattr(runner, "place", late)
    if command == "python":
        monkeypatch.chdir(here)
        path = api.run(study()).path
    else:
        words = {
            "study": ("study", study(), "--no-report"),
            "tune": ("tune", "short.yaml", "--over", "cc=cubic|reno"),
            "remedies": ("run", "short.yaml", "--with-accelerator", "--no-report"),
        }[command]
        ended = tcplab(*words)
        assert ended.returncode == 0, ended.stderr
        [path] = (here / "runs").glob("*-2")
    assert (here / path).resolve() == (here / f"{taken[0]}-2").resolve()
    assert (here / path / "study.json").exists()
    assert not list((here / taken[0]).iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tune.yaml", ("tune", "short.yaml", "--over", "cc=cubic|reno")),
        ("remedies.yaml", ("run", "short.yaml", "--with-accelerator")),
    ],
)
def test_a_file_of_ones_own_is_not_replaced(name: str, words: Any, here: Path, tcplab: Any) -> None:
    (here / name).write_text("mine")
    ended = tcplab(*words, "--output", ".")
    assert ended.returncode == 2
    assert f"already has a file {name}; give another directory with --output" in ended.stderr
    assert (here / name).read_text() == "mine"
