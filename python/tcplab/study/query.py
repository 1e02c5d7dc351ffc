"""SQL over a study's results, by DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcplab.results.errors import ResultsError
from tcplab.results.schema import TABLES
from tcplab.study.store import CELLS, RESULTS_FILE, Store

if TYPE_CHECKING:
    import duckdb


class QueryError(ValueError):
    """SQL that cannot be answered."""


def query(store: Store, sql: str) -> pl.DataFrame:
    """Answer a query.

    There is the table `results` (a row for each run and flow, and one of all flows together, whose `flow`
    is null), and every result table of all runs (`flows`, `intervals`, `sockets`, …), with the columns `cell`
    and `repetition` before its own. Raises QueryError, and ResultsError where there are no results.
    """
    import duckdb

    if not (store.path / RESULTS_FILE).is_file():
        raise ResultsError(store.path, "holds no study's results (results.parquet)")
    connection = duckdb.connect(":memory:")
    try:
        _views(store, connection)
        answer = connection.execute(sql)
        names = [column[0] for column in answer.description or ()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise QueryError(f"two columns of the answer are called {', '.join(twice)}: name one with AS")
        return pl.DataFrame(answer.fetchall(), schema=names, orient="row", infer_schema_length=None)
    except duckdb.Error as problem:
        raise QueryError(str(problem).strip()) from None
    finally:
        connection.close()


def _views(store: Store, connection: duckdb.DuckDBPyConnection) -> None:
    results = _quoted(str(store.path / RESULTS_FILE))
    connection.execute(f"CREATE VIEW results AS SELECT * FROM read_parquet({results})")  # noqa: S608
    for table in TABLES:
        pattern = store.path / CELLS / "*" / "run-*" / f"{table}.parquet"
        if not any((store.path / CELLS).glob(f"*/run-*/{table}.parquet")):
            continue
        connection.execute(
            f"""CREATE VIEW "{table}" AS SELECT
                regexp_extract(filename, '/([^/]+)/run-[0-9]+/[^/]+$', 1) AS cell,
                CAST(regexp_extract(filename, '/run-([0-9]+)/[^/]+$', 1) AS BIGINT) AS repetition,
                * EXCLUDE (filename)
                FROM read_parquet({_quoted(str(pattern))}, filename = true, union_by_name = true)"""  # noqa: S608
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
