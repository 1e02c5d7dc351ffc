"""The part of a report that is about echoes: tables, figures, and what the steps in them come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcplab.analysis.echo import Echoes, Path, Step, echoes_of, explain, tables
from tcplab.analysis.echo.table import Table
from tcplab.figures import echo as drawn
from tcplab.figures.model import Figure
from tcplab.plan.paths import base_rtt, nominal_rate, path, settings
from tcplab.plan.types import Flow, Plan
from tcplab.present.text_table import Grid, Heading
from tcplab.quantities import plural
from tcplab.results.run import Run

# Ethernet 14, TCP 20; timestamps 12; the IP header by version.
_HEADERS, _TIMESTAMPS, _IP = 34, 12, {4: 20, 6: 40}


@dataclass(frozen=True)
class EchoFlow:
    """One echo flow of a run."""

    name: str
    echoes: Echoes
    grids: tuple[Grid, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class EchoPart:
    """The report's section on echoes."""

    flows: tuple[EchoFlow, ...]
    figures: tuple[tuple[str, Figure], ...]
    """A title and a figure each."""


def echo_part(run: Run) -> EchoPart | None:
    """The part of a run's report; none if it has no echo flow with results."""
    flows = echo_flows(run)
    if not flows:
        return None
    return EchoPart(tuple(flows), tuple(echo_figures([flow.echoes for flow in flows], run.name)))


def part_of(echoes: Echoes, steps: Sequence[Step], name: str) -> EchoPart:
    """The part about one test, whatever it ran between."""
    echoes = replace(echoes, label=plural(echoes.clients, "client"))
    flow = EchoFlow(name, echoes, tuple(_grid(table) for table in tables(echoes)), tuple(steps))
    return EchoPart((flow,), tuple(echo_figures([echoes], name)))


def compared_part(runs: Sequence[Run], labels: Sequence[str]) -> EchoPart | None:
    """The echoes of several runs in the same figures; none if no run has any."""
    flows = []
    for run, label in zip(runs, labels, strict=True):
        several = len(echo_flows(run)) > 1
        for flow in echo_flows(run):
            own = f"{label}: {flow.echoes.label}" if several else label
            flows.append(replace(flow, echoes=replace(flow.echoes, label=own)))
    if not flows:
        return None
    figures = echo_figures([flow.echoes for flow in flows], "echo")
    return EchoPart(tuple(flows), tuple(figures))


def echo_flows(run: Run) -> list[EchoFlow]:
    """The echo flows of a run, all repetitions pooled."""
    flows = []
    for flow, echoes in echoes_of(run):
        grids = tuple(_grid(table) for table in tables(echoes))
        flows.append(EchoFlow(flow["name"], echoes, grids, tuple(explain(echoes, way(run.plan, flow)))))
    return flows


def echo_figures(tests: Sequence[Echoes], title: str) -> list[tuple[str, Figure]]:
    """Every figure of echoes that has something to show."""
    figures = [
        ("Round-trip time by message size", drawn.by_size(tests, title)),
        ("Capacity: round-trip time by number of clients", drawn.capacity(tests, title)),
        ("First round trips of each connection at some sizes", drawn.first_trips(tests, title)),
        ("Distribution of round-trip times at some sizes", drawn.distributions(tests, title)),
    ]
    return [(name, figure) for name, figure in figures if figure.panels]


def way(plan: Plan, flow: Flow) -> Path:
    """A flow's path, from its plan."""
    sender, receiver = flow.get("sender") or {}, flow.get("receiver") or {}
    options = _TIMESTAMPS if sender.get("timestamps", True) and receiver.get("timestamps", True) else 0
    mss = min(int(end["mss"]) for end in (sender, receiver)) - options if sender and receiver else None

    def minimum(start: str, end: str) -> float | None:
        rates = [nominal_rate(settings(plan, hop)) for hop in path(plan, start, end)]
        return min((rate for rate in rates if rate is not None), default=None)

    return Path(
        mss=mss,
        headers=_HEADERS + _IP[int(flow.get("ip", 4))] + options,
        initial_window=int(sender.get("initial_window", 10)),
        rate=minimum(flow["from"], flow["to"]),
        rate_back=minimum(flow["to"], flow["from"]),
        delay=base_rtt(plan, flow),
    )


def _grid(table: Table) -> Grid:
    headings = (Heading(table.heading, numeric=False), *(Heading(size, "B") for size in table.sizes))
    return Grid("", headings, tuple((name, *cells) for name, cells in table.rows))
