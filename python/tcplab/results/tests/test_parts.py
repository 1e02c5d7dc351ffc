"""Parts of tables are joined in order, or not at all."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.results.errors import ResultsError
from tcplab.results.parts import DIR, TableParts
from tcplab.results.tables import read_table

PLAN: Any = {"flows": [{"name": "b", "streams": 200_000}, {"name": "a", "streams": 1}]}
FIXED = {"from": "x", "to": "y", "kind": "tcp", "start": 0, "end": 1, "bytes_sent": 0, "complete": True}


def flows(*streams: tuple[str, int]) -> bytes:
    buffer = BytesIO()
    rows = [{"flow": flow, "stream": number, **FIXED} for flow, number in streams]
    pl.DataFrame(rows).write_ipc(buffer)
    return buffer.getvalue()


def test_rows_of_flows_are_in_the_order_of_the_plan(tmp_path: Path) -> None:
    with TableParts(tmp_path, PLAN) as parts:
        parts.add("flows", flows(("b", 150_000), ("b", 2)))
        parts.add("flows", flows(("a", 0), ("b", 70_000), ("b", 1)))
        parts.finish({"flows": flows(("b", 149_999))})
    order = [("b", 1), ("b", 2), ("b", 70_000), ("b", 149_999), ("b", 150_000), ("a", 0)]
    assert read_table(tmp_path, "flows").select("flow", "stream").rows() == order
    assert not (tmp_path / DIR).exists()


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: IO error: No space left on device (os error 28)")

    monkeypatch.setattr(pl, "scan_parquet", full)
    with TableParts(tmp_path, PLAN) as parts:
        parts.add("flows", flows(("b", 0)))
        with pytest.raises(ResultsError, match="the disk is full"):
            parts.finish({"flows": flows(("b", 1))})
    assert list(tmp_path.iterdir()) == []
