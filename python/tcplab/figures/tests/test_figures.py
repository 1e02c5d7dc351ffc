from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.figures.decimate import decimate
from tcplab.figures.draw_plotly import draw
from tcplab.figures.palette import COLORS, style
from tcplab.figures.runs.distributions import cdf
from tcplab.figures.runs.plot import Plot
from tcplab.figures.runs.timeseries import timeseries
from tcplab.present import write_figures
from tcplab.results import Run, load, write_table
from tcplab.results.tests.synthetic import SECOND, plan, write_result

SERIES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=400)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    made = plan({"one": "reno", "two": "cubic"}, seconds=10)
    return load(write_result(tmp_path_factory.mktemp("figures") / "result", made, repetitions=2))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Run:
    flows = {f"flow-{i}": "reno" if i % 2 else "cubic" for i in range(12)}
    made = plan(flows, shared=True, seconds=5)
    return load(write_result(tmp_path_factory.mktemp("figures") / "many", made))


def test_panels_stand_in_the_order_in_which_they_are_read(run: Run) -> None:
    assert [panel.title for panel in timeseries(run).panels] == [
        "Goodput",
        "Congestion window",
        "Phases",
        "RTT",
        "Queue",
    ]


def test_a_flow_has_one_colour_in_every_panel(run: Run) -> None:
    for figure in (timeseries(run), cdf(run)):
        colors = {
            key: {line.style.color for panel in figure.panels for line in panel.lines if line.key == key}
            for key in ("one", "two")
        }
        assert colors == {"one": {COLORS[0]}, "two": {COLORS[1]}}


def test_every_axis_has_its_unit(run: Run) -> None:
    labels = [panel.label for panel in timeseries(run).panels if panel.lines]
    assert labels == ["Goodput (Mbit/s)", "Congestion window (segments)", "RTT (ms)", "Queue (packets)"]
    assert timeseries(run).x_label == "Time (s)"


def test_the_repetition_shown_is_named(run: Run) -> None:
    assert timeseries(run, 2).notes[0] == "Repetition 2 of 2."


def test_reference_lines_are_inside_their_panel(run: Run) -> None:
    for panel in timeseries(run).panels:
        for level in panel.levels:
            top = panel.y_range[1]
            assert top is None or level.y <= top


def test_many_flows_are_aggregated_by_control(many: Run) -> None:
    figure = timeseries(many)
    assert {line.key for line in figure.panels[1].lines} == {"reno", "cubic"}
    assert "12 flows, grouped by control" in figure.notes[0]
    total = sum(float(line.y[-1]) for line in figure.panels[0].lines)
    assert total == pytest.approx(9.5, abs=0.5)


def test_a_shared_queue_and_its_fairness_have_panels(many: Run) -> None:
    panels = {panel.title: panel for panel in timeseries(many).panels}
    assert len(panels["Queue"].lines) == 1
    assert panels["Jain's index"].lines[0].y[-1] == pytest.approx(1.0, abs=0.05)


def test_a_distribution_rises_from_nought_to_one(run: Run) -> None:
    for panel in cdf(run).panels:
        for line in panel.lines:
            assert line.y[0] == 0
            assert line.y[-1] == 1
            assert (np.diff(line.y) >= 0).all()
            assert (np.diff(line.x) >= 0).all()


@given(SERIES, st.integers(4, 50))
def test_decimation_hides_no_peak(values: list[float], points: int) -> None:
    x, y = np.arange(len(values), dtype=float), np.asarray(values)
    kept_x, kept_y = decimate(x, y, points)
    assert (np.diff(kept_x) > 0).all()
    if np.isfinite(y).any():
        assert np.nanmax(kept_y) == np.nanmax(y)
        assert np.nanmin(kept_y) == np.nanmin(y)
    assert len(kept_x) <= max(points * 2 + 2, len(values) if len(values) <= points else 0)


def test_decimation_keeps_about_as_many_points_as_asked() -> None:
    x = np.arange(100_000.0)
    kept, _ = decimate(x, np.sin(x / 50), 2000)
    assert 1000 <= len(kept) <= 2002


def test_more_flows_than_colours_differ_by_line_style() -> None:
    styles = [style(i) for i in range(len(COLORS) * 4)]
    assert len(set(styles)) == len(styles)


def test_figures_are_written_in_every_format(run: Run, tmp_path: Path) -> None:
    paths = write_figures(run, tmp_path / "figures")
    assert {path.name for path in paths} == {
        f"{name}.{kind}" for name in ("timeseries", "distributions") for kind in ("svg", "png", "pdf")
    }
    heads = {path.suffix: path.read_bytes()[:5] for path in paths}
    assert heads[".png"] == b"\x89PNG\r"
    assert heads[".pdf"] == b"%PDF-"
    assert "Goodput" in (tmp_path / "figures" / "timeseries.svg").read_text()


def test_figures_are_the_same_every_time(run: Run, tmp_path: Path) -> None:
    first = write_figures(run, tmp_path / "a")
    second = write_figures(run, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_plotly_and_matplotlib_draw_the_same_lines(run: Run) -> None:
    model = [line for panel in timeseries(run).panels for line in panel.lines]
    drawn = Plot(run).timeseries()
    named = [trace for trace in drawn.data if trace.mode == "lines" and trace.line.width]
    assert len(named) == len(model)
    printed = Plot(run).timeseries(library="matplotlib")
    lines = [line for axis in printed.axes for line in axis.get_lines() if len(line.get_xdata()) > 10]
    assert len(lines) == len(model)


def test_phases_cost_the_page_a_trace_a_shade_not_a_shape_each(run: Run) -> None:
    figure = timeseries(run)
    drawn = draw(figure)
    (strips,) = [panel.strips for panel in figure.panels if panel.strips]
    segments = sum(len(strip.segments) for strip in strips)
    shades = sum(len({segment.shade for segment in strip.segments}) for strip in strips)
    filled = [trace for trace in drawn.data if trace.fill == "toself" and trace.hoverinfo == "skip"]
    assert len(filled) == shades
    assert sum(int(np.isnan(trace.x).sum()) for trace in filled) == segments
    assert len(drawn.layout.shapes) < segments


def test_the_axis_of_time_ends_with_a_run_that_was_cut_off(tmp_path: Path) -> None:
    """Not when a flow would have begun."""
    result = write_result(tmp_path / "result", plan({"one": "reno", "two": "cubic"}, seconds=2))
    file = result / "run-1" / "flows.parquet"
    flows = pl.read_parquet(file)
    late = pl.when(pl.col("flow") == "two").then(100 * SECOND)
    never = flows.with_columns(late.otherwise(pl.col(name)).alias(name) for name in ("start", "end"))
    write_table(result / "run-1", "flows", never)
    assert timeseries(load(result)).x_range == (0.0, 2.0)
