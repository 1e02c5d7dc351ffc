"""A plan that names files: it says all there is to run, and a result keeps it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tcplab

Write = Callable[..., Path]


def scenario(*controls: Any) -> dict[str, Any]:
    flows = [{"name": f"f{n}", "kind": "tcp", "cc": cc} for n, cc in enumerate(controls)]
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "per_flow": "on"}
    return {"tcplab": 1, "name": "t", "network": {"path": path}, "flows": flows, "duration": "3 s"}


def test_a_file_runs_as_a_shipped_control_does(control: Write, tmp_path: Path) -> None:
    file = control()
    run = tcplab.run(scenario(str(file), "reno", {"name": str(file), "beta": 0.8}), output=tmp_path / "out")
    received = dict(run.flows.select("flow", "bytes_received").iter_rows())
    assert received["f0"] == received["f1"], "the starting file is Reno"
    assert received["f2"] != received["f0"], "and its parameter changes it"
    phases = run.sockets.filter(flow="f0")["phase"].drop_nulls().unique().to_list()
    assert "SLOW_START" in phases
    assert set(run.flows.filter(flow="f0")["cc"]) == {"mine.c"}
    assert (tmp_path / "out" / "controls" / "mine.c").read_text() == file.read_text()


def test_what_runs_is_what_the_plan_says_not_what_the_file_says_later(control: Write) -> None:
    from tcplab.cc.plans import sources
    from tcplab.scenario import expand, from_data

    file = control()
    plan = expand(from_data(scenario(str(file))))
    before = file.read_text()
    file.write_text("something else")
    assert [source.text for source in sources(plan)] == [before]


def test_files_of_one_name_are_kept_apart(control: Write, tmp_path: Path) -> None:
    first = control()
    other = tmp_path / "other" / "mine.c"
    other.parent.mkdir()
    other.write_text(first.read_text().replace("512, 1", "717, 1"))
    tcplab.run(scenario(str(first), str(other)), output=tmp_path / "out")
    kept = sorted(path.name for path in (tmp_path / "out" / "controls").iterdir())
    assert kept == ["mine-2.c", "mine.c"]
