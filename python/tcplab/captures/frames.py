"""Captures as data frames, and as CSV and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tcplab.captures.flows import Flows
from tcplab.captures.packets import KINDS, NONE, Packets
from tcplab.results.files import write_whole

_DIRECTIONS = ("forward", "backward")


def packets_frame(packets: Packets) -> pl.DataFrame:
    """A row per packet, as the analysis understood it.

    `time` is ns since 1970; `seq` and `ack` count from the handshake. `outstanding` is what this side has
    sent and not had acknowledged, `outstanding_peer` what the other side has. `rtt` is that of the peer's
    data that this packet acknowledges. `sacks` are its SACK blocks.
    """
    columns = {name: pl.Series(name, values) for name, values in packets.columns.items()}
    frame = pl.DataFrame(list(columns.values())).with_columns(
        pl.col("direction").replace_strict(dict(enumerate(_DIRECTIONS)), return_dtype=pl.String()),
        pl.col("kind").replace_strict(dict(enumerate(KINDS)), return_dtype=pl.String()),
        pl.col("may_fragment", "duplicate_ack").cast(pl.Boolean()),
        pl.when(pl.col(*_NULLABLE) != NONE).then(pl.col(*_NULLABLE)).name.keep(),
    )
    return frame.with_columns(_sacks(packets))


_NULLABLE = ("ack", "rtt", "rtt_timestamps")


def _sacks(packets: Packets) -> pl.Series:
    blocks: list[list[list[int]]] = [[] for _ in range(len(packets))]
    rows, left, right = (packets.sacks[name].tolist() for name in ("row", "left", "right"))
    for row, start, end in zip(rows, left, right, strict=True):
        blocks[row].append([start, end])
    return pl.Series("sacks", blocks, dtype=pl.List(pl.List(pl.Int64())))


def write_flows(target: Path, captures: Sequence[tuple[Path, Flows]]) -> None:
    """Write flows as CSV, or as Parquet where the file's name ends so. Raises ResultsError."""
    frames = [flows.frame().select(pl.lit(str(path)).alias("capture"), pl.all()) for path, flows in captures]
    write_frame(target, pl.concat(frames))


def write_frame(target: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet where the file's name ends so, else as CSV. Raises ResultsError."""
    if target.suffix == ".parquet":
        write_whole(target, lambda path: frame.write_parquet(path))
    else:
        write_whole(target, lambda path: frame.write_csv(path))
