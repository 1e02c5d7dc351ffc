"""A summary's tables as text cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tcplab.analysis.estimate import Estimate
from tcplab.analysis.summaries import FlowSummary, LinkSummary, Summary
from tcplab.analysis.summaries import summary as summarised
from tcplab.present.echo_grids import echo_grids
from tcplab.present.remedy_grids import fetch_grid, leg_grid
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import (
    NONE,
    Scale,
    count_scale,
    index_scale,
    percent_scale,
    rate_scale,
    seconds_scale,
    time_scale,
)
from tcplab.results.run import Run

if TYPE_CHECKING:
    from rich.console import Group

_Scaler = Callable[[Iterable[float]], Scale]

# Figure, label, scale, whether its interval is shown, what it is.
_FLOW_COLUMNS: tuple[tuple[str, str, _Scaler, bool, str], ...] = (
    ("goodput", "Goodput", rate_scale, True, "Payload delivered in order to the receiving application"),
    ("retransmission_rate", "Retransmitted", percent_scale, True, "Retransmissions, of all segments sent"),
    ("loss_rate", "Lost", percent_scale, True, "Datagrams or probes that never arrived"),
    ("rtt_mean", "RTT mean", time_scale, True, "Smoothed round-trip time as the sender sees it"),
    ("rtt_p50", "RTT p50", time_scale, False, "Median"),
    ("rtt_p95", "RTT p95", time_scale, False, "95th percentile"),
    ("rtt_p99", "RTT p99", time_scale, False, "99th percentile"),
    (
        "queueing_delay",
        "Queueing",
        time_scale,
        True,
        "Mean wait of packets in the bottleneck's queue",
    ),
)
# Columns that a narrow terminal leaves out, the highest first.
_MINOR = {
    "rtt_p50": 9,
    "queueing_delay_p95": 9,
    "rtt_p99": 8,
    "lost_steady": 8,
    "rtt_p95": 7,
    "starvation": 7,
    "convergence": 6,
    "loss_rate": 4,
    "jain": 4,
    "drops_steady": 3,
    "retransmission_rate": 3,
    "queueing_delay": 2,
    "rtt_mean": 1,
}
_LINK_COLUMNS: tuple[tuple[str, str, _Scaler, bool, str], ...] = (
    ("utilization", "Utilization", percent_scale, True, "Frame bytes carried, of what the rate allows"),
    ("queueing_delay", "Queueing mean", time_scale, True, "Mean wait of packets in its queue"),
    (
        "queueing_delay_p95",
        "Queueing p95",
        time_scale,
        False,
        "95th percentile of the means by sample period",
    ),
    ("drops_steady", "Dropped", count_scale, False, "By its queue, a policer, or a link that was down"),
    ("lost_steady", "Lost", count_scale, False, "Packets the impairments lost"),
    (
        "jain",
        "Jain",
        index_scale,
        True,
        "Jain's fairness index of the goodput of those who share it; 1 is equal",
    ),
    (
        "convergence",
        "Converged",
        seconds_scale,
        False,
        "From the last start until all stay near the fair share",
    ),
    (
        "starvation",
        "Starved",
        seconds_scale,
        False,
        "Time with less than 5 % of the fair share, added up",
    ),
)


@dataclass(frozen=True)
class SummaryTable(Summary):
    """The summary of a run, for the command line and the report alike."""

    def grids(self, *, echoes: bool = True) -> list[Grid]:
        """The tables as text cells, with or without those of echoes."""
        grids = (
            flow_grid(self),
            link_grid(self),
            outage_grid(self),
            leg_grid(self.legs),
            fetch_grid(self.fetches),
        )
        return [*(grid for grid in grids if grid.rows), *(echo_grids(self.echoes) if echoes else ())]

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """The tables and notes as plain text."""
        return (
            "\n\n".join([*(grid.to_text() for grid in self.grids()), "\n".join(self.notes)]).rstrip() + "\n"
        )

    def to_rich(self) -> Group:
        """The tables and notes for a rich console."""
        from rich.console import Group
        from rich.text import Text

        notes = [Text(note, style="dim") for note in self.notes]
        return Group(*(grid.to_rich() for grid in self.grids()), *notes)


def summary(run: Run, *, omit: int | str | None = None, level: float = 0.95) -> SummaryTable:
    """A run's steady state, ready to print; see `tcplab.analysis.summaries.summary`."""
    found = summarised(run, omit=omit, level=level)
    return SummaryTable(**{field.name: getattr(found, field.name) for field in fields(found)})


def flow_grid(table: Summary) -> Grid:
    """One row per flow. Columns that hold nothing are left out."""
    rows = table.flows
    columns = [column for column in _FLOW_COLUMNS if any(row.figures[column[0]].known for row in rows)]
    scales = _shared_scales(columns, [row.figures for row in rows])
    warm_up = seconds_scale(())
    headings = [Heading("Flow", numeric=False), Heading("CC", numeric=False, about="Congestion control")]
    headings += [
        Heading(label, scales[key].unit, about=about, minor=_MINOR.get(key, 0))
        for key, label, _, _, about in columns
    ]
    headings += [
        Heading("Warm-up", warm_up.unit, about="Left out at the flow's start", minor=10),
        Heading("n", about="Repetitions", minor=6),
        Heading("Grade", numeric=False, about="Reliability of the goodput", minor=5),
    ]
    return Grid(
        title="Flows, steady state",
        headings=tuple(headings),
        rows=tuple(
            (
                row.flow,
                control_text(row),
                *_cells(columns, scales, row.figures),
                _range(warm_up, row.warm_up),
                str(row.n),
                row.figures["goodput"].grade
                if row.figures["goodput"].known
                else row.figures["rtt_mean"].grade,
            )
            for row in rows
        ),
    )


def link_grid(table: Summary) -> Grid:
    """One row per bottleneck. Columns that hold nothing are left out."""
    rows: tuple[LinkSummary, ...] = table.links
    columns = [column for column in _LINK_COLUMNS if any(row.figures[column[0]].known for row in rows)]
    scales = _shared_scales(columns, [row.figures for row in rows])
    headings = [Heading("Bottleneck", numeric=False), Heading("Rate", minor=5)]
    headings += [
        Heading(label, scales[key].unit, about=about, minor=_MINOR.get(key, 0))
        for key, label, _, _, about in columns
    ]
    headings += [Heading("Flows", numeric=False)]
    return Grid(
        title="Bottlenecks, steady state",
        headings=tuple(headings),
        rows=tuple(
            (row.label, row.rate_words, *_cells(columns, scales, row.figures), _names(row.flows))
            for row in rows
        ),
    )


# Of the table of failures: what a narrow terminal leaves out first.
_SPARED = {"Retransmitted": 9, "Reordered": 8, "Undone": 7, "FIB": 6, "Detected": 3, "RTOs": 2}


def outage_grid(table: Summary) -> Grid:
    """One row per failure of a link and flow. Columns that hold nothing are left out."""
    rows = table.outages
    # To the millisecond: a router that loses its carrier notices after two.
    scale = Scale("s", 1e9, 3)
    columns: list[tuple[Heading, list[str]]] = [
        (Heading("Failure", numeric=False), [one.link for one in rows]),
        (Heading("At", "s"), [scale.number(one.at) for one in rows]),
        (Heading("Flow", numeric=False), [one.flow for one in rows]),
        (
            Heading("Outage", "s", about="Longest time without an arrival, to the resolution beside it"),
            [f"{scale.number(one.outage)} ± {scale.number(one.resolution)}" for one in rows],
        ),
    ]
    # Heading, unit, its explanation, values: numbers of the unit, or times where it is s.
    further: tuple[tuple[str, str, str, list[int | None]], ...] = (
        (
            "Detected",
            "s",
            "From the failure to the first change of an adjacency or session",
            [one.detected for one in rows],
        ),
        (
            "Control plane",
            "s",
            "From the failure to the last change of a router's table",
            [one.routes for one in rows],
        ),
        ("Data plane", "s", "From the failure to the first arrival after it", [one.restored for one in rows]),
        (
            "Lost",
            "packets",
            "Probes, datagrams, or packets with data that were lost until the link changed again",
            [one.lost for one in rows],
        ),
        (
            "Retransmitted",
            "segments",
            "Segments that TCP retransmitted until the link changed again",
            [one.retransmitted for one in rows],
        ),
        (
            "FIB",
            "s",
            "Convergence of the tables by a probe at a constant rate: 2 × lost / rate",  # noqa: RUF001
            [one.fib for one in rows],
        ),
        ("Reordered", "packets", "Arrivals after a later packet", [one.reordered for one in rows]),
        ("RTOs", "", "Retransmission timeouts until the link changed again", [one.rtos for one in rows]),
        ("Undone", "", "Window reductions that TCP took back", [one.undone for one in rows]),
        (
            "Recovered",
            "s",
            "From the failure until goodput is 90 % of what it was",
            [one.recovered for one in rows],
        ),
    )
    for label, unit, about, values in further:
        if any(value is not None for value in values):
            cells = [
                NONE if value is None else scale.number(value) if unit == "s" else str(value)
                for value in values
            ]
            columns.append((Heading(label, unit, about=about, minor=_SPARED.get(label, 0)), cells))
    if any(one.before for one in rows):
        columns.append((Heading("Path before", numeric=False, minor=5), [one.before or NONE for one in rows]))
        columns.append((Heading("after", numeric=False, minor=4), [one.after or NONE for one in rows]))
    return Grid(
        title="Failures",
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
    )


def control_text(row: FlowSummary) -> str:
    """The flow's control, or what it is when it has none."""
    what = row.cc or row.kind or NONE
    return f"{what} × {row.streams}" if row.streams > 1 else what  # noqa: RUF001


def _shared_scales(
    columns: list[tuple[str, str, _Scaler, bool, str]], figures: list[dict[str, Estimate]]
) -> dict[str, Scale]:
    # All RTT columns share one scale, so that they can be compared at a glance.
    def family(key: str) -> list[str]:
        return [other for other, *_ in columns if other.startswith("rtt")] if key.startswith("rtt") else [key]

    return {
        key: scaler([row[name].value for row in figures for name in family(key)])
        for key, _, scaler, _, _ in columns
    }


def _cells(
    columns: list[tuple[str, str, _Scaler, bool, str]], scales: dict[str, Scale], figures: dict[str, Estimate]
) -> list[str]:
    return [
        scales[key].measured(figures[key].value, figures[key].interval.half_width)
        if interval
        else scales[key].number(figures[key].value)
        for key, _, _, interval, _ in columns
    ]


def _range(scale: Scale, values: tuple[float, ...]) -> str:
    low, high = scale.number(min(values)), scale.number(max(values))
    return low if low == high or math.isnan(min(values)) else f"{low} to {high}"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{len(names)} flows"
