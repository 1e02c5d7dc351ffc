"""`tcplab echo` between two processes."""

from __future__ import annotations

import csv
import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

Start = Callable[..., subprocess.Popen[str]]


class Ended(Protocol):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


Call = Callable[..., Ended]


@pytest.fixture
def server(start: Start) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on loopback, and its port."""
    process = start(
        "echo", "serve", "--bind", "127.0.0.1", "--port", "0", "--max-clients", "4", "--max-size", "70 kB"
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
    assert found, line
    yield process, found.group(1)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(10)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_asked_to_end_has_done_its_work(
    ending: signal.Signals, server: tuple[subprocess.Popen[str], str]
) -> None:
    process, _ = server
    process.send_signal(ending)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert out.endswith("ended\n")


def test_a_run_prints_the_study_s_table_and_writes_csv(
    tcplab: Call, server: tuple[subprocess.Popen[str], str], here: Path
) -> None:
    said = tcplab(
        *("echo", "run", "127.0.0.1", "--port", server[1], "--sizes", "1..4096", "--iterations", 30),
        *("--clients", 3, "--labels", "pt", "--csv", "out.csv", "--raw", "raw.csv", "--warmup", 2),
    )
    assert said.returncode == 0, said.stderr
    assert re.search(r"^TCP/3/30 +1 +2 +4 .* 4096$", said.stdout, re.MULTILINE)
    assert [line.split()[0] for line in said.stdout.splitlines()[1:5]] == ["MED", "DVP", "LOW", "UPP"]
    assert "both ends sleep while they wait; Nagle off" in said.stdout
    rows = list(csv.reader((here / "out.csv").open(encoding="utf-8")))
    assert rows[0][0] == "TCP/3/30"
    assert all(float(value) > 0 for value in rows[1][1:])
    raw = list(csv.DictReader((here / "raw.csv").open(encoding="utf-8")))
    assert len(raw) == 3 * 30 * 13
    mean = sum(int(row["rtt_ns"]) for row in raw if row["size"] == "64" and int(row["iteration"]) >= 2) / (
        28 * 3
    )
    assert float(rows[1][7]) == pytest.approx(mean / 1e6, rel=0.01)


def test_a_report_has_the_table_the_figures_and_how_it_was_measured(
    tcplab: Call, server: tuple[subprocess.Popen[str], str], here: Path
) -> None:
    said = tcplab(
        *("echo", "run", "127.0.0.1", "-p", server[1], "--sizes", "1,64,4096", "--iterations", 40, "-c", 2),
        *("--output", "echo.html"),
    )
    assert said.returncode == 0, said.stderr
    page = (here / "echo.html").read_text(encoding="utf-8")
    for words in (
        f"Echoes from 127.0.0.1:{server[1]}",
        "2 clients, 40 messages of each",
        "TCP/2/40",
        "Round-trip time by message size",
        "Distribution of round-trip times",
        "both ends sleep while they wait; Nagle off",
    ):
        assert words in page
    mean = said.stdout.splitlines()[1].split()[1:]
    assert all(f">\n{value}" in page or f">{value}" in page for value in mean)
    assert 'src="http' not in page
    said = tcplab("echo", "run", "127.0.0.1", "-p", server[1], "--sizes", "1", "--output", "absent/echo.html")
    assert (said.returncode, "absent/echo.html" in said.stderr) == (2, True)


def test_json_holds_everything_and_nothing_else_is_printed(
    process: Call, server: tuple[subprocess.Popen[str], str]
) -> None:
    said = process(
        "echo", "run", "127.0.0.1", "-p", server[1], "--sizes", "8", "--iterations", 150, "-c", 1, "--json"
    )
    assert said.returncode == 0, said.stderr
    data = json.loads(said.stdout)
    assert data["heading"] == "TCP/1/150"
    assert data["sizes"][0]["count"] == 150
    assert sum(count for _, count in data["series"][0]["histogram"]) == 150
    assert len(data["series"][0]["first"]) == 100
    assert data["mode"].startswith("both ends sleep")
    assert said.stderr == ""


def test_what_the_server_does_not_allow_is_said_by_both(
    tcplab: Call, server: tuple[subprocess.Popen[str], str]
) -> None:
    process, port = server
    said = tcplab("echo", "run", "127.0.0.1", "--port", port, "--sizes", "1,100000", "--clients", 1)
    assert said.returncode == 4
    assert "rejected the test: messages of 100000 bytes are too long: at most 70000 here" in said.stderr
    assert process.stdout is not None
    assert "rejected: messages of 100000 bytes" in process.stdout.readline()


def test_a_missing_server_and_wrong_options_are_distinguished(tcplab: Call) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        said = tcplab("echo", "run", "127.0.0.1", "--port", port, "--clients", 1)
    assert said.returncode == 4
    assert f"\nhint: start `tcplab echo serve --port {port}` there" in said.stderr
    for option, value, message in (
        ("--sizes", "8..4", "goes down"),
        ("--level", "120 %", "between 0 and 100 %"),
        ("--labels", "de", "'de' is not one of 'en', 'pt'"),
        ("--timeout", "10", "unit"),
        ("--cpus", "a", "numbers such as 0,1"),
    ):
        said = tcplab("echo", "run", "127.0.0.1", option, value)
        assert (said.returncode, message in said.stderr) == (2, True), said.stderr


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_keeps_what_it_measured(
    ending: signal.Signals, start: Start, server: tuple[subprocess.Popen[str], str]
) -> None:
    run = start(
        *("echo", "run", "127.0.0.1", "--port", server[1], "--sizes", "1,8", "--iterations", 30),
        *("--clients", 1, "--interval", "100 ms"),
    )
    assert run.stderr is not None
    assert run.stderr.readline().startswith("1 B: 30 round trips")
    run.send_signal(ending)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert out.startswith("TCP/1/30")


def test_a_port_behind_the_host_is_answered_with_the_option(tcplab: Call) -> None:
    ended = tcplab("echo", "run", "127.0.0.1:5300", "--sizes", "1")
    assert ended.returncode == 2
    assert ended.stderr.endswith("hint: 127.0.0.1 --port 5300\n")
