"""Captures as data frames, and as CSV and Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.captures.flow import Flow
from tcplab.captures.series import KINDS, NONE, Packets
from tcplab.results.files import write_whole

_DIRECTIONS = ("forward", "backward")


def flows_frame(flows: Sequence[Flow]) -> pl.DataFrame:
    """A row per flow. What one side sent stands in columns that begin with `forward_` and `backward_`.

    Times are ns (`first` and `last` since 1970), sizes bytes, goodput bit/s; null is what is not known.
    """
    return pl.DataFrame([_row(flow) for flow in flows], infer_schema_length=None)


def _row(flow: Flow) -> dict[str, Any]:
    row: dict[str, Any] = {
        "flow": flow.number,
        "protocol": flow.protocol,
        "client": flow.halves[0].address,
        "client_port": flow.halves[0].port,
        "server": flow.halves[1].address,
        "server_port": flow.halves[1].port,
        "interface": flow.interface,
        "first_packet": flow.first_packet,
        "first": flow.first,
        "last": flow.last,
        "duration": flow.duration,
        "end": flow.end,
        "handshake_rtt": flow.handshake_rtt,
        "handshake_server": flow.handshake_server,
        "handshake_client": flow.handshake_client,
        "ecn_negotiated": flow.ecn_negotiated,
        "main": _DIRECTIONS[flow.main],
    }
    for direction, half in zip(_DIRECTIONS, flow.halves, strict=True):
        values = asdict(half)
        tcp = values.pop("tcp") or {}
        for name, value in {**values, **tcp}.items():
            if name in ("address", "port"):
                continue
            if name in _SPREADS:
                value = value or dict.fromkeys(_SPREAD_PARTS)
                row |= {f"{direction}_{name}_{part}": value[part] for part in _SPREAD_PARTS}
            else:
                row[f"{direction}_{name}"] = value
    return row


_SPREADS = ("rtt", "rtt_timestamps", "interarrival")
_SPREAD_PARTS = ("count", "min", "mean", "p50", "p95", "p99", "max")


def packets_frame(packets: Packets) -> pl.DataFrame:
    """A row per packet, as the analysis understood it.

    `time` is ns since 1970; `seq` and `ack` count from the handshake; `outstanding` is what this side has
    sent and not had acknowledged, `outstanding_peer` what the other side has; `rtt` is that of the peer's
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


def write_flows(target: Path, captures: Sequence[tuple[Path, Sequence[Flow]]]) -> None:
    """Write flows as CSV, or as Parquet where the file's name ends so. Raises ResultsError."""
    frames = [
        flows_frame(flows).select(pl.lit(str(path)).alias("capture"), pl.all()) if flows else pl.DataFrame()
        for path, flows in captures
    ]
    known = [frame for frame in frames if len(frame)]
    frame = pl.concat(known, how="diagonal_relaxed") if known else pl.DataFrame()
    write_frame(target, frame)


def write_frame(target: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet where the file's name ends so, else as CSV. Raises ResultsError."""
    if target.suffix == ".parquet":
        write_whole(target, lambda path: frame.write_parquet(path))
    else:
        write_whole(target, lambda path: frame.write_csv(path))
