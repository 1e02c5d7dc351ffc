"""The shipped scenarios load, expand, and are accepted by the simulator."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from tcplab.scenario import expand, from_data, load, warnings
from tcplab.scenario.tests.generate import scenarios

SHIPPED = sorted((Path(__file__).parents[4] / "scenarios").glob("*.yaml"))


def simulator() -> Any:
    try:
        return importlib.import_module("tcplab._core").Simulation
    except (ImportError, AttributeError) as missing:
        pytest.skip(f"the simulator is not built: {missing}")


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_scenario_expands(file: Path) -> None:
    scenario = load(file)
    assert scenario.name == file.stem
    assert scenario.description
    assert expand(scenario)["duration"] <= 100_000_000_000


def test_there_are_warnings_only_where_they_are_the_point() -> None:
    warned = {file.stem for file in SHIPPED if warnings(expand(load(file)))}
    assert warned == {"random-loss-netem", "satellite"}


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_simulator_accepts_a_shipped_scenario(file: Path) -> None:
    simulator()(json.dumps(expand(load(file))))


@hypothesis_settings(max_examples=30)
@given(scenarios())
def test_the_simulator_accepts_every_valid_scenario(data: dict[str, Any]) -> None:
    simulator()(json.dumps(expand(from_data(data))))


def test_the_cellular_trace_is_what_its_program_computes() -> None:
    traces = SHIPPED[0].parent / "traces"
    names: dict[str, Any] = {"__name__": "make_cellular"}
    exec(
        compile((traces / "make_cellular.py").read_text(encoding="utf-8"), "make_cellular.py", "exec"), names
    )
    computed = "".join(f"{ms}\n" for ms in names["opportunities"]())
    assert (traces / "cellular.down").read_text(encoding="utf-8") == computed
