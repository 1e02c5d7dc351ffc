"""A study's results, asked in SQL."""

from pathlib import Path

import pytest

from tcplab.study.grid import AxisValues, Value, cells
from tcplab.study.query import QueryError, query
from tcplab.study.store import CELLS, RESULTS_FILE, Done, Store, dataset


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two cells with two runs each."""
    found = cells([AxisValues("cc", "cc", (Value("reno", ()), Value("cubic", ())))], "full", ["sim"])
    done = [
        Done(cell.id, number + 1, "done", "", None, 1.0, ({"flow": None, "goodput": 1e6 * (place + number)},))
        for place, cell in enumerate(found, start=1)
        for number in range(2)
    ]
    dataset(tuple(found), done, ["cc"]).write_parquet(tmp_path / RESULTS_FILE)
    (tmp_path / CELLS).mkdir()
    return Store(tmp_path)


def test_the_results_are_a_table(store: Store) -> None:
    answer = query(store, "SELECT cc, avg(goodput) AS mean FROM results GROUP BY cc ORDER BY mean")
    assert answer.rows() == [("reno", 1.5e6), ("cubic", 2.5e6)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT cc, goodput, goodput / 1e6 AS goodput FROM results",
            "two columns of the answer are called goodput",
        ),
        ("SELECT speed FROM results", "speed"),
        ("SELEC 1", "SELEC"),
    ],
)
def test_what_cannot_be_answered_is_told(store: Store, sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        query(store, sql)
