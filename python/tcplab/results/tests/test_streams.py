"""Agents' streams become tables, however much of them there is."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from tcplab.results.errors import ResultsError
from tcplab.results.streams import read_streams, remove_streams, stream_files


def batch(times: list[int]) -> bytes:
    buffer = BytesIO()
    frame = pl.DataFrame({"time": times, "flow": ["f"] * len(times), "stream": [0] * len(times)})
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


def write(path: Path, *frames: pl.DataFrame) -> None:
    with path.open("wb") as file:
        pl.concat(frames).write_ipc_stream(file)


def test_no_streams_give_no_table(tmp_path: Path) -> None:
    assert read_streams(tmp_path, "pings") is None


def test_a_stream_is_read_up_to_its_last_whole_batch(tmp_path: Path) -> None:
    data = batch([1, 2, 3])
    path = tmp_path / "pings.a.arrows"
    read = []
    for length in range(0, len(data) + 1, 8):
        path.write_bytes(data[:length])
        frame = read_streams(tmp_path, "pings")
        read.append(0 if frame is None else frame.height)
    assert read[0] == 0
    assert read[-1] == 3
    assert sorted(read) == read, "more bytes give no fewer rows"


def test_tables_that_are_not_streams_are_named(tmp_path: Path) -> None:
    (tmp_path / "pings.a.arrows").write_bytes(b"\xff\xff\xff\xff\x08\x00\x00\x00" + b"\x41" * 64)
    with pytest.raises(ResultsError, match=r"pings\.a\.arrows"):
        read_streams(tmp_path, "pings")


def test_both_ends_of_a_stream_become_one_row(tmp_path: Path) -> None:
    sender = pl.DataFrame(
        {
            "flow": ["f"],
            "stream": [0],
            "start": [0],
            "end": [2_100_000_000],
            "bytes_sent": [1000],
            "bytes_received": pl.Series([None], dtype=pl.Int64()),
            "goodput": pl.Series([None], dtype=pl.Float64()),
            "complete": [True],
        }
    )
    receiver = sender.with_columns(
        pl.lit(50).alias("start").cast(pl.Int64()),
        pl.lit(2_000_000_000).alias("end").cast(pl.Int64()),
        pl.lit(None, dtype=pl.Int64()).alias("bytes_sent"),
        pl.lit(900, dtype=pl.Int64()).alias("bytes_received"),
        pl.lit(False).alias("complete"),
    )
    write(tmp_path / "flows.a.arrows", sender)
    write(tmp_path / "flows.b.arrows", receiver)
    frame = read_streams(tmp_path, "flows")
    assert frame is not None
    row = frame.row(0, named=True)
    assert frame.height == 1
    assert (row["start"], row["end"]) == (0, 2_000_000_000)
    assert (row["bytes_sent"], row["bytes_received"]) == (1000, 900)
    assert row["goodput"] == pytest.approx(3600)
    assert row["complete"] is False


def test_the_last_interval_is_one_row_though_one_end_was_stopped_in_it(tmp_path: Path) -> None:
    ends = {"a": (680, 80, 5000), "b": (700, 100, 20_000)}
    for node, (time, duration, received) in ends.items():
        row = {"time": time, "duration": duration, "flow": "f", "stream": 0, "bytes_received": received}
        half = pl.DataFrame([row]).with_columns(pl.col("time", "duration") * 1_000_000)
        write(tmp_path / f"intervals.{node}.arrows", half.with_columns(pl.lit(0.0).alias("goodput")))
    frame = read_streams(tmp_path, "intervals")
    assert frame is not None
    (row,) = frame.to_dicts()
    assert (row["time"], row["duration"], row["bytes_received"]) == (700_000_000, 100_000_000, 25_000)
    assert row["goodput"] == pytest.approx(2e6)


def test_streams_are_removed_by_table(tmp_path: Path) -> None:
    write(tmp_path / "pings.a.arrows", pl.DataFrame({"time": [1]}))
    remove_streams(tmp_path, ["flows"])
    assert stream_files(tmp_path, "pings")
    remove_streams(tmp_path)
    assert not stream_files(tmp_path, "pings")
