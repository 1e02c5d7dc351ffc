"""A study's figures: the axes they take, and what a heatmap's fields hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcplab.figures.model import Chart, Heatmap
from tcplab.scenario import ScenarioErrors
from tcplab.study.figures import families, figures
from tcplab.study.load import Study, load
from tcplab.study.pairs import pair_grid, pairs
from tcplab.study.store import Done, Store, dataset
from tcplab.study.summary import StudySummary, summary
from tcplab.study.tests.test_execute import STUDY, written


def drawn(*asked: Any, **more: Any) -> list[Chart | Heatmap]:
    """The figures of the small study."""
    return figures(*small(*asked, **more))


def small(
    directory: Path, plots: str, text: str = STUDY, *, base: float = 1, flows: tuple[str, ...] = ()
) -> tuple[Study, Callable[[str | None], StudySummary], pl.DataFrame, Store]:
    """The small study with results, whose goodputs are 1 to 4 (or 8) Mbit/s in the order of its cells.

    The delays are powers of `base`, if it is not 1. Each flow has its place among `flows` times the goodput.
    """
    study = load(written(directory, f"{text}plots: {plots}\n"))
    done = [
        Done(
            cell.id,
            1,
            "done",
            "",
            None,
            1.0,
            tuple(
                {
                    "flow": flow,
                    "kind": "tcp" if flow else None,
                    "goodput": number * (place or 1) * 1e6,
                    "rtt_p95": (number if base == 1 else base**number) * 1e6,
                }
                for place, flow in enumerate((None, *flows))
                if flow or place == 0
            ),
        )
        for number, cell in enumerate(study.cells, start=1)
    ]
    results = dataset(study.cells, done, [axis.name for axis in study.axes])
    return (
        study,
        lambda flow: summary(study, study.cells, results, flow=flow),
        results,
        Store(directory),
    )


def test_a_heatmap_without_axes_takes_those_that_vary(tmp_path: Path) -> None:
    (made,) = drawn(tmp_path, "[{kind: heatmap}]")
    assert isinstance(made, Heatmap)
    assert (made.columns, made.rows) == (("10 ms", "40 ms"), ("reno", "cubic"))
    assert made.values.tolist() == [[1, 2], [3, 4]]
    (other,) = drawn(tmp_path, "[{kind: heatmap, over: cc}]")
    assert isinstance(other, Heatmap)
    assert (other.columns, other.rows) == (("reno", "cubic"), ("10 ms", "40 ms"))


def test_cells_that_vary_neither_axis_of_a_heatmap_have_no_field(tmp_path: Path) -> None:
    cells = "[{group: main, cc: [reno, cubic], rtt: [10 ms, 40 ms]}, {group: lossy, loss: [0 %, 1 %]}]"
    text = STUDY.replace("repeat: 2", f"  network.path.loss: [0 %, 1 %]\ncells: {cells}\nrepeat: 2")
    (made,) = drawn(tmp_path, "[{kind: heatmap, over: rtt, by: cc}]", text)
    assert isinstance(made, Heatmap)
    assert (made.columns, made.rows) == (("10 ms", "40 ms"), ("reno", "cubic"))


def test_bars_by_flow_have_one_for_each_flow_of_a_cell(tmp_path: Path) -> None:
    (made,) = drawn(tmp_path, "[{kind: bars, by: flow, where: {rtt: 10 ms}}]", flows=("one", "other"))
    assert isinstance(made, Chart)
    assert made.categories == ("reno", "cubic")
    bars = {trace.key: (trace.x.tolist(), trace.y.tolist()) for trace in made.traces}
    assert bars == {"one": ([0, 1], [1, 3]), "other": ([0, 1], [2, 6])}


def test_values_that_differ_widely_have_a_logarithmic_axis(tmp_path: Path) -> None:
    plots = "[{kind: tradeoff}, {kind: heatmap, metric: rtt_p95}]"
    for base, log in ((1, False), (10, True)):
        directory = tmp_path / str(base)
        directory.mkdir()
        chart, heatmap = drawn(directory, plots, base=base)
        assert isinstance(chart, Chart)
        assert isinstance(heatmap, Heatmap)
        assert (chart.x_log, heatmap.is_log) == (log, log)


def test_an_axis_that_is_the_same_for_all_points_stands_in_the_title(tmp_path: Path) -> None:
    (made,) = drawn(tmp_path, "[{kind: tradeoff, where: {rtt: 10 ms}}]")
    assert isinstance(made, Chart)
    assert [trace.key for trace in made.traces] == ["reno", "cubic"]
    assert made.title == "Goodput against delay, rtt 10 ms"


def test_cells_that_share_a_heatmap_s_field_are_averaged_and_it_says_so(tmp_path: Path) -> None:
    text = STUDY.replace("repeat: 2", "  network.path.loss: [0 %, 1 %]\nrepeat: 2")
    (made,) = drawn(tmp_path, "[{kind: heatmap, over: rtt, by: cc}]", text)
    assert isinstance(made, Heatmap)
    assert made.values.tolist() == [[1.5, 3.5], [5.5, 7.5]]
    assert made.notes == ("A field is the mean of up to 2 cells that differ in other axes.",)


@pytest.mark.parametrize("kind", ["curve", "laws"])
def test_a_curve_without_an_axis_takes_an_amount(tmp_path: Path, kind: str) -> None:
    (made,) = drawn(tmp_path, f"[{{kind: {kind}}}]")
    assert isinstance(made, Chart)
    assert made.kind == "curve"
    assert made.x_label == "RTT (ms)"


def test_a_legend_names_the_axis_of_a_number_and_no_axis_without_change(
    tmp_path: Path,
) -> None:
    axes = "  flows.bulk.streams: [1, 2]\n  loss: {set: network.path.loss, values: [0 %]}\nrepeat: 2"
    text = STUDY.replace("repeat: 2", axes)
    (made,) = drawn(tmp_path, "[{kind: curve, over: rtt}]", text)
    assert isinstance(made, Chart)
    assert [trace.key for trace in made.traces] == [
        f"{cc}, streams {streams}" for cc in ("reno", "cubic") for streams in (1, 2)
    ]


def test_an_axis_with_a_single_value_makes_no_curve(tmp_path: Path) -> None:
    text = STUDY.replace("values: [10 ms, 40 ms]", "values: [10 ms]")
    assert drawn(tmp_path, "[{kind: curve, over: rtt}]", text) == []


def test_a_cloud_of_many_cells_is_coloured_by_an_axis_of_few_values(tmp_path: Path) -> None:
    text = STUDY.replace(
        "repeat: 2", "  loss: {set: network.path.loss, values: [0 %, 1 %, 2 %, 3 %]}\nrepeat: 2"
    )
    (made,) = drawn(tmp_path, "[{kind: tradeoff}]", text)
    assert isinstance(made, Chart)
    assert [trace.key for trace in made.traces] == ["reno", "cubic"]


def test_a_map_corrects_for_the_cells_of_each_field(tmp_path: Path) -> None:
    """Not for all cells of the study: a gain does not vanish because there are many fields."""
    rtts = ", ".join(f"{10 * number} ms" for number in range(1, 41))
    text = STUDY.replace("[10 ms, 40 ms]", f"[{rtts}]")
    text = text.replace("repeat: 2", "  loss: {set: network.path.loss, values: [0 %, 1 %]}\nrepeat: 3")
    plots = "[{kind: map, over: rtt, by: loss}]"
    study = load(written(tmp_path, f"{text}plots: {plots}\n"))
    goodputs = {"cubic": (1.0, 1.2, 1.1), "reno": (3.0, 5.0, 4.0)}
    done = [
        Done(cell.id, number, "done", "", None, 1.0, ({"flow": None, "goodput": goodput * 1e6},))
        for cell in study.cells
        for number, goodput in enumerate(goodputs[cell.labels["cc"]], start=1)
    ]
    results = dataset(study.cells, done, [axis.name for axis in study.axes])
    summed = summary(study, study.cells, results)
    changes = [row.changes["goodput"] for row in summed.cells if row.changes]
    assert all(change.p_alone < 0.05 < change.p for change in changes)
    (made,) = figures(study, lambda _: summed, results, Store(tmp_path))
    assert isinstance(made, Heatmap)
    assert {text for line in made.texts for text in line} == {"reno 3.6x"}


def test_a_map_is_called_by_what_all_its_fields_share(tmp_path: Path) -> None:
    text = STUDY.replace("repeat: 2", "  loss: {set: network.path.loss, values: [0 %, 1 %]}\nrepeat: 2")
    (made,) = drawn(tmp_path, "[{kind: map, over: rtt, by: cc, where: {loss: 1 %}}]", text)
    assert made.title == "Greatest gain in goodput over cubic, loss 1 %"


def test_laws_are_those_of_the_flow_as_it_is(tmp_path: Path) -> None:
    """Eight streams beside it do not raise its limit."""
    limits = []
    for streams in ("[1, 8]", "[1]"):
        text = STUDY.replace("flows.bulk.cc: [reno, cubic]", f"flows.bulk.streams: {streams}")
        text = text.replace("baseline: {cc: cubic}", "baseline: {streams: 1}")
        (made,) = drawn(tmp_path, "[{kind: laws, over: rtt, by: streams}]", text)
        assert isinstance(made, Chart)
        limits.append(next(trace.y.tolist() for trace in made.traces if trace.key == "Mathis (Reno)"))
    assert limits[0] == limits[1]


def test_a_metric_that_may_be_negative_has_its_whole_interval_and_its_sign(tmp_path: Path) -> None:
    plots = "[{kind: bars, metric: drift, by: rtt}, {kind: improvement, metric: drift}]"
    study = load(written(tmp_path, f"{STUDY}plots: {plots}\n"))
    drifts = {"cubic": (-0.1, -0.12, -0.08), "reno": (-0.3, -0.31, -0.29)}
    done = [
        Done(cell.id, number, "done", "", None, 1.0, ({"flow": None, "goodput": 1e6, "drift": drift},))
        for cell in study.cells
        for number, drift in enumerate(drifts[cell.labels["cc"]], start=1)
    ]
    results = dataset(study.cells, done, [axis.name for axis in study.axes])
    summed = summary(study, study.cells, results)
    bars, improvement = figures(study, lambda _: summed, results, Store(tmp_path))
    assert isinstance(bars, Chart)
    assert isinstance(improvement, Chart)
    for trace in bars.traces:
        errors = trace.errors()
        assert errors is not None
        assert np.allclose(errors[0], errors[1])
    (trace,) = improvement.traces
    assert trace.y == pytest.approx([-200, -200])
    assert trace.errors() is not None
    (reno_cubic, *_) = (row for row in pair_grid(pairs(summed, "drift"), "drift").rows if row[0] == "cc")
    assert (reno_cubic[1:3], reno_cubic[6]) == (("reno", "cubic"), "+66.7")


THREE = STUDY.replace("repeat: 2", "  network.path.loss: [0 %, 0.1 %, 1 %]\nrepeat: 2")


def test_a_grid_of_three_axes_has_curves_for_one_value_of_the_third_at_a_time(tmp_path: Path) -> None:
    curves = [
        chart for chart in drawn(tmp_path, "[]", THREE) if isinstance(chart, Chart) and chart.kind == "curve"
    ]
    assert [(chart.name, chart.title) for chart in curves] == [
        ("1-curve-goodput-1_10-ms", "Goodput over loss, rtt 10 ms"),
        ("1-curve-goodput-2_40-ms", "Goodput over loss, rtt 40 ms"),
    ]
    assert [trace.key for trace in curves[0].traces] == ["reno", "cubic"]
    assert [trace.y.tolist() for trace in curves[1].traces] == [[4, 5, 6], [10, 11, 12]]


def test_a_plot_has_a_figure_for_each_value_of_an_axis(tmp_path: Path) -> None:
    heatmaps = drawn(tmp_path, "[{kind: heatmap, each: [cc, engine]}]", THREE)
    assert [
        (one.title.partition(", ")[2], one.values.tolist()) for one in heatmaps if isinstance(one, Heatmap)
    ] == [
        ("cc reno, engine sim", [[1, 4], [2, 5], [3, 6]]),
        ("cc cubic, engine sim", [[7, 10], [8, 11], [9, 12]]),
    ]
    (alone,) = drawn(tmp_path, "[{kind: heatmap, each: cc, where: {cc: cubic}}]", THREE)
    assert alone.title.endswith(", cc cubic")


def test_the_figure_of_the_baseline_s_value_is_shown_first(tmp_path: Path) -> None:
    (family,) = families(*small(tmp_path, "[{kind: curve, over: loss, each: [rtt, cc]}]", THREE))
    assert family.axes == {"rtt": ("10 ms", "40 ms"), "cc": ("reno", "cubic")}
    assert family.values(family.first) == {"rtt": "10 ms", "cc": "cubic"}


def test_an_axis_of_each_is_one_of_the_grid(tmp_path: Path) -> None:
    with pytest.raises(ScenarioErrors, match="unknown axis `flow`"):
        drawn(tmp_path, "[{kind: curve, each: flow}]", THREE)
