"""Tables on terminals of every width."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from tcplab.analysis.estimate import estimate
from tcplab.analysis.leg_summaries import LegSummary
from tcplab.present import summary
from tcplab.present.remedy_grids import leg_grid
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


def test_columns_without_room_are_named(table: object) -> None:
    assert "Warm-up" in " ".join(printed(table, 60).split("On a wider terminal")[1].split())
    assert "On a wider terminal" not in printed(table, 200)


def test_windows_of_legs_are_in_segments() -> None:
    one = estimate([12.0], 0.95)
    row = LegSummary("bulk", "gateway", "client", True, one, one, one, one, one, one)
    units = {heading.label: heading.unit for heading in leg_grid([row]).headings}
    assert (units["Window"], units["Retransmitted"]) == ("segments", "segments")
