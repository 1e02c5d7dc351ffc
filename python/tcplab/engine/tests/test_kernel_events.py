"""Events of a run on the kernel are what its samples of sockets show."""

from __future__ import annotations

import polars as pl

from tcplab.engine.kernel_events import changes

EVENTS = pl.DataFrame(
    schema={
        "time": pl.Int64(),
        "flow": pl.String(),
        "stream": pl.Int64(),
        "link": pl.String(),
        "event": pl.String(),
        "detail": pl.String(),
    }
)


def sampled(rows: list[tuple[int, str, int, str, str | None]]) -> list[tuple[object, ...]]:
    frame = pl.DataFrame(rows, schema=["time", "flow", "stream", "state", "phase"], orient="row")
    frame = frame.with_columns(pl.col("phase").cast(pl.String()))
    return changes(frame, EVENTS).select("time", "flow", "stream", "event", "detail").rows()


def test_each_change_is_reported_once_for_each_stream() -> None:
    found = sampled(
        [
            (10, "a", 0, "open", "STARTUP"),
            (10, "a", 1, "open", "STARTUP"),
            (20, "a", 0, "recovery", "STARTUP"),
            (20, "a", 1, "open", "DRAIN"),
            (30, "a", 0, "open", "STARTUP"),
        ]
    )
    assert found == [
        (10, "a", 0, "phase", "STARTUP"),
        (10, "a", 1, "phase", "STARTUP"),
        (20, "a", 0, "state", "recovery"),
        (20, "a", 1, "phase", "DRAIN"),
        (30, "a", 0, "state", "open"),
    ]


def test_a_control_without_phases_has_only_states() -> None:
    assert sampled([(10, "a", 0, "open", None), (20, "a", 0, "loss", None)]) == [
        (20, "a", 0, "state", "loss")
    ]
    assert sampled([]) == []
