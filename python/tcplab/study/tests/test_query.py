"""A study's results, asked in SQL."""

import csv
from pathlib import Path

import polars as pl
import pytest

from tcplab.study.grid import AxisValues, Value, cells
from tcplab.study.query import QueryError, csv_text, query
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


def test_csv_has_a_form_for_every_type(store: Store) -> None:
    values = {
        "list(goodput)": "[1000000.0, 2000000.0]",
        "{'a': NULL}": '{"a": null}',
        "UUID '00000000-0000-0000-0000-000000000000'": '"00000000-0000-0000-0000-000000000000"',
        "DATE '2026-01-02'": "2026-01-02",
        "INTERVAL 1 DAY": '"1 day, 0:00:00"',
        "'a'::BLOB": "\"b'a'\"",
        "true": "true",
        "NULL": "",
    }
    named = ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))
    written = csv_text(query(store, f"SELECT {named} FROM results WHERE cc = 'reno'"))
    (row,) = csv.DictReader(written.splitlines())
    assert [*row.values()] == [*values.values()]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT cc, goodput, goodput / 1e6 AS goodput FROM results",
            "two columns of the answer are called goodput",
        ),
        ("SELECT speed FROM results", "speed"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM flows", "no run of the study has tables yet: there is only `results`"),
    ],
)
def test_what_cannot_be_answered_is_reported(store: Store, sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        query(store, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('{directory}/*')",
        "SELECT * FROM read_csv('{cells}/../secret.csv')",
        "SELECT * FROM parquet_metadata('{secret}')",
        "SELECT * FROM store",
        "SELECT 1; SELECT * FROM read_csv('{secret}')",
        "SET enable_external_access = true",
        "COPY results TO '{directory}/written.csv'",
        "COPY (SELECT 1) TO '{results}' (FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{results}' (FORMAT csv, USE_TMP_FILE false)",
        "EXPORT DATABASE '{directory}/written'",
        "ATTACH '{directory}/written.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
    ],
)
def test_a_query_reads_no_other_file_and_writes_none(store: Store, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    before = files()
    with pytest.raises(QueryError):
        query(
            store,
            sql.format(
                secret=secret, directory=tmp_path, cells=tmp_path / CELLS, results=tmp_path / RESULTS_FILE
            ),
        )
    assert files() == before


def test_a_table_that_does_not_exist_is_answered_with_those_that_do(store: Store) -> None:
    run_dir = store.path / CELLS / "a-1" / "run-1"
    run_dir.mkdir(parents=True)
    pl.DataFrame({"flow": ["bulk"]}).write_parquet(run_dir / "flows.parquet")
    with pytest.raises(QueryError, match=r"^no table `flow`: the tables are flows, results$"):
        query(store, "SELECT * FROM flow")


def test_tables_of_all_runs_have_cell_and_repetition(store: Store) -> None:
    for cell, repetition in (("a-1", 1), ("a-1", 2), ("it's", 1)):
        run_dir = store.path / CELLS / cell / f"run-{repetition}"
        run_dir.mkdir(parents=True)
        pl.DataFrame({"flow": ["bulk"], "bytes_received": [repetition]}).write_parquet(
            run_dir / "flows.parquet"
        )
    answer = query(store, "SELECT cell, repetition, bytes_received FROM flows ORDER BY ALL")
    assert answer.rows() == [("a-1", 1, 1), ("a-1", 2, 2), ("it's", 1, 1)]
    pivoted = query(
        store, "PIVOT flows ON cell USING sum(bytes_received) GROUP BY repetition ORDER BY repetition"
    )
    assert pivoted.rows() == [(1, 1, 1), (2, 2, None)]
