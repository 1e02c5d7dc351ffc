"""Failures of links on one time axis: links, routing events, paths of the flows, and what TCP felt."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl

from tcplab.analysis.forwarding import Forwarding
from tcplab.analysis.outages import outages
from tcplab.analysis.samples import Samples
from tcplab.figures.model import Figure, Marks, Panel, Segment, Strip
from tcplab.figures.palette import Style
from tcplab.figures.runs.panels import goodput_panel, rtt_panel
from tcplab.figures.runs.source import Source, flow_styles
from tcplab.figures.runs.timeseries import MAX_LINES, end_of, moments
from tcplab.results.run import Run

_GREY = Style("#666666", "solid")
_UP, _DOWN = 0.12, 0.75


def failures(run: Run, repetition: int | None = None) -> Figure:
    """Links, routing events, paths, goodput, RTT and timeouts over time; without panels where no link fails.

    One repetition is shown, the first unless another is given. Of more than 8 flows it is the first ones.
    """
    samples = Samples.of(run, run.repetitions[0] if repetition is None else repetition)
    source = Source(samples, flow_styles(samples.flow_names))
    source = source.only(source.flows[:MAX_LINES])
    failed = [one for one in outages(run) if one.repetition == samples.repetition]
    end = end_of([source])
    panels: list[Panel] = []
    if failed:
        events = samples.table("events").sort("time")
        routes = samples.table("routes").sort("time", maintain_order=True)
        panels = [
            _strips("Links", _links(list(dict.fromkeys(one.link for one in failed)), events, end)),
            _strips("Routing", _routing(events, routes)),
            _strips("Paths", _paths(source, Forwarding(run.plan, routes), end) if len(routes) else []),
            goodput_panel([source]),
            rtt_panel([source]),
            _strips("Timeouts", _timeouts(source, events)),
        ]
    return Figure(
        name="failures",
        title=run.name,
        x_label="Time (s)",
        panels=tuple(panel for panel in panels if panel.lines or panel.strips),
        x_range=(0.0, end),
        moments=tuple(moments([source])) if failed else (),
        notes=("In the strips: a link that is down is dark; of routing, ticks are changes of adjacencies and "
               "sessions, crosses changes of routers' tables. Of flows, crosses are retransmission timeouts, "
               "ticks window reductions that TCP took back.",) if failed else (),
    )  # fmt: skip


def _strips(title: str, strips: list[Strip]) -> Panel:
    return Panel(title, "", strips=tuple(strips), height=0.12 + 0.11 * len(strips))


def _links(names: list[str], events: pl.DataFrame, end: float) -> list[Strip]:
    strips = []
    for name in names:
        changes = events.filter(pl.col("event") == "link_change", pl.col("link") == name)
        down: dict[str, bool] = {}
        times, states = [0.0], [False]
        for time, detail in changes.select("time", "detail").iter_rows():
            direction, _, words = detail.partition(": ")
            listed = words.split(", ")
            # Loss that is set to all and back has no other word.
            toggles = "loss" in listed and not {"down", "up"} & set(listed)
            down[direction] = not down.get(direction, False) if toggles else "down" in listed
            if states[-1] != any(down.values()):
                times.append(time / 1e9)
                states.append(any(down.values()))
        segments = [
            Segment(start, stop, "down" if state else "up", _DOWN if state else _UP)
            for (start, stop), state in zip(pairwise([*times, end]), states, strict=True)
        ]
        strips.append(Strip(name, _GREY, tuple(segments)))
    return strips


def _routing(events: pl.DataFrame, routes: pl.DataFrame) -> list[Strip]:
    def seconds(rows: pl.DataFrame) -> np.ndarray:
        return rows["time"].unique(maintain_order=True).to_numpy() / 1e9

    noticed = events.filter(pl.col("event").is_in(("adjacency", "session")))
    moved = routes.filter(pl.col("time") > 0)
    found = [
        ("neighbours", Marks("adjacency or session", seconds(noticed), "tick"), noticed),
        ("tables", Marks("route", seconds(moved), "cross"), moved),
    ]
    return [Strip(key, _GREY, (), (marks,)) for key, marks, rows in found if len(rows)]


def _paths(source: Source, forwarding: Forwarding, end: float) -> list[Strip]:
    strips = []
    for flow in source.flows:
        planned = source.samples.plan_flow(flow)
        if not planned:
            continue
        times, paths = [0.0], [forwarding.path(planned, 0)]
        for time in forwarding.changes():
            path = forwarding.path(planned, time)
            if path != paths[-1]:
                times.append(time / 1e9)
                paths.append(path)
        names = list(dict.fromkeys(paths))
        shades = dict(zip(names, np.linspace(0.15, 0.6, max(len(names), 2)), strict=False))
        segments = [
            Segment(start, stop, path, float(shades[path]))
            for (start, stop), path in zip(pairwise([*times, max(end, times[-1])]), paths, strict=True)
        ]
        strips.append(Strip(source.label(flow), source.styles[flow], tuple(segments)))
    return strips


def _timeouts(source: Source, events: pl.DataFrame) -> list[Strip]:
    strips = []
    for flow in source.flows:
        own = events.filter(pl.col("flow") == flow)
        marks = tuple(
            Marks(label, rows["time"].to_numpy() / 1e9, symbol)
            for label, event, symbol in (("timeout", "rto", "cross"), ("undone", "undo", "tick"))
            if len(rows := own.filter(pl.col("event") == event))
        )
        if marks:
            strips.append(Strip(source.label(flow), source.styles[flow], (), marks))
    return strips
