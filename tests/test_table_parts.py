"""Tables that are written in parts during a simulation are those of one that keeps all rows until its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab import _core, engine
from tcplab.engine.base import Progress, Status
from tcplab.results import TABLES
from tcplab.results.parts import DIR
from tcplab.results.tables import conform, read_table
from tcplab.scenario import expand, load

ROOT = Path(__file__).parents[1]
STREAMS = 1 + 350 * 200
# The first flow ends last, so the rows of flows do not come in the order of their numbers.
SHORT = """
tcplab: 1
name: short
network:
  path: {rate: 10 Gbit/s, rtt: 2 ms}
flows:
  - {name: long, kind: tcp, cc: CONTROL, bytes: 1 MB, window: 16 kB}
FLOWS
sample: {sockets: off, queues: 5 us, flows: off}
duration: 1 s
"""


def planned(control: str) -> Any:
    flow = "  - {{name: f{0}, kind: tcp, bytes: 500 B, streams: 200, start: {0} ms}}"
    flows = "\n".join(flow.format(number) for number in range(350))
    return expand(load(SHORT.replace("CONTROL", control).replace("FLOWS", flows)))


def executed(plan: Any, run_dir: Path, progress: Callable[[Progress], None] = lambda _: None) -> Status:
    return engine.load("sim").run(plan, run_dir, progress).status


@pytest.fixture(scope="module")
def kept() -> dict[str, pl.DataFrame]:
    """The tables of a simulation from which nothing was taken."""
    simulation = _core.Simulation(json.dumps(planned("reno")))
    while not simulation.advance(1000).done:
        pass
    return {name: conform(name, pl.read_ipc(BytesIO(data))) for name, data in simulation.finish().items()}


@pytest.mark.parametrize("control", ["reno", str(ROOT / "cc" / "reno.c")], ids=["built-in", "file"])
def test_parts_make_the_tables_of_a_simulation_that_keeps_its_rows(
    control: str, kept: dict[str, pl.DataFrame], tmp_path: Path
) -> None:
    assert executed(planned(control), tmp_path) == Status.DONE
    assert kept["flows"].height == STREAMS
    assert kept["queues"].height > 1 << 16
    for name in set(TABLES) - {"hosts"}:
        # A control of a file has a name of its own.
        without = [column for column in ("cc", "phase") if column in kept[name].columns]
        assert read_table(tmp_path, name).drop(without).equals(kept[name].drop(without)), name
    assert not (tmp_path / DIR).exists()


def test_an_interrupted_run_has_the_rows_of_its_parts_once(tmp_path: Path) -> None:
    def interrupt(_: Progress) -> None:
        if any((tmp_path / DIR).glob("flows-*")):
            raise KeyboardInterrupt

    assert executed(planned("reno"), tmp_path, interrupt) == Status.INTERRUPTED
    flows = read_table(tmp_path, "flows")
    planned_order = [("long", 0), *((f"f{flow}", stream) for flow in range(350) for stream in range(200))]
    assert flows.select("flow", "stream").rows() == planned_order
    assert not (tmp_path / DIR).exists()
