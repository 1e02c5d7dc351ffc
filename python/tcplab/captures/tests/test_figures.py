"""Figures of captures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcplab.captures.figures import KINDS, figures, interval
from tcplab.captures.packets import follow
from tcplab.captures.sequence_figure import bars
from tcplab.captures.summary import summarise
from tcplab.figures import draw_matplotlib as printed
from tcplab.figures import draw_plotly as interactive
from tcplab.figures.model import Figure


def made(capture: Path, numbers: list[int] | None = None) -> dict[str, Figure]:
    summary = summarise(capture)
    flows = [flow for flow in summary.flows if numbers is None or flow.number in numbers]
    packets, _ = follow(capture, [flow.number for flow in flows])
    return {figure.name: figure for figure in figures("all", flows, packets, summary.facts["first"])}


def test_every_kind_is_drawn_by_both_back_ends(lossy: Path) -> None:
    for numbers in ([1], None):
        drawn = made(lossy / "left-path.pcapng", numbers)
        assert set(KINDS) <= set(drawn)
        for figure in drawn.values():
            assert interactive.draw(figure).data
            assert printed.draw(figure).axes


def test_the_sequence_graph_shows_data_acks_sacks_and_what_was_retransmitted(lossy: Path) -> None:
    (panel,) = made(lossy / "left-path.pcapng", [1])["sequence"].panels
    assert [line.key for line in panel.lines] == [
        "sent",
        "acknowledged",
        "edge of the receiver's window",
        "SACK",
    ]
    assert "retransmitted" in [points.key for points in panel.points]
    flow = summarise(lossy / "left-path.pcapng").flow(1).halves[0].tcp
    assert flow is not None
    again = next(points for points in panel.points if points.key == "retransmitted")
    assert len(again.x) == flow.retransmissions


def test_throughput_adds_up_to_what_was_sent(lossy: Path) -> None:
    figure = made(lossy / "left-path.pcapng", [1])["throughput"]
    goodput = next(line for line in figure.panels[0].lines if line.key == "goodput")
    every = goodput.x[1] - goodput.x[0]
    half = summarise(lossy / "left-path.pcapng").flow(1).halves[0].tcp
    assert half is not None
    assert goodput.y.sum() * 1e6 * every / 8 == pytest.approx(half.unique_bytes, rel=1e-9)


def test_merged_bars_lose_no_extreme() -> None:
    rng = np.random.default_rng(1)
    x = np.sort(rng.random(50_000))
    low = rng.random(50_000)
    high = low + 0.1
    _, y = bars(x, low, high, 500)
    assert len(y) <= 1500
    assert (np.nanmin(y), np.nanmax(y)) == (low.min(), high.max())


def test_intervals_are_round() -> None:
    assert interval(0) == 1_000_000
    assert interval(8_000_000_000) == 50_000_000
    assert interval(3600 * 10**9) == 20 * 10**9
