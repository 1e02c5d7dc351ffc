"""The figure of failures: links, routing, paths and what the flow felt, on one time axis."""

from pathlib import Path
from typing import Any

import pytest

from tcplab.analysis.tests.test_outages import change, finished, pings
from tcplab.figures.runs.failures import failures
from tcplab.results.tests.synthetic import MS

CUT = [change(5000, "forward: down"), change(5000, "backward: down"), change(9000, "forward: up"),
       change(9000, "backward: up")]  # fmt: skip
NOTICED = {"time": 5001 * MS, "event": "adjacency", "link": "path", "detail": "Full -> Deleted (KillNbr)"}


def flow() -> dict[str, Any]:
    return {
        "flow": "one",
        "stream": 0,
        "from": "one-a",
        "to": "one-b",
        "kind": "ping",
        "start": 0,
        "end": 20_000 * MS,
    }


def test_a_failing_link_is_shown_with_what_followed(tmp_path: Path) -> None:
    routes = [
        {"time": at * MS, "node": "r", "prefix": "10.0.0.0/24", "next_hops": None, "protocol": "ospf"}
        for at in (0, 5010)
    ]
    tables = {"events": [*CUT, NOTICED], "pings": pings(range(50, 56)), "routes": routes, "flows": [flow()]}
    figure = failures(finished(tmp_path, **tables))
    panels = {panel.title: panel for panel in figure.panels}
    (link,) = panels["Links"].strips
    assert [(segment.start, segment.end, segment.label) for segment in link.segments] == [
        (0, 5, "up"),
        (5, 9, "down"),
        (9, pytest.approx(20), "up"),
    ]
    noticed, moved = panels["Routing"].strips
    assert list(noticed.marks[0].x) == [5.001]
    assert list(moved.marks[0].x) == [5.01]
    assert "RTT" in panels


def test_without_a_failure_there_is_no_figure(tmp_path: Path) -> None:
    figure = failures(finished(tmp_path, pings=pings(range(0)), flows=[flow()]))
    assert not figure.panels
