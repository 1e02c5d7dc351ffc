"""`tcplab cc`: controls listed, begun, tried out and registered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tcplab.testbed.controls import available, loader

Command = Callable[..., Any]


@pytest.fixture
def loading() -> None:
    """Skip with the reason where controls cannot be loaded."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])


@pytest.mark.parametrize("command", ["list", "check", "new", "load"])
def test_help_shows_an_example(command: str, tcplab: Command) -> None:
    ended = tcplab("cc", command, "--help")
    assert ended.returncode == 0
    assert f"tcplab cc {command}" in ended.stdout.split("Example:")[1]


def test_list_says_where_each_control_runs(tcplab: Command) -> None:
    ended = tcplab("cc", "list", "--json")
    assert ended.returncode == 0
    listed = {one["name"]: one for one in json.loads(ended.stdout)["controls"]}
    cubic = listed["cubic"]
    assert cubic["simulator"]["runs"]
    assert cubic["published"] == ["RFC 9438"]
    beta = next(row for row in cubic["parameters"] if row["name"] == "beta")
    assert 0 < beta["minimum"] < beta["default"] < beta["maximum"] < 1
    obstacle = loader()["obstacle"]
    assert cubic["loaded"]["runs"] == (obstacle is None)
    if obstacle is not None:
        assert cubic["loaded"]["why"] == obstacle["message"]
    text = tcplab("cc", "list", "-v").stdout
    assert "RFC 9438" in text
    assert "beta = 0.7 (0.001 to 0.999)" in text


def test_a_new_control_passes_its_check(here: Path, tcplab: Command) -> None:
    assert tcplab("cc", "new", "mine", "--output", str(here / "mine.c")).returncode == 0
    ended = tcplab("cc", "check", str(here / "mine.c"), "--json")
    report = json.loads(ended.stdout)
    assert ended.returncode == 0, report
    verdicts = {step["step"]: step["verdict"] for step in report["steps"]}
    assert verdicts["compiles for the simulator"] == "ok"
    assert verdicts["runs 5 s in the simulator"] == "ok"
    assert "failed" not in verdicts.values()


def test_a_file_that_is_there_is_left(here: Path, tcplab: Command) -> None:
    file = here / "mine.c"
    file.write_text("precious")
    ended = tcplab("cc", "new", "mine", "--output", str(file))
    assert ended.returncode == 2
    assert file.read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "near"), [("Mine", "mine"), ("9lives", "lives"), ("a-much-too-long-name", "amuchtoolong")]
)
def test_a_name_that_the_kernel_would_not_take_is_refused(name: str, near: str, tcplab: Command) -> None:
    ended = tcplab("cc", "new", name)
    assert ended.returncode == 2
    assert f"`{near}`" in ended.stderr


def test_check_of_another_file_says_what_a_control_needs(here: Path, tcplab: Command) -> None:
    assert tcplab("cc", "check", str(here / "absent.c")).returncode == 2
    (here / "empty.c").write_text("int x;\n")
    ended = tcplab("cc", "check", str(here / "empty.c"))
    assert ended.returncode == 1
    assert "no CONGESTION_CONTROL" in ended.stdout


def test_check_explains_the_verifiers_refusal(here: Path, tcplab: Command, loading: None) -> None:
    tcplab("cc", "new", "mine", "--output", str(here / "mine.c"))
    text = (here / "mine.c").read_text().replace("ca->reductions++;", "tp->srtt_us = 3;")
    (here / "mine.c").write_text(text)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "srtt_us = 3" in one)
    ended = tcplab("cc", "check", str(here / "mine.c"))
    assert ended.returncode == 1
    assert f"mine.c:{line}: the kernel lets a control write only snd_cwnd" in ended.stdout
    assert "no write support to tcp_sock" in ended.stdout, "the verifier's own words come too"


def test_load_refuses_what_the_control_does_not_take(tcplab: Command) -> None:
    for setting, said in (("beta=7", "outside"), ("bta=0.5", "no parameter"), ("beta=much", "not a number")):
        ended = tcplab("cc", "load", "cubic", "--set", setting)
        assert ended.returncode == 2
        assert said in ended.stderr
    assert tcplab("cc", "load", "nosuch").returncode == 2


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_loaded_control_goes_with_its_command(ending: signal.Signals, here: Path, loading: None) -> None:
    """However that ends. Names are host-wide, so the file has one of its own."""
    name = f"t{ending.value}x{os.getpid() % 100_000}"
    command = [sys.executable, "-m", "tcplab", "cc"]
    file = here / f"{name}.c"
    subprocess.run([*command, "new", name, "--output", str(file)], check=True, stdout=subprocess.DEVNULL)
    with subprocess.Popen([*command, "load", str(file)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert f"tl_{name} is registered" in holder.stdout.readline()
        assert f"tl_{name}" in available()
        holder.send_signal(ending)
        try:
            holder.wait(10)
        finally:
            holder.kill()
    deadline = time.monotonic() + 60
    while f"tl_{name}" in available():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if ending is not signal.SIGKILL:
        assert holder.returncode == 0
