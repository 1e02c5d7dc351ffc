"""Findings of a study: sentences, pairs and units."""

import math
from pathlib import Path

import pytest

from tcplab.quantities import NONE
from tcplab.study.findings import findings
from tcplab.study.load import Study, load
from tcplab.study.pairs import pair_grid, pairs
from tcplab.study.scale import amounts
from tcplab.study.store import Done, dataset
from tcplab.study.summary import StudySummary, summary
from tcplab.study.tests.test_execute import written


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """reno and cubic at 10 and 40 ms; the baseline is cubic."""
    return load(written(tmp_path))


def summed(study: Study, goodput: dict[str, list[float]]) -> StudySummary:
    """Goodputs of the cells by their labels, Mbit/s."""
    done = [
        Done(cell.id, number + 1, "done", "", None, 1.0, ({"flow": None, "goodput": value * 1e6},))
        for cell in study.cells
        for number, value in enumerate(goodput.get(" ".join(cell.labels.values()), []))
    ]
    return summary(study, study.cells, dataset(study.cells, done, ["cc", "rtt"]))


CLEAR = {
    "reno 10 ms": [4.0, 4.1, 4.05],
    "cubic 10 ms": [8.0, 8.1, 8.05],
    "reno 40 ms": [9.0, 9.1, 9.05],
    "cubic 40 ms": [6.0, 6.1, 6.05],
}


def test_the_best_the_worst_and_what_differs_from_the_baseline_are_said(study: Study) -> None:
    said = "\n".join(findings(summed(study, CLEAR), []))
    assert "Highest goodput: 9.05 Mbit/s" in said
    assert ", cc reno, rtt 40 ms (n = 3, reliability high)" in said
    assert "Lowest goodput: 4.05 Mbit/s" in said
    assert "Significantly more than the baseline (p < 0.05, corrected): cc reno, rtt 40 ms by 49.6 %" in said
    assert "Significantly less than the baseline (p < 0.05, corrected): cc reno, rtt 10 ms by 49.7 %" in said
    assert "No significant difference" not in said
    assert "low reliability" not in said


def test_what_chance_explains_is_not_called_a_difference(study: Study) -> None:
    wide = {
        "reno 10 ms": [4.0, 8.0, 12.0],
        "cubic 10 ms": [5.0, 9.0, 13.0],
        "reno 40 ms": [1.0, 9.0, 17.0],
        "cubic 40 ms": [2.0, 9.0, 16.0],
    }
    said = "\n".join(findings(summed(study, wide), []))
    assert "No significant difference from it (the intervals overlap): cc" in said
    assert "Significantly" not in said
    assert "2 of 2 cells do not differ from the baseline by more than chance allows" in said
    assert "4 of 4 cells are of low reliability" in said


def test_a_cell_of_copies_has_the_word_deterministic_and_no_statistics(study: Study) -> None:
    copies = {name: [values[0]] * 3 for name, values in CLEAR.items()}
    whole = summed(study, copies)
    said = "\n".join(findings(whole, []))
    assert ", cc reno, rtt 40 ms (n = 3, deterministic)" in said
    assert "2 of 2 cells cannot be tested against the baseline" in said
    assert not any(word in said for word in ("±", "Significantly", "by more than chance", "reliability"))
    text = whole.grid().to_text()
    assert not any(word in text for word in ("high", "±", "*"))
    assert [row[-1] for row in whole.grid().rows] == ["deterministic"] * 4
    for row in whole.cells:
        for change in row.changes.values():
            assert math.isfinite(change.percent)
            assert all(math.isnan(value) for value in (change.low, change.high, change.p, change.effect))
    assert {row[-2:] for row in pair_grid(pairs(whole)).rows} == {(NONE, "deterministic")}


def test_a_baseline_that_failed_is_said_to_compare_nothing(study: Study) -> None:
    whole = summed(study, {name: values for name, values in CLEAR.items() if name.startswith("reno")})
    assert "No run of the baseline was completed: nothing is compared with it." in whole.notes
    assert not any(note.startswith("Change:") for note in whole.notes)
    assert not any(row.changes for row in whole.cells)
    assert any(note.startswith("Change:") for note in summed(study, CLEAR).notes)


def test_a_single_repetition_is_not_called_the_same_as_the_baseline(study: Study) -> None:
    said = "\n".join(findings(summed(study, {name: values[:1] for name, values in CLEAR.items()}), []))
    assert "2 of 2 cells cannot be tested against the baseline" in said
    assert "by more than chance allows" not in said


def test_a_study_without_a_finished_run_found_nothing(study: Study) -> None:
    assert findings(summed(study, {}), []) == ["No run was completed, so nothing was found."]


def test_pairs_differ_in_one_axis_alone(study: Study) -> None:
    found = pairs(summed(study, CLEAR))
    assert [(pair.axis, *pair.a.labels.values(), *pair.b.labels.values()) for pair in found] == [
        ("rtt", "reno", "10 ms", "reno", "40 ms"),
        ("cc", "reno", "10 ms", "cubic", "10 ms"),
        ("cc", "reno", "40 ms", "cubic", "40 ms"),
        ("rtt", "cubic", "10 ms", "cubic", "40 ms"),
    ]
    assert found[1].means == pytest.approx((4.05e6, 8.05e6))
    # Holm's correction: the minimum of four p values counts four times.
    minimum = min(found, key=lambda pair: pair.test.p)
    assert minimum.p == pytest.approx(4 * minimum.test.p)


@pytest.mark.parametrize(
    ("labels", "values", "unit", "log"),
    [
        (["10 ms", "40 ms"], (10, 40), "ms", False),
        (["1 ms", "550 ms"], (1, 550), "ms", True),
        (["10 Mbit/s", "1 Gbit/s"], (10, 1000), "Mbit/s", True),
        (["1 B", "4096 B", "64 KiB"], (1, 4096, 65536), "B", True),
        (["4 kB", "64 kB"], (4, 64), "kB", False),
        (["0 %", "0.1 %"], (0, 0.1), "%", False),
        (["1", "2", "16"], (1, 2, 16), "", False),
    ],
)
def test_labels_that_are_amounts_stand_to_scale(
    labels: list[str], values: tuple[float, ...], unit: str, log: bool
) -> None:
    found = amounts(labels)
    assert found is not None
    assert found.values == pytest.approx(values)
    assert (found.unit, found.log) == (unit, log)


@pytest.mark.parametrize("labels", [["reno", "cubic"], ["10 ms", "10 Mbit/s"], ["10 ms", "many"], []])
def test_names_and_mixed_units_are_not_amounts(labels: list[str]) -> None:
    assert amounts(labels) is None
