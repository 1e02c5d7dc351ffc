"""One meaning an option, in every command; old spellings; what all commands share."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from tcplab.cli.app import app
from tcplab.cli.old_spellings import OLD, respelled

Command = Callable[..., Any]


def leaves(command: Any, context: typer.Context, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its name."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(
            below, typer.Context(below, parent=context, info_name=name), f"{path} {name}".strip()
        )


def commands() -> dict[str, Any]:
    root = get_command(app)
    return dict(leaves(root, typer.Context(root, info_name="tcplab")))


def test_a_short_option_is_short_for_one_long_option() -> None:
    long = defaultdict(set)
    for command in commands().values():
        for param in command.params:
            for short in (word for word in param.opts if len(word) == 2 and word.startswith("-")):
                long[short].add(next(word for word in param.opts if word.startswith("--")))
    assert {short: names for short, names in long.items() if len(names) > 1} == {}
    assert long["-o"] == {"--output"}
    assert long["-f"] == {"--format"}
    assert long["-n"] == {"--repeat"}
    assert long["-p"] == {"--port"}


def test_an_option_takes_the_same_kind_of_value_in_every_command() -> None:
    # A flow of a run has a name, one of a capture a number; controls have parameters, scenarios paths.
    others = {
        "--flow": {"NAME", "N"},
        "--set": {"PATH=VALUE", "NAME=VALUE"},
        "--output": {"DIR", "FILE", "PATH"},
        "--format": {"<csv|parquet|json>", "<csv|json>", "<csv|json|iperf3|flent>", "svg,png,pdf"},
    }
    kinds = defaultdict(set)
    for command in commands().values():
        for param in command.params:
            for long in (word for word in param.opts if word.startswith("--")):
                kinds[long].add("a flag" if param.is_flag else param.make_metavar(typer.Context(command)))
    assert {long: found for long, found in kinds.items() if len(found) > 1} == others


def test_every_command_has_quiet_and_verbose() -> None:
    for name, command in commands().items():
        opts = {word for param in command.params for word in param.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= opts, name


def test_no_line_of_a_list_of_commands_is_cut_at_80_columns() -> None:
    names = {name.partition(" ")[0] for name in commands() if " " in name}
    for words in ([], *([name] for name in names)):
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).stdout
        assert "..." not in shown.partition("Commands:")[2].partition("Example")[0], words


def test_no_line_of_a_help_page_is_wider_than_80_columns() -> None:
    pages = [
        CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}).stdout
        for name in commands()
    ]
    assert [line for page in pages for line in page.splitlines() if len(line) > 80] == []


def test_an_old_spelling_names_an_option_that_is_there_and_is_not_an_option_itself() -> None:
    known = commands()
    for name, spellings in OLD.items():
        opts = {word for param in known[name].params for word in param.opts}
        for old, new in spellings.items():
            assert new.partition("=")[0] in opts
            assert old not in opts


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["s.yaml", "--out", "d"], ["s.yaml", "--output", "d"]),
        (["--out=d", "s.yaml"], ["--output=d", "s.yaml"]),
        (["--outer", "--", "--out"], ["--outer", "--", "--out"]),
    ],
)
def test_old_spellings_are_replaced(words: list[str], now: list[str]) -> None:
    assert respelled("run", words)[0] == now


def test_an_old_spelling_works_with_a_warning(here: Path, tcplab: Command) -> None:
    ended = tcplab("run", "short.yaml", "--out", "old", "--no-report", "--quiet")
    assert (ended.returncode, (here / "old/run-1").is_dir()) == (0, True)
    assert (
        ended.stderr
        == "tcplab: warning: --out is deprecated, use --output; the next version will not accept it\n"
    )


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["run", "--engine", "ns3", "x"],
            "invalid value for '--engine' / '-e': 'ns3' is not one of",
            "tcplab run",
        ),
        (["run", "--output"], "option '--output' requires an argument", "tcplab run"),
        (["rum"], "no such command 'rum'. Did you mean 'run'?", "tcplab"),
        (["cc", "make"], "no such command 'make'", "tcplab cc"),
        (["show"], "missing argument 'RUN'", "tcplab show"),
        (
            ["run", "x", "-n", "few"],
            "invalid value for '--repeat' / '-n': 'few' is not a whole number",
            "tcplab run",
        ),
    ],
)
def test_a_wrong_command_line_is_an_error_with_a_hint(
    words: list[str], message: str, hint: str, tcplab: Command
) -> None:
    ended = tcplab(*words)
    assert ended.returncode == 2
    error, way_out = ended.stderr.splitlines()
    assert error.startswith(f"tcplab: error: {message}")
    assert way_out == f"hint: {hint} --help"


def test_verbose_logs_and_quiet_does_not_outlive_its_command(here: Path, tcplab: Command) -> None:
    run = ("run", "short.yaml", "--no-report", "--output")
    assert "results  " not in tcplab(*run, "a", "--quiet").stdout
    plain = tcplab(*run, "b")
    assert "results  b" in plain.stdout
    assert "info: " not in plain.stderr
    assert "info: runner: short: run 1 with seed 1 in c/run-1" in tcplab(*run, "c", "-v").stderr
    assert logging.getLogger("tcplab").level == logging.INFO
    tcplab("list")
    assert logging.getLogger("tcplab").level == logging.WARNING


def test_colors_are_decided_in_one_place(done: Path, environment: dict[str, str]) -> None:
    def shown(**more: str) -> str:
        kept = {key: value for key, value in environment.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        ended = subprocess.run(
            [sys.executable, "-m", "tcplab", "show", str(done)],
            env=kept | more,
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout

    assert "\x1b[" not in shown()
    assert "\x1b[" in shown(FORCE_COLOR="1")
    assert "\x1b[" not in shown(NO_COLOR="1")
    assert "\x1b[" not in shown(NO_COLOR="1", FORCE_COLOR="1")


def test_the_level_is_that_of_the_intervals(here: Path, tcplab: Command) -> None:
    ended = tcplab(
        "run", "short.yaml", "--repeat", 3, "--output", "r", "--no-report", "--level", "99 %", "--json"
    )
    assert json.loads(ended.stdout)["runs"][0]["summary"]["level"] == 0.99
    printed = json.loads(tcplab("show", "r", "--level", "0.9", "--json").stdout)
    assert (printed["version"], printed["summary"]["level"]) == (1, 0.9)
    assert "90 %" in tcplab("show", "r", "--level", "0.9").stdout
    assert "--level 95: a level must be between 0 and 100 %" in tcplab("show", "r", "--level", "95").stderr


def test_help_of_show_and_completion_list_the_tables(tcplab: Command) -> None:
    from tcplab.results import TABLES

    listed = tcplab("show", "--help").stdout
    assert all(name in listed for name in TABLES)
