"""Changes of state and phase, as the samples of sockets show them.

The kernel notifies nobody when they happen. So a change bears the time of the first sample that shows it, and
what came and went between two samples is not seen.
"""

from __future__ import annotations

import polars as pl

# The initial state of a connection; the simulator reports no change to it either.
_FIRST_STATE = "open"


def changes(sockets: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    """Events of a `sockets` table, in the columns of `like`, by time."""
    stream = ["flow", "stream"]
    ordered = sockets.sort(*stream, "time").with_columns(
        pl.col("state").shift(1).over(stream).fill_null(_FIRST_STATE).alias("_state"),
        pl.col("phase").shift(1).over(stream).alias("_phase"),
    )
    found = [
        ordered.filter(pl.col(event).is_not_null() & pl.col(event).ne_missing(pl.col(f"_{event}"))).select(
            "time",
            *stream,
            pl.lit(None, pl.String()).alias("link"),
            pl.lit(event).alias("event"),
            pl.col(event).cast(pl.String()).alias("detail"),
        )
        for event in ("state", "phase")
    ]
    return pl.concat(found).select(like.columns).cast(like.schema).sort("time", maintain_order=True)
