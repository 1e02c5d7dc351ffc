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


def test_a_name_that_is_not_a_result_says_what_it_is(here: Path, tcplab: Command) -> None:
    for name, hint in (
        ("starvation", "starvation is a study: tcplab study run starvation"),
        ("four-controls", "four-controls is a scenario: tcplab run four-controls"),
        ("nothing", "tcplab list shows the results in runs/"),
    ):
        ended = tcplab("show", name)
        assert ended.returncode == 2
        assert ended.stderr.splitlines()[1].startswith(f"hint: {hint}")
