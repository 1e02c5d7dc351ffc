"""Outages from arrivals: the gap that overlaps a failure counts, others do not."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.analysis.outages import Outage, outages
from tcplab.results import Run, RunWriter, load
from tcplab.results.tests.synthetic import MS, plan
from tcplab.results.writer import create_result_dir, run_dir_of


def finished(path: Path, **tables: list[dict[str, Any]]) -> Run:
    create_result_dir(path, "tcplab: 1\nname: t\n")
    made: Any = {**plan({"one": "reno"}), "duration": 20_000 * MS}
    writer = RunWriter(run_dir_of(path, 1), made, engine="kernel", repetition=1)
    for name, rows in tables.items():
        writer.write_table(name, pl.DataFrame(rows, infer_schema_length=None))
    writer.finish("done", wall_duration=0.1)
    return load(path)


def change(at: int, detail: str) -> Any:
    return {"time": at * MS, "event": "link_change", "link": "path", "detail": detail}


DOWN = [change(5000, "forward: down"), change(5000, "backward: down"), change(9000, "forward: up")]


def pings(missing: range) -> list[dict[str, Any]]:
    return [
        {"time": n * 100 * MS, "flow": "one", "stream": 0, "seq": n, "rtt": None if n in missing else 10 * MS,
         "lost": n in missing}
        for n in range(200)
    ]  # fmt: skip


def test_probes_tell_the_outage_and_what_was_lost(tmp_path: Path) -> None:
    routes = [
        {"time": at * MS, "node": "r", "prefix": "10.0.0.0/24", "protocol": "ospf"}
        for at in (0, 5010, 5600, 9500)
    ]
    found = outages(finished(tmp_path, events=DOWN, pings=pings(range(50, 56)), routes=routes))
    (one,) = found
    assert one == Outage(
        1,
        "path",
        5000 * MS,
        "one",
        outage=700 * MS,
        resolution=100 * MS,
        # The probe of 5.6 s is answered 10 ms later.
        restored=610 * MS,
        lost=6,
        # Six of ten a second, twice.
        fib=1200 * MS,
        reordered=0,
        routes=600 * MS,
        before=one.before,
        after=one.after,
    )


def test_a_gap_before_a_failure_is_none_of_it(tmp_path: Path) -> None:
    (found,) = outages(finished(tmp_path, events=DOWN, pings=pings(range(10, 30))))
    assert (found.outage, found.lost, found.routes) == (100 * MS, 0, None)


def test_without_an_arrival_the_outage_lasts_as_long_as_the_failure(tmp_path: Path) -> None:
    (found,) = outages(finished(tmp_path, events=DOWN, pings=pings(range(50, 200))))
    assert found.outage == pytest.approx(4090 * MS)


def test_goodput_tells_when_a_flow_has_recovered(tmp_path: Path) -> None:
    def received(at: int) -> int:
        return 0 if 50 <= at < 60 else 400 if 60 <= at < 80 else 1000

    intervals = [
        {
            "time": (n + 1) * 100 * MS,
            "duration": 100 * MS,
            "flow": "one",
            "stream": 0,
            "bytes_received": received(n),
            "bytes_sent": 0,
            "goodput": 0.0,
        }
        for n in range(200)
    ]
    (found,) = outages(finished(tmp_path, events=DOWN, intervals=intervals))
    assert (found.outage, found.resolution) == (1000 * MS, 100 * MS)
    # 90 % of it over 2 s: all but a sixth of the span is after 8 s.
    assert found.recovered is not None
    assert 2_600 * MS <= found.recovered <= 2_800 * MS
