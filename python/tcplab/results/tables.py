"""Frames that follow the schema: casting, checking, reading and writing."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import polars as pl

from tcplab.results.errors import ResultsError, require_directory
from tcplab.results.files import write_bytes
from tcplab.results.schema import REQUIRED, TABLES
from tcplab.results.streams import read_streams
from tcplab.safe_text import visible

_TYPES: dict[str, pl.DataType] = {
    "int": pl.Int64(),
    "float": pl.Float64(),
    "bool": pl.Boolean(),
    "str": pl.String(),
}


class SchemaError(ValueError):
    """A frame is not the table it claims to be."""


def polars_schema(name: str) -> dict[str, pl.DataType]:
    """Column names and types of a table."""
    if name not in TABLES:
        raise SchemaError(f"unknown table {name!r} (tables: {', '.join(TABLES)})")
    return {column.name: _TYPES[column.kind] for column in TABLES[name]}


def conform(name: str, frame: pl.DataFrame, *, read: bool = False) -> pl.DataFrame:
    """Bring a frame to its table's column order and types.

    A column the engine could not fill may be absent: it becomes null. An unknown column, or a value that
    does not fit the column's type, is refused with SchemaError. Of a file that is `read`, an unknown column
    is left out: a later version has added it.
    """
    schema = polars_schema(name)
    unknown = [column for column in frame.columns if column not in schema]
    if unknown and not read:
        raise SchemaError(f"table {name}: unknown column {unknown[0]!r}")
    columns = [
        pl.col(column).cast(kind) if column in frame.columns else pl.lit(None, dtype=kind).alias(column)
        for column, kind in schema.items()
    ]
    try:
        return frame.select(columns)
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"table {name}: {error}") from error


def write_table(run_dir: Path, name: str, frame: pl.DataFrame) -> Path:
    """Write one table into a run directory, whole or not at all.

    Raises SchemaError when the frame does not follow the schema, ResultsError when it cannot be written.
    """
    path = run_dir / f"{name}.parquet"
    write_frame(path, conform(name, frame))
    return path


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet, whole or not at all; raises ResultsError when it cannot be written."""
    # In memory first: polars would report a full disk as an error of the format.
    buffer = BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    write_bytes(path, buffer.getvalue())


def read_table(run_dir: Path, name: str) -> pl.DataFrame:
    """Read one table of a run directory; a table that was not recorded is empty.

    Of a run that was killed, the rows its agents had written by then are read.
    """
    path = run_dir / f"{name}.parquet"
    try:
        if not path.exists():
            require_directory(run_dir)
            left = read_streams(run_dir, name)
            frame = (
                pl.DataFrame(schema=polars_schema(name)) if left is None else conform(name, left, read=True)
            )
        else:
            frame = conform(name, pl.read_parquet(path, glob=False), read=True)
    except OSError as error:
        raise ResultsError.unreadable(path, error) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, SchemaError) as error:
        raise ResultsError(path, f"not a readable table: {str(error).partition(chr(10))[0]}") from error
    for column in REQUIRED[name]:
        if frame[column].null_count():
            raise ResultsError(path, f"not a table of tcplab: {column} is missing in some rows")
    return frame.with_columns(_visible(column) for column in frame.select(pl.col(pl.String)))


def _visible(column: pl.Series) -> pl.Series:
    """Names from a stranger's results, as they may be shown."""
    raw = {text: visible(text) for text in column.unique().drop_nulls() if not text.isprintable()}
    return column.replace(raw) if raw else column
