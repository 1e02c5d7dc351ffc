"""The commands that look at scenarios and results."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tcplab import engine
from tcplab.cli.app import app
from tcplab.cli.commands import COMMANDS, Group

Command = Callable[..., Any]
ALONE = [name for name, command in COMMANDS.items() if command.function is not None]


@pytest.mark.parametrize("command", [*ALONE, "study", "pcap"])
def test_help_shows_an_example(command: str, tcplab: Command) -> None:
    ended = tcplab(command, "--help")
    assert ended.returncode == 0
    assert f"tcplab {command}" in ended.stdout.split("Example:")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_its_own_help_begins_with(name: str) -> None:
    group = get_command(app)
    assert isinstance(group, Group)
    command = group.commands[name]
    assert command.name == name
    assert COMMANDS[name].about == command.get_short_help_str(200)


def test_the_list_names_every_command_in_full(tcplab: Command) -> None:
    listed = " ".join(tcplab("--help").stdout.split("Commands:")[1].split())
    assert listed == " ".join(f"{name} {command.about}" for name, command in COMMANDS.items())


def test_the_page_of_the_command_line_lists_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page.partition("| --- | --- |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`tcplab (\w+)", table)) == set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--version"], set()),
        (["--help"], set()),
        (["rum"], set()),
        (["calc", "--help"], {"calc"}),
        (["list"], {"listing"}),
    ],
)
def test_a_command_costs_no_import_of_another(
    arguments: list[str], loaded: set[str], here: Path, environment: dict[str, str]
) -> None:
    script = (
        "import sys, atexit\n"
        "from tcplab.cli import main\n"
        "homes = [f'tcplab.cli.{name}' for name in sys.argv.pop(1).split(',')]\n"
        "atexit.register(lambda: print('loaded', *[home for home in homes if home in sys.modules]))\n"
        "main()\n"
    )
    modules = ",".join(command.module for command in COMMANDS.values())
    ended = subprocess.run(
        [sys.executable, "-c", script, modules, *arguments],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    said = ended.stdout.splitlines()[-1].split()
    assert said == ["loaded", *(f"tcplab.cli.{name}" for name in loaded)]


def test_version(process: Command) -> None:
    try:
        expected = f"tcplab {version('tcplab')}"
    except PackageNotFoundError:
        expected = "tcplab (run from its source tree, not installed)"
    assert process("--version").stdout.strip() == expected


def test_an_unknown_command_is_bad_input(tcplab: Command) -> None:
    assert tcplab("rum").returncode == 2


def test_check_says_what_would_run(tcplab: Command) -> None:
    ended = tcplab("check", "short.yaml")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("short: 1 run of ")
    assert "10 Mbit/s, 10 ms delay, droptail of 50 packets" in ended.stdout
    assert "bulk: tcp with cubic" in ended.stdout


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("{limit: 100 packets, mark_above: 20 packets}", "droptail of 100 packets (marks above 20 packets)"),
        ("{limit: 40 ms, mark_above: 5 ms}", "droptail of 40 ms (marks above 5 ms)"),
        ("{limit: unlimited, mark_above: 10 kB}", "droptail without limit (marks above 10 kB)"),
    ],
)
def test_check_says_where_a_queue_marks(queue: str, said: str, here: Path, tcplab: Command) -> None:
    text = (here / "short.yaml").read_text().replace("{kind: droptail, limit: 50 packets}", queue)
    (here / "marks.yaml").write_text(text)
    assert f"left -> right: 10 Mbit/s, 10 ms delay, {said}\n" in tcplab("check", "marks.yaml").stdout


@pytest.mark.parametrize(("every", "said"), [(2, "2nd"), (11, "11th"), (23, "23rd"), (1001, "1001st")])
def test_check_says_which_packets_are_lost(every: int, said: str, here: Path, tcplab: Command) -> None:
    text = (
        (here / "short.yaml")
        .read_text()
        .replace("rtt: 20 ms", f"rtt: 20 ms, loss: {{every: {every} packets}}")
    )
    (here / "lossy.yaml").write_text(text)
    assert f"every {said} packet lost" in tcplab("check", "lossy.yaml").stdout


def test_check_reports_every_mistake_of_every_file(here: Path, tcplab: Command) -> None:
    text = (here / "short.yaml").read_text()
    (here / "one.yaml").write_text(text.replace("rate: 10 Mbit/s", "rate: 10"))
    (here / "two.yaml").write_text(text.replace("cc:", "cx:").replace("rtt: 20 ms", "rtt: 20 bit/s"))
    ended = tcplab("check", "one.yaml", "two.yaml", "short.yaml")
    assert ended.returncode == 2
    assert "one.yaml:4:" in ended.stderr
    assert "two.yaml:4:" in ended.stderr
    assert "two.yaml:6:" in ended.stderr
    assert "short: 1 run" in ended.stdout


def test_check_answers_a_machine(here: Path, tcplab: Command) -> None:
    (here / "bad.yaml").write_text((here / "short.yaml").read_text().replace("cc:", "cx:"))
    ended = tcplab("check", "bad.yaml", "short.yaml", "--json")
    assert ended.returncode == 2
    bad, good = json.loads(ended.stdout)["files"]
    assert (bad["ok"], good["ok"]) == (False, True)
    assert bad["errors"][0]["line"] == 6
    assert good["plan"]["name"] == "short"


def test_check_says_what_the_engine_cannot_do_and_how_to_fix_it(here: Path, tcplab: Command) -> None:
    ended = tcplab("check", "short.yaml", "--set", "flows.bulk.generator=iperf3")
    assert ended.returncode == 3
    error, source, caret, hint = ended.stderr.splitlines()
    assert error.startswith("--set:1:22: error: flows.bulk.generator: iperf3 is a program")
    assert source == "  1 | flows.bulk.generator=iperf3"
    assert caret == "    |                      ^^^^^^"
    assert hint == "hint: leave `generator` out"


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_file_that_is_not_there_is_an_error_with_a_hint(command: str, here: Path, tcplab: Command) -> None:
    ended = tcplab(command, "four-control", "absent.yaml")
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "tcplab: error: four-control: No such file or directory",
        "hint: the shipped scenario with the nearest name is four-controls",
        "tcplab: error: absent.yaml: No such file or directory",
        "hint: tcplab examples list shows the shipped scenarios",
    ]


def test_check_says_what_a_run_takes(tcplab: Command) -> None:
    ended = tcplab("check", "short.yaml")
    assert re.search(r"estimate: about .* packets, .* rows, .* on disk, .* of memory\n", ended.stdout)
    (found,) = json.loads(tcplab("check", "short.yaml", "--json").stdout)["files"]
    assert found["estimate"]["rows"]["sockets"] == 200
    assert set(found["estimate"]) == {"packets", "rows", "disk", "memory"}


# More rows than any machine has memory for.
HUGE = ["--set", "flows=[{name: p, kind: ping, interval: 1 ns, duration: 100 h}]"]


def test_what_does_not_fit_this_machine_is_refused_unless_the_user_insists(
    here: Path, tcplab: Command
) -> None:
    for command in ("check", "run"):
        ended = tcplab(command, "short.yaml", *HUGE)
        assert ended.returncode == 3
        assert "memory: about" in ended.stderr
        assert "--yes" in ended.stderr
    assert not (here / "runs").exists()
    ended = tcplab("check", "short.yaml", *HUGE, "--yes")
    assert ended.returncode == 0, ended.stderr
    assert "warning: memory: about" in ended.stderr


def test_a_study_that_does_not_fit_this_machine_is_refused(here: Path, tcplab: Command) -> None:
    (here / "study.yaml").write_text(
        "tcplab: 1\nstudy: s\nscenario: short.yaml\ngrid: {network.path.rtt: [10 ms, 20 ms]}\n"
    )
    ended = tcplab("study", "study.yaml", *HUGE)
    assert ended.returncode == 3, ended.stderr
    assert "memory: about" in ended.stderr
    assert not (here / "runs").exists()


def test_checking_many_streams_takes_the_memory_of_few(here: Path, process: Command) -> None:
    """A hundred thousand clients are estimated, not built: 5 GB, were they."""
    text = (here / "short.yaml").read_text().split("flows:")[0]
    (here / "many.yaml").write_text(
        text + "flows: [{name: e, kind: echo, iterations: 1000000000, clients: 100000, sizes: 64}]\n"
    )
    script = (
        "import resource, sys\nfrom tcplab.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))\nmain()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, "check", "many.yaml", "--yes"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "echoes of 64 B" in ended.stdout) == (0, True), ended.stderr


def test_show_prints_the_summary(done: Path, tcplab: Command) -> None:
    ended = tcplab("show", "done")
    assert ended.returncode == 0, ended.stderr
    assert "short: 1 run on sim" in ended.stdout
    assert "bulk" in ended.stdout


def test_show_prints_rows_of_a_table(done: Path, tcplab: Command) -> None:
    ended = tcplab("show", "done", "--table", "sockets", "--limit", 3)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) == 4
    assert "cwnd (segments)" in lines[0]
    rows = json.loads(tcplab("show", "done", "--table", "sockets", "--limit", 3, "--json").stdout)["rows"]
    assert len(rows) == 3
    assert rows[0]["flow"] == "bulk"


def test_show_of_an_unknown_table_names_the_tables(done: Path, tcplab: Command) -> None:
    ended = tcplab("show", "done", "--table", "socket")
    assert ended.returncode == 2
    error, hint = ended.stderr.splitlines()
    assert error == "tcplab: error: unknown table 'socket'"
    assert "sockets" in hint


def test_show_of_another_directory_than_a_result(here: Path, tcplab: Command) -> None:
    (here / "empty").mkdir()
    for path in ("empty", "absent", "short.yaml"):
        ended = tcplab("show", path)
        assert ended.returncode == 2
        error, *hint = ended.stderr.splitlines()
        assert error.startswith("tcplab: error: ")
        assert path in error
        assert [line.partition(": ")[0] for line in hint] in ([], ["hint"])


@pytest.mark.parametrize("words", ["--version", "run --help", "schema", "show done --table flows --limit 0"])
def test_output_that_nobody_takes(done: Path, environment: dict[str, str], words: str) -> None:
    def ended(redirection: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m tcplab {words} {redirection}"],
            cwd=done.parent,
            env={name: value for name, value in environment.items() if name != "PYTHONUNBUFFERED"},
            capture_output=True,
            text=True,
            check=False,
        )

    left, both, full = ended("| head -0"), ended("2>&1 | head -0"), ended(">/dev/full")
    # As of a program that SIGPIPE ends.
    assert (left.returncode, left.stderr) == (141, "")
    assert (both.returncode, both.stderr) == (141, "")
    assert (full.returncode, full.stderr) == (3, "tcplab: error: cannot write: No space left on device\n")


def test_a_dash_is_standard_output_or_rejected(done: Path, here: Path, tcplab: Command) -> None:
    exported = tcplab("export", "done", "--format", "json", "--output", "-")
    assert json.loads(exported.stdout)["status"] == "done"
    assert json.loads(tcplab("schema", "-o", "-").stdout)["type"] == "object"
    for words in (
        "export done -f csv -o -",
        "report done -o -",
        "report done --figures -",
        "compare done done -o -",
        "new mine -o -",
        "examples copy one-cubic -",
        "study bufferbloat --dry-run --junit -",
        "pcap done --csv -",
        "pcap done --parquet -",
        "echo run localhost --raw -",
    ):
        ended = tcplab(*words.split())
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith("tcplab: error: ")
    assert not (here / "-").exists()


def test_a_missing_choice_is_one_message_in_one_line(done: Path, tcplab: Command) -> None:
    assert tcplab("export", "done").stderr == (
        "tcplab: error: missing option '--format' / '-f'. Choose from: csv, json, iperf3, flent\n"
        "hint: tcplab export --help\n"
    )


def test_commands_in_messages_are_quoted_for_the_shell(here: Path, tcplab: Command) -> None:
    made = tcplab("new", "mine", "--output", "a b.yaml")
    assert "then run: tcplab run 'a b.yaml'" in made.stdout
    made = tcplab("cc", "new", "mine", "--output", "a b.c")
    assert "To try it: tcplab cc check 'a b.c'" in made.stdout
    (here / "a b").mkdir()
    (here / "a b" / "study.json").write_text("{}")
    assert "hint: tcplab study report 'a b'; " in tcplab("show", "a b").stderr


def test_report_is_one_file(done: Path, here: Path, tcplab: Command) -> None:
    ended = tcplab("report", "done", "--output", "page.html")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "page.html"
    text = (here / "page.html").read_text()
    assert text.startswith("<!")
    assert 'src="http' not in text


def test_report_draws_figures(done: Path, here: Path, tcplab: Command) -> None:
    ended = tcplab("report", "done", "--figures", "figures", "--format", "svg,png,pdf")
    assert ended.returncode == 0, ended.stderr
    kinds = {path.suffix for path in (here / "figures").iterdir()}
    assert kinds == {".svg", ".png", ".pdf"}
    assert all(Path(here / line).exists() for line in ended.stdout.splitlines())


def test_report_refuses_an_unknown_format(done: Path, tcplab: Command) -> None:
    ended = tcplab("report", "done", "--figures", "figures", "--format", "gif")
    assert ended.returncode == 2
    assert "svg" in ended.stderr


def test_compare_two_runs(done: Path, tcplab: Command, here: Path) -> None:
    tcplab("run", "short.yaml", "--set", "flows.bulk.cc=reno", "--output", "reno", "--no-report", "--quiet")
    ended = tcplab("compare", "done", "reno", "--output", "both.html")
    assert ended.returncode == 0, ended.stderr
    assert "done" in ended.stdout
    assert "reno" in ended.stdout
    assert (here / "both.html").exists()


def test_compare_needs_two(done: Path, tcplab: Command) -> None:
    ended = tcplab("compare", "done")
    assert ended.returncode == 2
    assert "two" in ended.stderr


def test_export_csv_holds_every_table_with_rows(done: Path, here: Path, tcplab: Command) -> None:
    ended = tcplab("export", "done", "--format", "csv", "--output", "csv")
    assert ended.returncode == 0, ended.stderr
    with (here / "csv" / "flows.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["flow"] == "bulk"


@pytest.mark.parametrize("kind", ["json", "iperf3", "flent"])
def test_export_json(kind: str, done: Path, here: Path, tcplab: Command) -> None:
    ended = tcplab("export", "done", "--format", kind, "--output", f"out-{kind}")
    assert ended.returncode == 0, ended.stderr
    (written,) = ended.stdout.split()
    json.loads((here / written).read_text())


def test_export_refuses_an_unknown_format(done: Path, tcplab: Command) -> None:
    ended = tcplab("export", "done", "--format", "xml")
    assert ended.returncode == 2
    assert "csv" in ended.stderr


def test_schema_accepts_what_check_accepts(here: Path, tcplab: Command) -> None:
    import jsonschema

    from tcplab.scenario import read

    schema = json.loads(tcplab("schema").stdout)
    scenario = read(here / "short.yaml").plain([])
    jsonschema.validate(scenario, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**scenario, "flow": []}, schema)


def test_schema_goes_to_a_file(here: Path, tcplab: Command) -> None:
    assert tcplab("schema", "--output", "schema.json").returncode == 0
    json.loads((here / "schema.json").read_text())
    ended = tcplab("schema", "--output", "absent/schema.json")
    assert ended.returncode == 2
    assert "absent/schema.json" in ended.stderr


def test_what_nobody_foresaw_is_one_line_with_the_way_to_more(done: Path, process: Command) -> None:
    table = done / "run-1" / "flows.parquet"
    table.unlink()
    table.mkdir()
    ended = process("show", "done", "--table", "flows")
    assert ended.returncode in (2, 3)
    assert "Traceback" not in ended.stderr
    assert "Traceback" in process("show", "done", "--table", "flows", TCPLAB_DEBUG="1").stderr


def test_a_bug_has_an_exit_code_of_its_own_and_says_how_to_report_it(
    done: Path, tcplab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("tcplab.results.list_results", broken)
    ended = tcplab("list", ".")
    assert ended.returncode == 70
    error, hint = ended.stderr.splitlines()
    assert error == "tcplab: error: internal error: ZeroDivisionError: division by zero"
    assert hint.startswith("hint: this is a bug in tcplab: report it with")
    assert "TCPLAB_DEBUG=1" in hint


def test_a_way_out_is_a_hint_on_a_line_of_its_own(here: Path, tcplab: Command) -> None:
    error, hint = tcplab("run", "short.yaml", *HUGE).stderr.splitlines()[-2:]
    assert error.startswith("tcplab: error: not enough on this machine: memory: about")
    assert hint.startswith("hint: sample less often")


@pytest.mark.parametrize("command", ["run", "check"])
def test_help_lists_the_engines(command: str, tcplab: Command) -> None:
    assert f"--engine <{'|'.join(engine.names())}>" in tcplab(command, "--help").stdout


def test_a_scenario_is_read_from_standard_input(here: Path, environment: dict[str, str]) -> None:
    def piped(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tcplab", *arguments],
            cwd=here,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    text = (here / "short.yaml").read_text()
    checked = piped(text, "check", "-")
    assert (checked.returncode, checked.stdout.splitlines()[0]) == (0, "short: 1 run of 2 s on sim, seed 1")
    ran = piped(text, "run", "-", "--output", "piped", "--no-report", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert (here / "piped" / "scenario.yaml").read_text() == text
    wrong = piped(text.replace("20 ms", "20"), "check", "-")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("<stdin>:4:")


@pytest.mark.parametrize("words", ["check", "run --no-report --quiet --output out"])
def test_a_scenario_is_read_from_a_pipe(words: str, here: Path, environment: dict[str, str]) -> None:
    command = f"{sys.executable} -m tcplab {words} <(cat short.yaml)"
    ran = subprocess.run(
        ["bash", "-c", command], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    if "out" in words:
        assert (here / "out/scenario.yaml").read_text() == (here / "short.yaml").read_text()


def test_an_output_that_is_a_pipe_is_written_not_replaced(here: Path, tcplab: Command) -> None:
    pipe = here / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert tcplab("schema", "--output", pipe).returncode == 0
        assert json.loads(reader.communicate(timeout=60)[0])["title"] == "tcplab scenario"
    assert pipe.is_fifo()


def test_standard_output_on_a_full_disk_is_one_message(here: Path, environment: dict[str, str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "tcplab", "check", "short.yaml"],
            cwd=here,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 3
    assert ended.stderr == "tcplab: error: cannot write: No space left on device\n"


@pytest.mark.parametrize("parameter", ["gamma: 1", "beta: 8"])
def test_check_refuses_a_parameter_the_control_does_not_take(
    parameter: str, here: Path, tcplab: Command
) -> None:
    setting = f"flows.bulk.cc={{name: cubic, {parameter}}}"
    for command in ("check", "run"):
        ended = tcplab(command, "short.yaml", "--set", setting)
        assert ended.returncode == 2
        assert f"flows.bulk.cc.{parameter.split(':')[0]}: " in ended.stderr
        assert "internal error" not in ended.stderr
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", ["a", "A_b-9", "a" * 48, "1a", "a.b", "a" * 49, "", "ü", "_a"])
def test_new_takes_the_names_that_a_scenario_may_have(name: str, here: Path, tcplab: Command) -> None:
    ended = tcplab("new", name)
    if ended.returncode == 0:
        assert tcplab("check", f"{name}.yaml").returncode == 0
    else:
        (here / "named.yaml").write_text(
            (here / "short.yaml").read_text().replace("name: short", f"name: '{name}'")
        )
        refused = tcplab("check", "named.yaml")
        assert (ended.returncode, refused.returncode) == (2, 2)
        assert "is not a name: letters, digits, `-` and `_`, a letter first, at most 48" in refused.stderr


def test_new_writes_a_scenario_that_the_checks_accept_with_its_schema(here: Path, tcplab: Command) -> None:
    ended = tcplab("new", "mine")
    assert ended.returncode == 0, ended.stderr
    text = (here / "mine.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=tcplab.schema.json\n")
    assert json.loads((here / "tcplab.schema.json").read_text())["title"] == "tcplab scenario"
    assert tcplab("check", "mine.yaml").stdout.startswith("mine: 3 runs of 30 s on sim")
    again = tcplab("new", "mine")
    assert (again.returncode, (here / "mine.yaml").read_text()) == (2, text)
    assert "mine.yaml: already exists" in again.stderr
    assert tcplab("new", "../mine").returncode == 2
    assert tcplab("new", "other.yaml").stderr.endswith("hint: tcplab new other writes other.yaml\n")


def test_a_name_that_is_not_text_is_wrong_input_before_anything_runs(here: Path, process: Command) -> None:
    ended = process("run", "short.yaml", "--output", os.fsdecode(b"out\xff"))
    assert ended.returncode == 2
    assert ended.stderr.startswith("tcplab: error: out\\udcff is not UTF-8\nhint: tcplab run --help")
    assert not [path for path in here.iterdir() if path.name.startswith("out")]


@pytest.mark.parametrize(
    ("arguments", "closed", "code", "said"),
    [
        ("check -", "<&-", 2, "<stdin>:1:1: the file is empty"),
        ("check short.yaml", ">&-", 0, ""),
        ("check nothing.yaml", "2>&-", 2, ""),
    ],
)
def test_a_standard_stream_may_be_closed(
    arguments: str, closed: str, code: int, said: str, here: Path, environment: dict[str, str]
) -> None:
    line = f"exec {sys.executable} -m tcplab {arguments} {closed}"
    ended = subprocess.run(
        ["bash", "-c", line], cwd=here, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == code
    assert ended.stderr.startswith(said)
    assert "internal error" not in ended.stderr


def test_a_locale_without_plus_minus_gets_a_question_mark(
    tcplab: Command, process: Command, here: Path
) -> None:
    tcplab("run", "short.yaml", "--output", "result", "--no-report", "--quiet")
    # The second is the locale C, of which Python takes any byte.
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for settings in ({"PYTHONIOENCODING": "ascii"}, bare):
        shown = process("show", "result", **settings)
        assert shown.returncode == 0, shown.stderr
        assert re.search(r"\d \? \d", shown.stdout)


def test_a_terminal_of_unknown_width_gets_the_table(tcplab: Command, process: Command) -> None:
    tcplab("run", "short.yaml", "--output", "result", "--no-report", "--quiet")
    shown = process("show", "result", COLUMNS="0", FORCE_COLOR="1", NO_COLOR="")
    assert "bulk" in shown.stdout


@pytest.mark.parametrize("command", [["ping"], ["bulk", "run"]])
def test_a_failure_of_the_other_end_is_said_once_and_by_the_name_that_was_given(
    process: Callable[..., Any], command: list[str]
) -> None:
    ended = process(*command, "other.invalid", TCPLAB_TOKEN="")
    assert ended.returncode == 4
    assert "tcplab: error: other.invalid: the service asks for a token" in ended.stderr
    assert (ended.stderr.count("token ("), "there: " in ended.stderr) == (1, False)
