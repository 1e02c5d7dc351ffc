"""The bottleneck's queue over time, from samples whose values are known."""

from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest

from tcplab.figures.model import Chart
from tcplab.results import RunWriter
from tcplab.results.tests.synthetic import MS, SECOND, plan
from tcplab.study.queue_figure import of_all, queue_over_time
from tcplab.study.store import Store
from tcplab.study.tests.test_fairness_figure import Folders, row

PLACE = {"link": "path", "direction": "forward"}


def measured(folder: Path, gauges: dict[tuple[str, str], list[float]]) -> None:
    """A cell whose queue has packets wait 10 ms, then 20 ms, and these gauges, a sample a second."""
    writer = RunWriter(folder, plan({"one": "reno"}, shared=True, seconds=2))
    queues = [
        {"time": at * SECOND, **PLACE, "packets": at, "bytes": 1514 * at, "sojourn": at * 10 * MS}
        for at in (1, 2)
    ]
    writer.write_table("queues", pl.DataFrame(queues))
    rows: list[dict[str, Any]] = [
        {"time": at * SECOND, **PLACE, "name": name, "unit": unit, "value": value}
        for (name, unit), values in gauges.items()
        for at, value in enumerate(values, 1)
    ]
    writer.write_table("queue_gauges", pl.DataFrame(rows))


def drawn(folder: Path, metric: str, *cells: str) -> Chart | None:
    rows = [row(name) for name in cells]
    return queue_over_time(rows, cast("Store", Folders(folder)), metric, "queue")


def test_the_delay_is_that_of_the_packet_at_the_head(tmp_path: Path) -> None:
    measured(tmp_path / "cell", {("prob", ""): [0.1, 0.2]})
    chart = drawn(tmp_path, "queueing_delay", "cell", "missing")
    assert chart is not None
    (trace,) = chart.traces
    assert (trace.x.tolist(), trace.y.tolist()) == ([1, 2], [10, 20])
    assert chart.y_label == "Queueing delay (ms)"


def test_a_gauge_is_drawn_of_the_cells_whose_discipline_has_it_in_their_colours(tmp_path: Path) -> None:
    measured(tmp_path / "codel", {("count", ""): [1, 4]})
    measured(tmp_path / "pie", {("prob", ""): [0.1, 0.2], ("delay", "ms"): [15, 20]})
    cells = ("codel", "pie")
    prob, delay, whole = (drawn(tmp_path, name, *cells) for name in ("prob", "delay", "queueing_delay"))
    assert prob is not None
    assert delay is not None
    assert whole is not None
    assert [(trace.key, trace.y.tolist()) for trace in prob.traces] == [("pie", pytest.approx([0.1, 0.2]))]
    assert (prob.y_label, delay.y_label) == ("prob", "delay (ms)")
    assert prob.traces[0].style == whole.traces[1].style
    assert drawn(tmp_path, "blue_prob", *cells) is None


def test_a_title_names_the_axes_that_are_fixed_and_not_those_without_a_value() -> None:
    assert of_all({"streams": 1, "group": "", "loss": "0 %"}) == ", streams 1, loss 0 %"
    assert of_all({"group": ""}) == of_all({}) == ""
