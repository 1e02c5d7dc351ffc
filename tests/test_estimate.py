"""The estimate of `check` for a run, against what the run takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab import engine
from tcplab import estimate as module
from tcplab.estimate import Estimate, beyond, estimate, many_rows
from tcplab.scenario import expand, from_data, load

ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
PATH = {"path": {"rate": "20 Mbit/s", "rtt": "20 ms"}}
# In a process of its own, whose memory is the run's.
_RUN = """
import json, re, sys
import tcplab
from tcplab.api import write_report
done = tcplab.run(sys.argv[1], output=sys.argv[2], repeat=1)
done.summary()
write_report(done)
# Not ru_maxrss: it begins with the peak of the process that forked this one.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
print(json.dumps({"packets": done.manifest.facts["packets"], "memory": peak}))
"""


def simulated(file: Path) -> bool:
    """Whether the simulator takes the scenario."""
    return not any(problem.fatal for problem in engine.load("sim").check(expand(load(file))))


def taken(scenario: Path, out: Path) -> Any:
    ended = subprocess.run(
        [sys.executable, "-c", _RUN, str(scenario), str(out)], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    files = list((out / "run-1").iterdir())
    tables = [file for file in files if file.suffix == ".parquet"]
    rows = sum(pl.scan_parquet(table).select(pl.len()).collect().item() for table in tables)
    return {**found, "rows": rows, "disk": sum(file.stat().st_size for file in files)}


def assert_within_a_factor_of_two(expected: Estimate, found: dict[str, Any]) -> None:
    ratios = {
        "packets": expected.packets / found["packets"],
        "rows": expected.total_rows / found["rows"],
        "disk": expected.disk / found["disk"],
        "memory": expected.memory / found["memory"],
    }
    assert {key: ratio for key, ratio in ratios.items() if not 0.5 <= ratio <= 2} == {}


@pytest.mark.parametrize("file", [*filter(simulated, SHIPPED)], ids=lambda file: file.stem)
def test_every_shipped_scenario_takes_what_is_expected(file: Path, tmp_path: Path) -> None:
    assert_within_a_factor_of_two(estimate(expand(load(file))), taken(file, tmp_path / "out"))


@pytest.mark.parametrize(
    "more",
    [
        {"sample": {"packets": True}},
        {"sample": {"sockets": "200 us", "queues": "200 us"}},
        {"capture": "headers"},
        {"capture": "full", "sample": {"sockets": "off"}},
        {"flows": [{"name": "p", "kind": "ping", "interval": "100 us"}]},
        {
            "flows": [
                {"name": "b", "kind": "tcp", "bytes": "10 MB"},
                {"name": "u", "kind": "udp", "rate": "5 Mbit/s"},
            ]
        },
        {"flows": [{"name": "e", "kind": "echo", "iterations": 20_000, "sizes": [64, 4096], "clients": 2}]},
        {
            "flows": [{"name": "f", "kind": "tcp", "window": "20 kB"}],
            "network": {"path": {"rate": "1 Gbit/s", "rtt": "40 ms"}},
        },
    ],
    ids=["packets", "samples", "headers", "full", "ping", "bytes", "echo", "window"],
)
def test_so_does_what_they_do_not_have(more: dict[str, Any], tmp_path: Path) -> None:
    scenario = {
        "tcplab": 1,
        "name": "t",
        "network": PATH,
        "flows": [{"name": "bulk", "kind": "tcp"}],
        "duration": "20 s",
        **more,
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(scenario), encoding="utf-8")
    assert_within_a_factor_of_two(estimate(expand(load(file))), taken(file, tmp_path / "out"))


def test_a_large_network_has_a_large_plan(tmp_path: Path) -> None:
    scenario = {
        "tcplab": 1,
        "name": "t",
        "network": {"topology": {"kind": "fat-tree", "k": 8, "edge": {"delay": "1 ms"}}},
        "flows": [{"name": "bulk", "kind": "tcp", "from": "h1", "to": "h2", "bytes": "1 kB"}],
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(scenario), encoding="utf-8")
    expected, found = estimate(expand(load(file))), taken(file, tmp_path / "out")
    assert 0.5 < expected.disk / found["disk"] < 2


def planned(*flows: dict[str, Any], **more: Any) -> Any:
    return expand(from_data({"tcplab": 1, "name": "t", "network": PATH, "flows": list(flows), **more}))


def test_many_rows_are_a_warning() -> None:
    bulk = {"name": "bulk", "kind": "tcp", "duration": "30 s", "streams": 10}
    assert not list(many_rows(estimate(planned(bulk))))
    (said,) = many_rows(estimate(planned(bulk, sample={"sockets": "10 us"})))
    assert said.startswith("sample: about 120 million rows, 90 million of them in gauges")


def test_what_a_machine_has_too_little_of_is_refused_unless_the_user_insists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_free_memory", lambda: 8 << 30)
    monkeypatch.setattr(module, "_free_disk", lambda place: 100 << 30)
    ping = estimate(planned({"name": "p", "kind": "ping", "interval": "1 ns"}, duration="30 s"))
    assert ping.rows["pings"] == 30_000_000_000
    refused = beyond([(ping, 1)], 1, tmp_path)
    assert [(problem.where, problem.fatal) for problem in refused] == [("memory", True), ("disk", True)]
    assert "--yes" in refused[0].fix
    assert not any(problem.fatal for problem in beyond([(ping, 1)], 1, tmp_path, yes=True))
    small = estimate(planned({"name": "f", "kind": "tcp"}))
    assert beyond([(small, 10_000)], 2, tmp_path) == []
    # One at a time they fit, a thousand do not.
    assert [problem.where for problem in beyond([(small, 10_000)], 10_000, tmp_path)] == ["memory"]


def test_an_estimate_takes_no_longer_for_more() -> None:
    few = planned({"name": "e", "kind": "echo", "iterations": 10})
    many = planned({"name": "e", "kind": "echo", "iterations": 10**9, "clients": 100_000})

    def spent(plan: Any) -> float:
        began = time.process_time()
        for _ in range(50):
            estimate(plan)
        return time.process_time() - began

    # A loop over clients or messages would make it a million times as long.
    assert spent(many) < 1000 * spent(few)
