"""tcplab from Python, as a notebook uses it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tcplab
import tcplab.scenario
from tcplab.engine import UnknownEngineError
from tcplab.engine.base import Problem

SCENARIO = """\
tcplab: 1
name: api
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: {kind: droptail, limit: 50 packets}, loss: 0.1 %}
flows:
  - {name: bulk, kind: tcp, cc: cubic, duration: 2 s}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "api.yaml"
    path.write_text(SCENARIO)
    (tmp_path / "mine.c").write_text("/* a control */")
    return path


def test_a_run_gives_frames_and_a_plot(scenario: Path) -> None:
    run = tcplab.run("api.yaml")
    assert isinstance(run, tcplab.Run)
    assert run.flows["flow"].to_list() == ["bulk"]
    assert run.intervals.schema["goodput"] == pl.Float64
    assert run.plot.timeseries() is not None
    assert run.path.parent == Path("runs")


def test_a_figure_is_of_a_repetition_that_there_is(scenario: Path) -> None:
    run = tcplab.run("api.yaml", repeat=2)
    assert run.plot.timeseries(2).data
    with pytest.raises(ValueError, match="no repetition 3: the run has 1, 2"):
        run.plot.timeseries(3)


def test_settings_repetitions_and_seeds(scenario: Path) -> None:
    run = tcplab.run(scenario, set={"flows.bulk.cc": "reno"}, repeat=3, seed=5, output="here")
    assert run.path == Path("here")
    assert set(run.flows["cc"]) == {"reno"}
    assert [manifest.seed for manifest in run.manifests.values()] == [5, 6, 7]
    assert run.flows["repetition"].to_list() == [1, 2, 3]


def test_numbers_of_numpy_are_numbers(scenario: Path) -> None:
    data: Any = {
        "tcplab": 1,
        "name": "swept",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "10 ms", "loss": {"packets": np.array([3, 5])}}},
        "flows": [{"name": "a", "kind": "tcp", "streams": np.int64(2), "duration": "1 s"}],
        "description": Path("some/place"),
    }
    one: Any = np.int64(1)
    run = tcplab.run(data, set={"seed": np.int32(7)}, repeat=one + 1, jobs=one, output="swept")
    assert run.flows["stream"].to_list() == [0, 1, 0, 1]
    assert [manifest.seed for manifest in run.manifests.values()] == [7, 8]
    assert tcplab.run(data, seed=one, output="other").manifest.seed == 1
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        tcplab.run(data, repeat="3")  # type: ignore[arg-type]


def test_repetitions_do_not_depend_on_how_many_go_at_a_time(scenario: Path) -> None:
    one = tcplab.run(scenario, repeat=4, jobs=1, output="one")
    four = tcplab.run(scenario, repeat=4, jobs=4, output="four")
    assert one.sockets.equals(four.sockets)


CALM = """\
tcplab: 1
name: calm
network: {path: {rate: 10 Mbit/s, rtt: 40 ms, queue: 30 packets}}
flows: [{name: a, kind: tcp, cc: cubic}, {name: b, kind: tcp, cc: reno}]
duration: 5 s
"""


def test_without_randomness_repetitions_differ_by_the_phases_of_their_flows(scenario: Path) -> None:
    run = tcplab.run(CALM, repeat=3, output="varied")
    exact = tcplab.run(CALM, output="exact")
    assert [sorted(manifest.phases) for manifest in run.manifests.values()] == [[], ["a", "b"], ["a", "b"]]
    assert exact.sockets.equals(run.sockets.filter(pl.col("repetition") == 1))
    starts = run.flows.select("repetition", "flow", "start").rows()
    assert starts == [
        (number, flow, manifest.phases.get(flow, 0))
        for number, manifest in run.manifests.items()
        for flow in ("a", "b")
    ]
    assert all(row.figures["goodput"].interval.half_width > 0 for row in run.summary().flows)
    again = tcplab.run(CALM, repeat=3, jobs=2, output="again")
    assert again.sockets.equals(run.sockets)


def test_a_flow_alone_is_a_copy_whenever_it_starts(scenario: Path) -> None:
    alone = CALM.replace(", {name: b, kind: tcp, cc: reno}", "")
    run = tcplab.run(alone, repeat=3, output="alone")
    assert len(set(run.flows["start"])) == 3
    text = run.summary().to_text()
    assert "deterministic" in text
    assert " ± " not in text.partition("Steady state")[0]
    lossy = tcplab.run(alone.replace("queue", "loss: 0.1 %, queue"), repeat=3, output="lossy")
    assert "deterministic" not in lossy.summary().to_text()


def test_copies_are_called_deterministic(scenario: Path) -> None:
    run = tcplab.run(CALM + "vary: off\n", repeat=3, output="copies")
    assert {manifest.phases == {} for manifest in run.manifests.values()} == {True}
    text = run.summary().to_text()
    assert "deterministic" in text
    assert " ± " not in text.partition("Steady state")[0]


def test_a_loaded_scenario_runs_too(scenario: Path) -> None:
    loaded = tcplab.scenario.load(scenario)
    assert tcplab.run(loaded, output="one").name == "api"
    assert tcplab.run(SCENARIO, output="two").name == "api"


def test_results_are_loaded_again(scenario: Path) -> None:
    run = tcplab.run(scenario, output="here")
    assert tcplab.load("here").flows.equals(run.flows)


def test_a_wrong_scenario_raises_all_its_mistakes(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("cc:", "cx:").replace("20 ms", "20"))
    with pytest.raises(tcplab.ScenarioErrors) as caught:
        tcplab.run(scenario)
    assert len(caught.value.errors) == 2


def test_check_says_what_an_engine_cannot_do(scenario: Path) -> None:
    assert tcplab.check(scenario) == []
    (problem,) = tcplab.check(scenario, set={"flows.bulk.generator": "iperf3"})
    assert problem.where == "flows.bulk.generator"
    assert problem.fatal
    with pytest.raises(tcplab.UnsupportedError):
        tcplab.run(scenario, set={"flows.bulk.generator": "iperf3"})


def test_what_several_flows_have_in_common_is_said_once(scenario: Path) -> None:
    more = "".join(f"  - {{name: {name}, kind: tcp, generator: iperf3}}\n" for name in ("one", "other"))
    scenario.write_text(SCENARIO + more)
    with pytest.raises(tcplab.UnsupportedError) as refused:
        tcplab.run(scenario)
    one, other = refused.value.problems
    assert one.message == other.message
    assert str(refused.value).count(one.message) == 1


def test_an_unknown_control_is_a_mistake_of_the_scenario(scenario: Path) -> None:
    for verb in (tcplab.check, tcplab.run):
        with pytest.raises(tcplab.ScenarioErrors, match="unknown congestion control `cubik`") as caught:
            verb(scenario, set={"flows.bulk.cc": "cubik"})
        assert caught.value.errors[0].suggestion == "cubic"


def test_a_file_that_is_not_a_control_is_a_mistake_of_the_scenario(scenario: Path) -> None:
    for verb in (tcplab.check, tcplab.run):
        with pytest.raises(tcplab.ScenarioErrors, match="it has no CONGESTION_CONTROL"):
            verb(scenario, set={"flows.bulk.cc": "./mine.c"})


@pytest.mark.parametrize(
    ("name", "number"), [("repeat", 0), ("jobs", 0), ("attempts", 0), ("seed", -1), ("seed", 2**64)]
)
def test_a_number_that_cannot_be_is_named(name: str, number: int, scenario: Path) -> None:
    given: dict[str, Any] = {name: number}
    with pytest.raises(ValueError, match=f"^{name}={number}: "):
        tcplab.run(scenario, **given)


def test_settings_and_hosts_are_dictionaries(scenario: Path) -> None:
    text: Any = "flows.bulk.cc=reno"
    for run in (tcplab.run, tcplab.check):
        with pytest.raises(TypeError, match=r"^set='flows\.bulk\.cc=reno': expected a dictionary"):
            run("api.yaml", set=text)
    with pytest.raises(TypeError, match="expected a dictionary"):
        tcplab.study.run("tuning", set=text)
    with pytest.raises(TypeError, match=r"^at='flows\.bulk\.cc=reno': expected a dictionary"):
        tcplab.run("api.yaml", engine="remote", at=text)
    mapping: Any = {"left": {"ssh": "left.example"}}
    with pytest.raises(TypeError, match="expected a dictionary, such as "):
        tcplab.run("api.yaml", engine="remote", at=mapping)


def test_a_study_names_a_number_that_cannot_be(scenario: Path) -> None:
    with pytest.raises(ValueError, match=r"^repeat=0: "):
        tcplab.study.run("tuning", repeat=0)


@pytest.mark.parametrize("engines", ["simm", ["sim", "simm"]])
def test_an_unknown_engine_of_the_call_is_not_the_study_s(engines: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"^unknown engine 'simm' \(engines: sim, kernel, remote\)$"):
        tcplab.study.run("tuning", engines=engines)


def test_an_empty_output_is_not_the_working_directory() -> None:
    for run in (tcplab.run, tcplab.study.run):
        with pytest.raises(ValueError, match=r"^output='': the path is empty"):
            run("tuning", output="")


def test_an_empty_path_of_a_scenario_is_not_the_working_directory() -> None:
    with pytest.raises(ValueError, match=r"^scenario='': the path is empty"):
        tcplab.run("")


def test_results_are_not_overwritten(scenario: Path) -> None:
    tcplab.run(scenario, output="here")
    with pytest.raises(tcplab.ResultsError, match="already holds results"):
        tcplab.run(scenario, output="here")


@pytest.mark.parametrize(
    "error",
    [
        tcplab.UnsupportedError("api.yaml", "sim", [Problem("nodes.left", "it is too far away", "move it")]),
        tcplab.RunFailedError(Path("runs/api"), "left: it is gone"),
        tcplab.ResultsError(Path("runs/api"), "permission denied"),
        tcplab.ScenarioErrors.of_file("api.yaml", "it is empty"),
        UnknownEngineError("simulator"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_leaves_the_process_that_it_occurred_in(error: Exception) -> None:
    """A pool of multiprocessing waits for ever for one that pickle cannot make again."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_importing_costs_nothing() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, tcplab; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"polars", "numpy", "rich", "matplotlib", "plotly"} & set(loaded)


def test_every_public_name_is_there() -> None:
    for name in tcplab.__all__:
        assert getattr(tcplab, name) is not None
    with pytest.raises(AttributeError):
        _ = tcplab.no_such_name


def test_the_old_name_of_output_works_with_a_warning(tmp_path: Path) -> None:
    scenario = {
        "tcplab": 1,
        "name": "t",
        "network": {"path": {"rate": "1 Mbit/s", "rtt": "10 ms"}},
        "flows": [{"name": "f", "kind": "tcp", "cc": "reno"}],
        "duration": "1 s",
    }
    with pytest.warns(DeprecationWarning, match="`out` is deprecated, use `output`") as warned:
        run = tcplab.run(scenario, out=tmp_path / "old")
    assert run.path == tmp_path / "old"
    assert warned[0].filename == __file__
    with pytest.raises(TypeError, match="give one of them"):
        tcplab.run(scenario, out=tmp_path / "a", output=tmp_path / "b")
