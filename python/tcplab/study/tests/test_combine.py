"""The cell that takes the best of each axis together."""

from pathlib import Path

import pytest

from tcplab.study.combine import best_cell
from tcplab.study.grid import Cell
from tcplab.study.load import Study, load
from tcplab.study.store import Done
from tcplab.study.tests.test_execute import written

STUDY = """
tcplab: 1
study: small
scenario:
  tcplab: 1
  name: base
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
  flows: [{name: bulk, kind: tcp}]
  duration: 3 s
grid:
  cc: {set: flows.bulk.cc, values: [reno, cubic, bbr1]}
  rtt: {set: network.path.rtt, values: [10 ms, 40 ms]}
  sack: {set: network.path.left.sack, values: [on, off]}
cells: CELLS
repeat: 2
combine: {axes: [cc, rtt]}
"""
# One axis at a time, and the scenario as it is.
ALONE = "[{}, {cc: [reno, cubic, bbr1]}, {rtt: [10 ms, 40 ms]}]"


def small(folder: Path, cells: str = ALONE, **changes: str) -> Study:
    text = STUDY.replace("CELLS", cells)
    for key, line in changes.items():
        text = (
            "\n".join(one for one in text.splitlines() if not one.startswith(f"{key}:"))
            + f"\n{key}: {line}\n"
        )
    return load(written(folder, text))


def best(study: Study, goodput: dict[str, list[float]], engine: str = "sim") -> Cell | None:
    """The best cell when those of these labels had these goodputs."""
    done = [
        Done(cell.id, number + 1, "done", "", None, 1.0, ({"flow": None, "goodput": value},))
        for cell in study.cells
        if cell.engine == engine
        for number, value in enumerate(goodput.get(" ".join(label for label in cell.labels.values()), []))
    ]
    return best_cell(study, done)


def test_it_has_the_best_value_of_each_axis_by_the_mean_of_its_runs(tmp_path: Path) -> None:
    # One run of reno is better than any other, but not reno.
    goodput = {
        "": [4.0, 4.0],
        "reno": [9.0, 1.0],
        "cubic": [6.0, 6.0],
        "bbr1": [5.0],
        "10 ms": [5.0],
        "40 ms": [3.0],
    }
    found = best(small(tmp_path), goodput)
    assert found is not None
    assert found.labels == {"cc": "cubic", "rtt": "10 ms"}
    assert found.group == "combined best"
    assert found.sets == ["flows.bulk.cc=cubic", "network.path.rtt=10 ms"]


def test_least_turns_it_round(tmp_path: Path) -> None:
    study = small(tmp_path, combine="{axes: [cc, rtt], minimum: on}")
    found = best(study, {"": [4.0], "reno": [3.0], "cubic": [6.0], "10 ms": [5.0], "40 ms": [3.9]})
    assert found is not None
    assert found.labels == {"cc": "reno", "rtt": "40 ms"}


def test_an_axis_that_beats_nothing_keeps_the_value_it_has(tmp_path: Path) -> None:
    goodput = {"": [4.0], "reno": [4.0], "cubic": [3.0], "10 ms": [5.0], "40 ms": [4.5]}
    # That is a cell of the study already.
    assert best(small(tmp_path), goodput) is None
    both = "[{}, {cc: [reno, cubic], rtt: 40 ms}, {rtt: [10 ms, 40 ms]}]"
    found = best(
        small(tmp_path, both, baseline="{rtt: 40 ms}"), {"40 ms": [4.0], "reno 40 ms": [5.0], "10 ms": [3.0]}
    )
    # Neither rtt: the baseline's own is better than the only other one.
    assert found is None


def test_axes_are_judged_beside_the_baselines_values(tmp_path: Path) -> None:
    cells = "[{cc: [reno, cubic], rtt: 40 ms}, {cc: reno, rtt: 10 ms}, {cc: bbr1}]"
    study = small(tmp_path, cells, baseline="{cc: reno, rtt: 40 ms}")
    # bbr1 was measured with another rtt than the baseline's, so it says nothing of cc alone.
    found = best(study, {"reno 40 ms": [4.0], "cubic 40 ms": [5.0], "reno 10 ms": [6.0], "bbr1": [9.0]})
    assert found is not None
    assert found.labels == {"cc": "cubic", "rtt": "10 ms"}


def test_a_baseline_that_is_a_switch_is_one_of_its_axis_values(tmp_path: Path) -> None:
    cells = "[{sack: on}, {cc: [reno, cubic], sack: on}, {rtt: [10 ms, 40 ms], sack: on}]"
    found = best(
        small(tmp_path, cells, baseline="{sack: true}"),
        {"on": [4.0], "reno on": [5.0], "10 ms on": [6.0], "40 ms on": [1.0]},
    )
    assert found is not None
    assert found.labels == {"cc": "reno", "rtt": "10 ms", "sack": "on"}


def test_without_a_measured_baseline_the_best_of_each_axis_counts(tmp_path: Path) -> None:
    found = best(small(tmp_path), {"reno": [1.0], "cubic": [2.0], "10 ms": [1.0]})
    assert found is not None
    assert found.labels == {"cc": "cubic", "rtt": "10 ms"}


def test_several_engines_are_judged_by_the_first(tmp_path: Path) -> None:
    study = small(tmp_path, engine="[sim, kernel]")
    assert best(study, {"reno kernel": [9.0], "10 ms kernel": [9.0]}, engine="kernel") is None
    found = best(study, {"sim": [4.0], "cubic sim": [5.0], "10 ms sim": [6.0]})
    assert found is not None
    assert (found.engine, found.labels) == ("sim", {"cc": "cubic", "rtt": "10 ms", "engine": "sim"})


@pytest.mark.parametrize("goodput", [{}, {"reno": []}], ids=["nothing", "no rows"])
def test_nothing_measured_has_no_best(tmp_path: Path, goodput: dict[str, list[float]]) -> None:
    assert best(small(tmp_path), goodput) is None


def test_a_study_that_combines_nothing_has_none(tmp_path: Path) -> None:
    study = load(written(tmp_path, STUDY.replace("CELLS", ALONE).replace("combine:", "# combine:")))
    assert best(study, {"": [1.0], "reno": [2.0], "10 ms": [2.0]}) is None


def test_of_values_that_are_as_good_the_first_is_taken(tmp_path: Path) -> None:
    alone = {"": [9.5], "cubic": [9.9], "bbr1": [9.901], "10 ms": [9.7], "40 ms": [9.701]}
    cell = best(small(tmp_path), alone)
    assert cell is not None
    assert cell.labels == {"cc": "cubic", "rtt": "10 ms"}


def test_an_axis_without_a_better_value_keeps_that_of_the_baseline(tmp_path: Path) -> None:
    # The cell with CUBIC alone is there already.
    assert best(small(tmp_path), {"": [9.5], "cubic": [9.9], "40 ms": [9.502]}) is None
