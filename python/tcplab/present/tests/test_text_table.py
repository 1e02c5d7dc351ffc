"""Tables on terminals of every width."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tcplab.analysis.echo import FlowEchoes, Series, statistics
from tcplab.analysis.estimate import estimate
from tcplab.analysis.leg_summaries import LegSummary
from tcplab.present import compare, summary
from tcplab.present.echo_grids import echo_grids
from tcplab.present.remedy_grids import leg_grid
from tcplab.present.text_table import Grid, Heading
from tcplab.results import load
from tcplab.results.tests.synthetic import plan, write_result


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> object:
    flows = {"the-first-of-the-flows": "reno", "two": "cubic"}
    made: Path = write_result(
        tmp_path_factory.mktemp("grid") / "result", plan(flows, shared=True, seconds=10)
    )
    return summary(load(made)).to_rich()


def printed(table: object, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_flow_control_and_goodput_are_always_readable(table: object, width: int) -> None:
    text = printed(table, width)
    first = next(line for line in text.splitlines() if "the-first-of-the-flows" in line)
    assert " reno " in first
    assert "±" in first
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_name_that_does_not_fit_is_folded_not_cut(table: object) -> None:
    text = printed(table, 40)
    assert "…" not in text
    assert "CC" in text.split()


@pytest.mark.parametrize("width", [40, 50])
def test_a_figure_that_does_not_fit_goes_on_in_the_next_line(width: int) -> None:
    headings = (
        Heading("Flow", numeric=False),
        Heading("Figure", numeric=False),
        Heading("one"),
        Heading("other"),
    )
    row = ("bulk-of-all", "Goodput (Mbit/s)", "7.321 ± 0.819", "8.123 ± 0.456")
    lines = printed(Grid("One against another", headings, (row,)).to_rich(), width).splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert all(figure in words for cell in row[2:] for figure in cell.split()), lines


def test_columns_without_room_are_named(table: object) -> None:
    assert "Warm-up" in " ".join(printed(table, 60).split("On a wider terminal")[1].split())
    assert "On a wider terminal" not in printed(table, 200)


def test_a_blank_line_comes_before_the_next_table(table: object) -> None:
    for width in (60, 200):
        before = printed(table, width).partition("Bottlenecks, steady state")[0]
        assert before.splitlines()[-1].strip() == ""


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_comparison_has_flows_figures_and_values_on_a_terminal_of_any_width(
    tmp_path: Path, width: int
) -> None:
    names = ("two-flows-20261128-225309", "two-flows-20261128-225315")
    flows = {"the-first-of-the-flows": "reno", "two": "cubic"}
    made = [load(write_result(tmp_path / name, plan(flows, shared=True, seconds=10), 3)) for name in names]
    text = printed(compare(made).to_rich(), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    table = text.partition("Differences are")[0]
    assert "Goodput" in table
    assert "±" in table
    # The difference with its interval, then its percentage.
    assert re.search(r" [-+][\d.]+ ± [\d.]+ +[-+][\d.]+ ", table)
    # The first column of each line, put together: names go on in the next line.
    first = "".join(line[:23].split("  ")[0].strip() for line in table.splitlines())
    assert "the-first-of-the-flows" in first


@pytest.mark.parametrize("width", [40, 60])
def test_round_trips_by_size_are_not_cut(width: int) -> None:
    series = [Series(0, size, np.full(10, 330_710_000.0)) for size in (1, 65536)]
    (grid,) = echo_grids([FlowEchoes("e", statistics(series, clients=1, iterations=10).sizes)])
    text = printed(grid.to_rich(), width)
    assert "…" not in text
    assert "330.7" in text
    assert max(map(len, text.splitlines())) <= width


def test_windows_of_legs_are_in_segments() -> None:
    one = estimate([12.0], 0.95)
    row = LegSummary("bulk", "gateway", "client", True, one, one, one, one, one, one)
    units = {heading.label: heading.unit for heading in leg_grid([row]).headings}
    assert (units["Window"], units["Retransmitted"]) == ("segments", "segments")
