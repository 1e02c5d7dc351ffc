"""SQL over a study's results, by DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tcplab.results.errors import ResultsError
from tcplab.results.schema import TABLES
from tcplab.study.store import CELLS, RESULTS_FILE, UNFINISHED, Store

if TYPE_CHECKING:
    import duckdb


class QueryError(ValueError):
    """SQL that cannot be answered."""


def query(store: Store, sql: str) -> pl.DataFrame:
    """Answer a query.

    The table `results` has a row for each run and flow, and one of all flows together, whose `flow` is null.
    Beside it is every result table of all runs (`flows`, `intervals`, `sockets`, …), with the columns `cell`
    and `repetition` before its own. The query reads these tables and no other file, and writes none. Raises
    QueryError, and ResultsError where there are no results.
    """
    import duckdb

    if not (store.path / RESULTS_FILE).is_file():
        raise ResultsError(store.path, UNFINISHED if store.taken else "not the directory of a study")
    connection = duckdb.connect(":memory:", config=_CONFINED)
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type not in _reading():
            raise QueryError("a query is one SELECT (or WITH, FROM, PIVOT, DESCRIBE, SUMMARIZE) statement")
        _views(store, connection)
        answer = connection.execute(sql)
        names = [column[0] for column in answer.description or ()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise QueryError(f"two columns of the answer are called {', '.join(twice)}: name one with AS")
        return pl.DataFrame(answer.fetchall(), schema=names, orient="row", infer_schema_length=None)
    except duckdb.CatalogException as problem:
        if not any((store.path / CELLS).glob("*/run-*/*.parquet")):
            raise QueryError("no run of the study has tables yet: there is only `results`") from None
        said = str(problem).strip()
        # DuckDB would suggest one of its own.
        if missing := re.search(r"Table with name (\S+) does not exist!", said):
            views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            tables = ", ".join(name for (name,) in views)
            said = f"no table `{missing[1]}`: the tables are {tables}"
        raise QueryError(said) from None
    except duckdb.Error as problem:
        raise QueryError(str(problem).strip()) from None
    finally:
        connection.close()


_OF_CSV = (pl.Boolean, pl.String, pl.Date, pl.Datetime, pl.Time)


def csv_text(answer: pl.DataFrame) -> str:
    """An answer as CSV; values that CSV has no form for, such as lists, as JSON."""

    def plain(value: Any) -> Any:
        return value if value is None or isinstance(value, str) else json.dumps(value, default=str)

    columns = [
        column
        if column.dtype.is_numeric() or isinstance(column.dtype, _OF_CSV)
        else pl.Series(column.name, map(plain, column.to_list()), dtype=pl.String)
        for column in answer.get_columns()
    ]
    return pl.DataFrame(columns).write_csv()


# DuckDB reads and writes any file, loads extensions from the network and takes Python's variables for tables
# by default. With these, and `allowed_paths`, it reads the study's own tables.
_CONFINED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


def _reading() -> tuple[object, ...]:
    """The statements that only read; COPY and EXPLAIN ANALYZE COPY could write the files that are allowed."""
    import duckdb

    return (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)


def _views(store: Store, connection: duckdb.DuckDBPyConnection) -> None:
    """Make a view of each table, then take away all access but to their files."""
    results = (store.path / RESULTS_FILE).resolve()
    found = {
        table: [path.resolve() for path in sorted((store.path / CELLS).glob(f"*/run-*/{table}.parquet"))]
        for table in TABLES
    }
    allowed = [results, *(path for paths in found.values() for path in paths)]
    connection.execute(f"SET allowed_paths = {_list(allowed)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    connection.execute(f"CREATE VIEW results AS SELECT * FROM read_parquet({_list([results])})")  # noqa: S608
    for table, paths in found.items():
        if not paths:
            continue
        connection.execute(
            f"""CREATE VIEW "{table}" AS SELECT
                regexp_extract(filename, '/([^/]+)/run-[0-9]+/[^/]+$', 1) AS cell,
                CAST(regexp_extract(filename, '/run-([0-9]+)/[^/]+$', 1) AS BIGINT) AS repetition,
                * EXCLUDE (filename)
                FROM read_parquet({_list(paths)}, filename = true, union_by_name = true)"""  # noqa: S608
        )


def _list(paths: Sequence[Path]) -> str:
    return "[" + ", ".join(_quoted(str(path)) for path in paths) + "]"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
