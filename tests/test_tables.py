"""The tables of the simulator are those of the schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from tcplab import _core
from tcplab.results import TABLES
from tcplab.scenario import expand, load

EVERYTHING = """\
tcplab: 1
name: everything
network:
  nodes:
    - left
    - {name: middle, kind: router, accelerate: {}}
    - right
  links:
    - {ends: [left, middle], rate: 100 Mbit/s, delay: 1 ms}
    - ends: [middle, right]
      rate: 10 Mbit/s
      delay: 10 ms
      queue: fq_codel
      loss: 1 %
      at: {500 ms: {rate: 5 Mbit/s}}
flows:
  - {name: bulk, from: left, to: right, kind: tcp, cc: bbr1, streams: 2}
  - {name: noise, from: left, to: right, kind: udp, rate: 2 Mbit/s}
  - {name: web, from: left, to: right, kind: request, request: 200 B, response: 20 kB}
  - {name: pages, from: left, to: right, kind: http, sizes: [1 kB, 5 kB]}
  - {name: probe, from: left, to: right, kind: ping, interval: 50 ms}
sample: {packets: on}
duration: 1 s
"""
KINDS: dict[str, Callable[[pl.DataType], bool]] = {
    "int": lambda dtype: dtype.is_integer(),
    "float": lambda dtype: dtype.is_float(),
    "bool": lambda dtype: dtype == pl.Boolean,
    "str": lambda dtype: dtype in (pl.String, pl.Categorical),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pl.DataFrame]:
    plan = expand(load(EVERYTHING))
    simulation = _core.Simulation(json.dumps(plan), tmp_path_factory.mktemp("captures"))
    while not simulation.advance(1000).done:
        pass
    return {name: pl.read_ipc(BytesIO(data)) for name, data in simulation.finish().items()}


def test_every_table_but_those_of_real_hosts_and_of_a_million_echoes_has_rows(
    tables: dict[str, pl.DataFrame],
) -> None:
    assert {name for name, frame in tables.items() if len(frame)} == set(TABLES) - {
        "hosts",
        "echo_batches",
        "routes",
    }


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"hosts", "routes"}))
def test_a_table_has_the_columns_of_its_schema(name: str, tables: dict[str, pl.DataFrame]) -> None:
    assert tables[name].columns == [column.name for column in TABLES[name]]
    wrong = {
        column.name: tables[name].schema[column.name]
        for column in TABLES[name]
        if not KINDS[column.kind](tables[name].schema[column.name])
    }
    assert wrong == {}


def test_losses_by_interval_add_up_to_those_of_the_streams(tables: dict[str, pl.DataFrame]) -> None:
    sums = tables["losses"].group_by("flow", "stream").agg(pl.col("forward", "reverse").sum())
    one_way = tables["flows"].filter(pl.col("kind").is_in(["tcp", "udp"])).join(
        sums, on=["flow", "stream"], how="left"
    )  # fmt: skip
    assert one_way["forward"].fill_null(0).to_list() == one_way["losses_true"].to_list()
    assert one_way["losses_true"].sum() > 0
    assert tables["losses"].select("time", "flow", "stream").is_duplicated().sum() == 0


def test_loaded_texts_are_plain_strings(tmp_path: Path) -> None:
    import tcplab

    run = tcplab.run(load(EVERYTHING), output=tmp_path / "result")
    texts = {column.name for column in TABLES["packets"] if column.kind == "str"}
    assert {run.packets.schema[name] for name in texts} == {pl.String}
