"""Events of flows and links, counted."""

from pathlib import Path
from typing import Any

import polars as pl

from tcplab.analysis.event_counts import EventRow, event_rows
from tcplab.results import Run, RunWriter, load
from tcplab.results.tests.synthetic import MS, plan
from tcplab.results.writer import create_result_dir, run_dir_of


def counted(path: Path, *repetitions: list[dict[str, Any]]) -> Run:
    create_result_dir(path, "tcplab: 1\nname: t\n")
    for number, rows in enumerate(repetitions, 1):
        made = plan({"two": "reno", "one": "reno"}, shared=True)
        writer = RunWriter(run_dir_of(path, number), made, engine="sim", repetition=number)
        writer.write_table("events", pl.DataFrame(rows, infer_schema_length=None))
        writer.finish("done", wall_duration=0.1)
    return load(path)


def event(at: int, what: str, flow: str | None = "one", **more: Any) -> Any:
    return {"time": at * MS, "event": what, "flow": flow, "link": None, "detail": "", **more}


def test_flows_come_in_the_plans_order_and_links_after_them(tmp_path: Path) -> None:
    rows = [
        event(1500, "link_change", flow=None, link="path"),
        event(2000, "rto"),
        event(1000, "rto"),
        event(500, "ecn", flow="two"),
    ]
    assert event_rows(counted(tmp_path, rows)) == [
        EventRow("two", "ECN response", 1, "0.500 s"),
        EventRow("one", "retransmission timeout", 2, "1.000, 2.000 s"),
        EventRow("path", "link change", 1, "1.500 s"),
    ]


def test_episodes_of_loss_count_and_other_states_do_not(tmp_path: Path) -> None:
    states = ["recovery", "loss", "open", "disorder", "loss"]
    rows = [event(1000 * at, "state", detail=state) for at, state in enumerate(states)]
    assert [(row.what, row.count) for row in event_rows(counted(tmp_path, [*rows, event(1, "phase")]))] == [
        ("loss episode (loss)", 2),
        ("loss episode (recovery)", 1),
    ]


def test_only_the_first_six_times_are_reported(tmp_path: Path) -> None:
    six, seven = ([event(1000 * at, "rto") for at in range(1, count + 1)] for count in (6, 7))
    (row,) = event_rows(counted(tmp_path / "six", six))
    assert row.when == "1.000, 2.000, 3.000, 4.000, 5.000, 6.000 s"
    (row,) = event_rows(counted(tmp_path / "seven", seven))
    assert row.when == "1.000, 2.000, 3.000, 4.000, 5.000, 6.000, … s"


def test_of_several_repetitions_the_times_are_those_of_the_first(tmp_path: Path) -> None:
    (row,) = event_rows(counted(tmp_path, [event(1000, "rto")], [event(900, "rto"), event(950, "rto")]))
    assert (row.count, row.when) == (3, "1.000, … s (repetition 1)")
