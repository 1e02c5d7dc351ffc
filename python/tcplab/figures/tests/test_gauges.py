"""The figure of what controls publish."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tcplab.figures.runs.gauges import gauges
from tcplab.present import write_figures
from tcplab.present.report import report_html
from tcplab.results import Run, load, write_table
from tcplab.results.tests.synthetic import plan, write_result

STEP = 10_000_000


def rows(flow: str, name: str, unit: str, values: list[float | None]) -> pl.DataFrame:
    """A figure at each of the first samples; none where it has no value."""
    return pl.DataFrame(
        {
            "time": [STEP * (at + 1) for at in range(len(values))],
            "flow": flow,
            "stream": 0,
            "node": f"{flow}-client",
            "name": name,
            "value": values,
            "unit": unit,
        }
    ).drop_nulls("value")


def published(place: Path, *tables: pl.DataFrame, flows: dict[str, str]) -> Run:
    result = write_result(place, plan(flows, seconds=2))
    write_table(result / "run-1", "gauges", pl.concat(tables))
    return load(result)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return published(
        tmp_path / "result",
        rows("one", "inflight_hi", "packets", [70.0, 80.0, None, 90.0]),
        rows("one", "inflight_lo", "packets", [60.0, 60.0, 61.0, 62.0]),
        rows("one", "ecn_alpha", "", [1.0, 0.5, 0.25, 0.125]),
        rows("two", "alpha", "", [0.5, 0.5, 0.5, 0.5]),
        flows={"one": "bbr2", "two": "dctcp"},
    )


def test_each_control_and_unit_has_a_panel_with_the_unit_on_its_axis(run: Run) -> None:
    labels = [panel.label.replace("\n", " ") for panel in gauges(run).panels]
    assert labels == [
        "bbr2 inflight_hi, solid inflight_lo, dashed (packets)",
        "bbr2 ecn_alpha",
        "dctcp alpha",
    ]


def test_a_flow_keeps_its_colour_and_figures_of_one_panel_differ_by_stroke(run: Run) -> None:
    bounds, alpha, other = gauges(run).panels
    assert len({line.style.color for panel in (bounds, alpha) for line in panel.lines}) == 1
    assert [line.style.dash for line in bounds.lines] == ["solid", "dash"]
    assert other.lines[0].style.color != alpha.lines[0].style.color


def test_a_line_has_a_gap_where_the_control_had_no_value(run: Run) -> None:
    line = gauges(run).panels[0].lines[0]
    seen = dict(zip(line.x.round(3), line.y, strict=True))
    assert (seen[0.02], seen[0.04]) == (80, 90)
    assert np.isnan(seen[0.03])


def test_of_many_flows_the_first_of_each_control_is_shown(tmp_path: Path) -> None:
    flows = {f"f{i}": "dctcp" if i % 2 else "vegas" for i in range(12)}
    tables = [rows(flow, "alpha", "", [0.5, 0.5]) for flow in flows]
    figure = gauges(published(tmp_path / "result", *tables, flows=flows))
    assert [line.key for panel in figure.panels for line in panel.lines] == ["f0", "f1"]
    assert "10 more" in figure.notes[-1]


def test_the_report_and_the_images_have_it_where_there_is_any(run: Run, tmp_path: Path) -> None:
    assert "<h2>Gauges of the congestion controls</h2>" in report_html(run)
    assert "gauges.svg" in {path.name for path in write_figures(run, tmp_path / "figures", formats=["svg"])}
    without = load(write_result(tmp_path / "without", plan({"one": "reno"}, seconds=2)))
    assert not gauges(without).panels
    assert "<h2>Gauges of the congestion controls</h2>" not in report_html(without)
