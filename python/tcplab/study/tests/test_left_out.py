"""Cells of a study on real hosts that would only repeat another, because they set the path."""

from pathlib import Path

from tcplab.study.load import Asked, load

TEXT = """\
tcplab: 1
study: path-and-control
scenario:
  tcplab: 1
  name: one-path
  network: {path: {rate: 10 Mbit/s, rtt: 20 ms}}
  flows: [{name: bulk, kind: tcp, cc: reno, duration: 2 s}]
grid:
  cc: {set: flows.bulk.cc, values: [reno, cubic]}
  rtt: {set: network.path.rtt, values: [20 ms, 80 ms]}
"""


def cells(tmp_path: Path, engine: str) -> tuple[list[str], list[str]]:
    """Titles of the cells that are run, and of those left out."""
    file = tmp_path / "study.yaml"
    file.write_text(TEXT, encoding="utf-8")
    study = load(file, Asked(engines=(engine,)))
    return [cell.title for cell in study.cells], [cell.title for cell in study.left_out]


def test_real_hosts_run_no_cell_that_differs_in_the_path_alone(tmp_path: Path) -> None:
    run, left_out = cells(tmp_path, "remote")
    assert run == ["cc reno, rtt 20 ms", "cc cubic, rtt 20 ms"]
    assert left_out == ["cc reno, rtt 80 ms", "cc cubic, rtt 80 ms"]


def test_an_engine_that_makes_the_path_runs_all(tmp_path: Path) -> None:
    run, left_out = cells(tmp_path, "sim")
    assert (len(run), left_out) == (4, [])


def test_cells_with_the_same_plan_on_every_engine_stay(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    # The first value is what the scenario has: with it the cell is the plain one by another name.
    text = TEXT.partition("  rtt:")[0] + "cells: [{group: plain}, {group: controls, cc: [reno, cubic]}]\n"
    file.write_text(text, encoding="utf-8")
    study = load(file, Asked(engines=("remote",)))
    assert (len(study.cells), study.left_out) == (3, ())
