"""The two legs of connections that an accelerator has split, and what it holds between them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from tcplab.analysis.samples import Samples
from tcplab.figures.decimate import decimate
from tcplab.figures.model import Figure, Line, Panel
from tcplab.figures.palette import Style
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import end_of, moments
from tcplab.results.run import Run

_MAX_FLOWS = 8
# Payload arrives in bursts: rates over a shorter time are noise.
_GOODPUT_INTERVAL = 200_000_000
_LEGS = (("client", "towards the client", "solid"), ("server", "towards the server", "dash"))
_PANELS = (
    ("goodput", "Goodput", "Mbit/s", 1e6),
    ("exposed", "Held", "kB", 1e3),
    ("unsent", "Waiting to be sent", "kB", 1e3),
    ("cwnd", "Congestion window", "segments", 1.0),
    ("srtt", "RTT", "ms", 1e6),
    ("retransmits", "Retransmitted so far", "segments", 1.0),
)


def legs(run: Run, repetition: int | None = None) -> Figure:
    """Goodput, window, RTT and retransmissions of each leg, and the payload held; no panels without any.

    One repetition is shown, the first unless another is given; of a flow its first stream, of many flows the
    first eight.
    """
    samples = Samples.of(run, run.repetitions[0] if repetition is None else repetition)
    source = Source(samples, flow_styles(samples.flow_names))
    rows = {flow: found for flow in samples.flow_names if len(found := samples.legs(flow))}
    shown = dict(list(rows.items())[:_MAX_FLOWS])
    return Figure(
        name="legs",
        title=run.name,
        x_label="Time (s)",
        panels=tuple(
            Panel(title, unit, tuple(_lines(source, shown, column, divisor)), height=0.8)
            for column, title, unit, divisor in (_PANELS if shown else ())
        ),
        x_range=(0.0, end_of([source])),
        moments=tuple(moments([source])),
        notes=(
            "Solid: the leg towards the end that opened the connection; dashed: towards the other. "
            "Held data have been acknowledged to one end and not yet by the other: they are lost if the "
            "accelerator dies. Those that wait have come by the other leg and not left by this one.",
        ),
    )


def _with_goodput(leg: pl.DataFrame) -> pl.DataFrame:
    """With the payload that the leg has carried per second since _GOODPUT_INTERVAL before, bit/s."""
    carried = (pl.col("bytes_received") + pl.col("bytes_acked")).cast(pl.Float64)
    bins = (pl.col("time") // _GOODPUT_INTERVAL).alias("bin")
    ends = leg.group_by(bins, maintain_order=True).agg(pl.col("time").last(), carried.last().alias("carried"))
    rates = ends.select("time", goodput=pl.col("carried").diff() * 8e9 / pl.col("time").diff())
    return leg.join(rates, on="time", how="left")


def _lines(source: Source, rows: dict[str, pl.DataFrame], column: str, divisor: float) -> Iterator[Line]:
    for flow, found in rows.items():
        for leg, words, dash in _LEGS:
            part = _with_goodput(found.filter(pl.col("leg") == leg)).drop_nulls(column)
            x, y = decimate(part["time"].to_numpy() / 1e9, part[column].to_numpy() / divisor)
            yield Line(flow, x, y, Style(source.styles[flow].color, dash), f"{source.label(flow)} {words}")
