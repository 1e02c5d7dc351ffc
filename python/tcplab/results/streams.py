"""Rows as agents leave them: Arrow streams by table and node, joined into tables.

While a run goes on, each agent appends to `TABLE.NODE.arrows`. What a killed run leaves is read up to the
last whole batch. Both ends of a flow write a row, each what it knows; they become one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import polars as pl

from tcplab.results.errors import ResultsError
from tcplab.results.schema import COUNTED, TABLES

# Tables of which both ends write a row, and the columns that show which rows belong together.
_HALVES = {"flows": ("flow", "stream"), "intervals": ("_begin", "flow", "stream")}
_CONTINUATION = 0xFFFF_FFFF


def stream_files(run_dir: Path, table: str) -> list[Path]:
    """The streams of a table, one for each node that has written any."""
    return sorted(run_dir.glob(f"{table}.*.arrows"))


def read_streams(run_dir: Path, table: str) -> pl.DataFrame | None:
    """A table from the streams in a run directory; none if there are none.

    Raises ResultsError when one cannot be read.
    """
    frames = [frame for path in stream_files(run_dir, table) if (frame := _read(path)) is not None]
    if not frames:
        return None
    whole = pl.concat(frames, how="diagonal_relaxed")
    if table in _HALVES:
        whole = _join(table, whole)
    if "time" in whole.columns:
        whole = whole.sort("time", maintain_order=True)
    return whole


def _read(path: Path) -> pl.DataFrame | None:
    try:
        data = path.read_bytes()
        whole = data[: _whole(data)]
        return pl.read_ipc_stream(BytesIO(whole)) if whole else None
    except (OSError, struct.error, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ResultsError(path, f"not a readable stream of rows: {error}") from error


def _whole(data: bytes) -> int:
    """Bytes of `data` that are whole messages (Arrow columnar format, Encapsulated message format)."""
    at = 0
    while at + 8 <= len(data):
        mark, size = struct.unpack_from("<II", data, at)
        if mark != _CONTINUATION or size == 0 or at + 8 + size > len(data):
            break
        end = at + 8 + size + _body_length(data, at + 8)
        # A length below zero would lead back.
        if end > len(data) or end <= at:
            break
        at = end
    return at


def _body_length(data: bytes, message: int) -> int:
    """The field `bodyLength`, fourth of the flatbuffer table `Message`; 0 where it is left out."""
    table = message + int(struct.unpack_from("<I", data, message)[0])
    fields = table - int(struct.unpack_from("<i", data, table)[0])
    slot = 4 + 2 * 3
    if slot + 2 > int(struct.unpack_from("<H", data, fields)[0]):
        return 0
    offset = int(struct.unpack_from("<H", data, fields + slot)[0])
    return int(struct.unpack_from("<q", data, table + offset)[0]) if offset else 0


def _join(table: str, halves: pl.DataFrame) -> pl.DataFrame:
    """One row from what both ends know of a stream; what both count, as of requests, is added up."""
    keys = _HALVES[table]
    if table == "intervals":
        # One end may have closed its last row earlier than the other.
        halves = halves.with_columns((pl.col("time") - pl.col("duration")).alias("_begin"))
    rest = [
        column.name for column in TABLES[table] if column.name not in keys and column.name in halves.columns
    ]
    known = {name: pl.col(name).drop_nulls().first() for name in rest}
    if table == "intervals":
        known |= {name: pl.col(name).max() for name in ("time", "duration")}
    # Where traffic goes both ways, both ends do both.
    for name in (*COUNTED[table], "goodput"):
        if name in rest:
            known[name] = pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())
    if table == "flows":
        # The client starts a stream, and the receiver knows when its last byte came. An end that was cut off
        # lasted until then.
        known["start"] = pl.col("start").min()
        known["end"] = pl.coalesce(
            pl.col("end").filter(pl.col("bytes_received").is_not_null() | ~pl.col("complete")).max(),
            pl.col("end").max(),
        )
        known["complete"] = pl.col("complete").all()
    joined = halves.group_by(keys, maintain_order=True).agg([known[name].alias(name) for name in rest])
    lasted = pl.col("end") - pl.col("start") if table == "flows" else pl.col("duration")
    goodput = pl.when(lasted > 0).then(pl.col("bytes_received") * 8e9 / lasted.cast(pl.Float64))
    joined = joined.with_columns(
        pl.when(pl.col("bytes_received").is_not_null()).then(goodput).alias("goodput")
    )
    return joined.sort(*keys[-2:], *keys[:-2]).drop("_begin", strict=False)


def remove_streams(run_dir: Path, tables: Iterable[str] = tuple(TABLES)) -> None:
    """Remove the streams whose rows are in tables now."""
    for table in tables:
        for path in stream_files(run_dir, table):
            path.unlink(missing_ok=True)
