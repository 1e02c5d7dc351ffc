"""`tcplab show`: rows of a table, chosen and in other formats."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.results.tests.synthetic import plan, write_result

Command = Callable[..., Any]


@pytest.fixture
def run(here: Path) -> Path:
    return write_result(here / "r", plan({"one": "reno", "two": "cubic"}, seconds=5))


def rows(ended: Any) -> list[dict[str, Any]]:
    assert ended.returncode == 0, ended.stderr
    return [dict(row) for row in json.loads(ended.stdout)]


def test_rows_are_chosen_by_flow_condition_and_column(run: Path, tcplab: Command) -> None:
    chosen = ("--flow", "two", "--where", "cwnd > 20", "--columns", "time,cwnd", "--format", "json")
    found = rows(tcplab("show", run, "--table", "sockets", *chosen))
    every = rows(tcplab("show", run, "--table", "sockets", "--format", "json"))
    expected = [
        {"time": row["time"], "cwnd": row["cwnd"]}
        for row in every
        if row["flow"] == "two" and (row["cwnd"] or 0) > 20
    ]
    assert found == expected != []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_other_formats_hold_every_row(run: Path, form: str) -> None:
    command = [sys.executable, "-m", "tcplab", "show", str(run), "--table", "intervals", "--format", form]
    data = subprocess.run(command, check=True, capture_output=True).stdout
    read = pl.read_csv(io.BytesIO(data)) if form == "csv" else pl.read_parquet(io.BytesIO(data))
    assert len(read) > 20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--table", "sockets", "--flow", "three"),
            "unknown flow 'three' in this table\nhint: flows: one, two",
        ),
        (("--table", "hosts", "--flow", "one"), "has no column flow"),
        (("--table", "sockets", "--columns", "cwdn"), "unknown column 'cwdn'"),
        (("--table", "sockets", "--where", "cwnd >"), "--where cwnd >"),
        (("--table", "sockets", "--where", "nonesuch > 1"), "--where nonesuch > 1"),
        (("--table", "sockets", "--format", "xml"), "'xml' is not one of 'csv', 'parquet', 'json'"),
        (("--flow", "one"), "add --table NAME"),
    ],
)
def test_what_is_not_there_is_bad_input(
    run: Path, tcplab: Command, arguments: tuple[str, ...], said: str
) -> None:
    ended = tcplab("show", run, *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_column_that_is_named_twice_is_shown_once(run: Path, tcplab: Command) -> None:
    ended = tcplab("show", "r", "--table", "sockets", "--columns", "time,cwnd,time", "--format", "json")
    assert [*rows(ended)[0]] == ["time", "cwnd"]


def test_a_limit_is_of_a_tables_rows(run: Path, tcplab: Command) -> None:
    ended = tcplab("show", "r", "--limit", "3")
    assert (ended.returncode, "add --table NAME" in ended.stderr) == (2, True)


def test_a_result_that_is_the_working_directory_has_its_name(
    run: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_result(run.parent / "other", plan({"one": "reno", "two": "cubic"}, seconds=5))
    monkeypatch.chdir(run)
    assert tcplab("compare", ".", "../other").stdout.startswith("other against r\n")
    tcplab("report", ".")
    assert "tcplab export r --format csv" in (run / "report.html").read_text(encoding="utf-8")


def test_figures_of_results_with_one_name_have_folders_of_their_own(run: Path, tcplab: Command) -> None:
    write_result(run.parent / "more" / "r", plan({"one": "reno"}, seconds=5))
    ended = tcplab("report", "r", "more/r", "--figures", "figures", "--format", "svg")
    assert ended.returncode == 0, ended.stderr
    written = ended.stdout.split()
    assert len({*written}) == len(written)
    assert {Path(name).parts[:2] for name in written} == {("figures", "r-1"), ("figures", "r-2")}


@pytest.mark.parametrize("more", [("--format", ","), ("--output", "page.html")])
def test_figures_need_a_format_and_leave_no_report(more: tuple[str, str], run: Path, tcplab: Command) -> None:
    ended = tcplab("report", "r", "--figures", "figures", *more)
    assert (ended.returncode, ended.stderr.startswith("tcplab: error: --f")) == (2, True)
    assert not (run.parent / "figures").exists()


@pytest.mark.parametrize("words", [["report", "r"], ["study", "report", "r"]])
def test_a_format_of_figures_needs_figures(words: list[str], run: Path, tcplab: Command) -> None:
    ended = tcplab(*words, "--format", "svg")
    assert ended.returncode == 2
    assert ended.stderr == "tcplab: error: --format names formats of figures\nhint: add --figures DIR\n"
    assert not (run / "report.html").exists()


def test_a_result_without_rows_has_nothing_to_export_or_draw(run: Path, tcplab: Command) -> None:
    """As of a run that was killed before its tables were written."""
    for table in run.rglob("*.parquet"):
        table.unlink()
    exported = tcplab("export", "r", "--format", "csv")
    assert exported.returncode == 2
    assert exported.stderr.endswith("tcplab: error: r: no table has a row\n")
    assert not (run / "csv").exists()
    drawn = tcplab("report", "r", "--figures", "figures")
    assert drawn.returncode == 2
    assert drawn.stderr.endswith("tcplab: error: r: there is nothing to draw\n")


def test_a_name_that_is_not_a_result_says_what_it_is(here: Path, tcplab: Command) -> None:
    for name, hint in (
        ("starvation", "starvation is a study: tcplab study run starvation"),
        ("four-controls", "four-controls is a scenario: tcplab run four-controls"),
        ("nothing", "tcplab list shows the results in runs/"),
    ):
        ended = tcplab("show", name)
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[1].startswith(f"hint: {hint}")


def test_a_run_without_a_manifest_has_no_time_and_no_seed(done: Path, tcplab: Command) -> None:
    (done / "run-1" / "manifest.json").unlink()
    ended = tcplab("show", "done")
    assert ended.stdout.startswith("short: 1 run, interrupted\n\n")
    assert "run 1 interrupted: the run left no manifest" in ended.stderr
