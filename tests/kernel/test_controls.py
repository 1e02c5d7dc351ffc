"""Controls of tcplab's in the running kernel, for as long as a run takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

import tcplab
from tcplab.cc.template import starting_file
from tcplab.results import Run
from tcplab.scenario import ScenarioErrors
from tcplab.testbed.controls import available, loader

pytestmark = pytest.mark.alone

NETWORK = {"path": {"rate": "20 Mbit/s", "rtt": "20 ms"}}


@pytest.fixture(autouse=True)
def loading() -> None:
    """Skip with the reason where controls cannot be loaded."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])


def left(names: Iterable[str]) -> list[str]:
    """Those that are still there, of what was loaded. Other programs may have loaded others meanwhile."""
    return [name for name in names if name in available() and name.startswith("tl_")]


def test_controls_of_a_plan_are_loaded_for_the_run_and_tell_about_themselves(run: Callable[..., Run]) -> None:
    flows = [
        {"name": "sharp", "kind": "tcp", "cc": {"name": "tl_cubic", "beta": 0.5}},
        {"name": "mild", "kind": "tcp", "cc": "tl_cubic"},
        {"name": "bbr", "kind": "tcp", "cc": "bbr2"},
        {"name": "own", "kind": "tcp", "cc": "cubic"},
    ]
    done = run(NETWORK, flows, duration="3 s")
    chosen = done.manifest.facts["controls"]
    assert left(chosen.values()) == []
    assert chosen["own"] == "cubic"
    assert len(set(chosen.values())) == 4
    assert all(chosen[name].startswith("tl_") for name in ("sharp", "mild", "bbr"))
    phases = {name: set(rows["phase"].drop_nulls()) for (name,), rows in done.sockets.group_by("flow")}
    assert "STARTUP" in phases["bbr"]
    assert "SLOW_START" in phases["sharp"]
    assert phases["own"] == set()
    events = done.tables["events"].filter(event="phase")
    assert events.filter(flow="bbr")["detail"][0] == "STARTUP"
    assert "own" not in events["flow"]
    bbr = done.sockets.filter(flow="bbr").drop_nulls("min_rtt_estimate")
    assert bbr["min_rtt_estimate"].to_list() == pytest.approx(bbr["min_rtt"].to_list(), rel=0.5)
    # In bit/s. ACKs that a stall held up report more than the link carries, for some samples.
    assert 0 < np.median(bbr["bandwidth"].drop_nulls()) < 30e6


def test_two_sets_of_parameters_of_one_control_take_effect_side_by_side(run: Callable[..., Run]) -> None:
    asked = {"low": 0.3, "high": 0.8}
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "loss": "0.2 %"}
    flows = [
        {"name": name, "kind": "tcp", "cc": {"name": "tl_cubic", "beta": beta}}
        for name, beta in asked.items()
    ]
    done = run({"path": path}, flows, duration="8 s")
    for name, beta in asked.items():
        rows = done.sockets.filter(flow=name).sort("time")
        cwnd, ssthresh = rows["cwnd"].to_numpy(), rows["ssthresh"].fill_null(0).to_numpy()
        # In congestion avoidance a window hardly grows between the sample before a reduction and the loss.
        reduced = np.flatnonzero((ssthresh[1:] != ssthresh[:-1]) & (ssthresh[:-1] > 0))
        ratios = ssthresh[reduced + 1] / cwnd[reduced]
        assert len(ratios) >= 5, name
        assert np.median(ratios) == pytest.approx(beta, abs=0.06), f"{name}: {ratios}"


def test_a_parameter_out_of_range_is_refused_with_the_range(run: Callable[..., Run]) -> None:
    with pytest.raises(ScenarioErrors, match="7 is outside"):
        run(NETWORK, [{"name": "f", "kind": "tcp", "cc": {"name": "tl_cubic", "beta": 7}}], duration="1 s")


def test_two_labs_load_the_same_control_at_once(tmp_path: Path) -> None:
    running = []
    for name in ("one", "other"):
        flow = {"name": "f", "kind": "tcp", "cc": "tl_reno"}
        scenario = {"tcplab": 1, "name": name, "network": NETWORK, "flows": [flow], "duration": "600 s"}
        file = tmp_path / f"{name}.yaml"
        file.write_text(json.dumps(scenario), encoding="utf-8")
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "tcplab",
            "run",
            file,
            "--engine",
            "kernel",
            "-o",
            tmp_path / name,
        ]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    # Both have theirs once both have tables, however long the slower one takes.
    deadline = time.monotonic() + 120
    tables = [tmp_path / name / "run-1" / "intervals.right.arrows" for name in ("one", "other")]
    while time.monotonic() < deadline and not all(table.exists() for table in tables):
        time.sleep(0.05)
    for process in running:
        process.send_signal(signal.SIGINT)
    ended = [process.communicate(timeout=60)[0] for process in running]
    names = {tcplab.load(tmp_path / name).manifest.facts["controls"]["f"] for name in ("one", "other")}
    assert len(names) == 2, ended
    assert left(names) == []


_RUN = """
import sys, tcplab
flow = {"name": "f", "kind": "tcp", "cc": sys.argv[1]}
network = {"path": {"rate": "20 Mbit/s", "rtt": "20 ms"}}
tcplab.run({"tcplab": 1, "name": "t", "network": network, "flows": [flow], "duration": "60 s"},
           engine="kernel", output=sys.argv[2])
"""


def test_a_killed_run_leaves_no_control_behind(tmp_path: Path) -> None:
    # Nobody else loads one of this name.
    name = f"k{os.getpid()}"
    file = tmp_path / "killed.c"
    file.write_text(starting_file(name), encoding="utf-8")
    program = subprocess.Popen([sys.executable, "-c", _RUN, str(file), str(tmp_path / "out")])
    try:
        _wait_for(lambda: f"tl_{name}" in available())
    finally:
        program.kill()
        program.wait()
    _wait_for(lambda: f"tl_{name}" not in available())


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_users_file_runs_as_any_other(run: Callable[..., Run], tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(starting_file("mine"), encoding="utf-8")
    flows = [
        {"name": "usual", "kind": "tcp", "cc": str(file)},
        {"name": "mild", "kind": "tcp", "cc": {"name": str(file), "beta": 0.8}},
    ]
    done = run(NETWORK, flows, duration="3 s")
    names = done.manifest.facts["controls"]
    assert names["usual"] != names["mild"]
    assert left(names.values()) == []
    assert set(done.flows["cc"]) == {"mine.c"}
    phases = set(done.sockets.filter(flow="usual")["phase"].drop_nulls())
    assert phases >= {"SLOW_START", "CONGESTION_AVOIDANCE"}
    assert done.tables["events"].filter(flow="mild", event="phase")["detail"][0] == "SLOW_START"


def test_a_file_that_the_verifier_refuses_ends_the_run_with_its_line(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    file = tmp_path / "mine.c"
    file.write_text(starting_file("mine").replace("ca->reductions++;", "tp->srtt_us = 3;"), encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"mine.c:\d+: the kernel lets a control write only snd_cwnd"):
        run(NETWORK, [{"name": "f", "kind": "tcp", "cc": str(file)}], duration="1 s")
