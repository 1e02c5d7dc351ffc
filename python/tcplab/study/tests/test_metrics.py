"""Metrics that a study keeps of a run."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tcplab.analysis.samples import Series
from tcplab.analysis.steady_state import Window
from tcplab.results import RunWriter
from tcplab.results.tests.synthetic import MS, SECOND, plan
from tcplab.study.metrics import drift, measure


def steps(*rates: float) -> Series:
    """One goodput a second, sampled ten times in it."""
    values = np.repeat(np.array(rates), 10)
    return Series(np.arange(1.0, len(values) + 1) * 1e8, values)


NINE = Window(0, 9e9, 0)


@pytest.mark.parametrize(
    ("rates", "grown"),
    [
        ((5, 5, 5, 5, 5, 5, 5, 5, 5), 0.0),
        ((10, 10, 10, 15, 15, 15, 20, 20, 20), 1.0),
        ((20, 20, 20, 15, 15, 15, 10, 10, 10), -0.5),
        ((10, 10, 10, 0, 90, 0, 10, 10, 10), 0.0),
        ((8, 10, 12, 1, 1, 1, 12, 9, 24), 0.5),
        ((10, 10, 10, 5, 5, 5, 0, 0, 0), -1.0),
    ],
)
def test_drift_is_the_growth_from_the_first_to_the_last_third(rates: tuple[float, ...], grown: float) -> None:
    assert drift(steps(*rates), NINE) == pytest.approx(grown)


def test_drift_is_of_the_steady_state_alone() -> None:
    rising = steps(1, 2, 3, 10, 10, 10, 15, 15, 15, 30, 30, 30, 99)
    assert drift(rising, Window(3e9, 12e9, 3e9)) == pytest.approx(2.0)


def test_a_shorter_last_interval_counts_by_its_length() -> None:
    """Of the last third, 10 Mbit/s for 2.9 s and nothing for 0.1 s."""
    goodput = Series(np.array([1.5, 3, 4.5, 6, 8.9, 9]) * 1e9, np.array([10.0, 10, 10, 10, 10, 0]))
    assert drift(goodput, NINE) == pytest.approx(2.9 / 3 - 1)


def test_drift_from_nothing_is_not_known() -> None:
    assert math.isnan(drift(steps(0, 0, 0, 5, 5, 5, 5, 5, 5), NINE))
    assert math.isnan(drift(steps(1, 2, 3), None))
    assert math.isnan(drift(steps(1), NINE))


def test_what_limited_the_sender_is_of_the_steady_state(tmp_path: Path) -> None:
    """Two streams: after 2 s of warm-up one waits for the window a quarter of its time, one three."""
    made = plan({"one": "reno"}, seconds=6, streams=2, omit=2 * SECOND)
    time = np.arange(1, 61) * 100 * MS
    waited = np.where(time < 2 * SECOND, time, 2 * SECOND)
    common = {"time": time, "flow": ["one"] * 60, "busy_time": time, "sndbuf_limited": [0] * 60}
    sockets = [
        pl.DataFrame(
            {
                **common,
                "stream": [stream] * 60,
                "min_rtt": [(40 - stream) * MS] * 60,
                "rwnd_limited": (waited + (time - waited) * share).astype(np.int64),
            }
        )
        for stream, share in enumerate((0.25, 0.75))
    ]
    intervals = {"time": time, "flow": ["one"] * 60, "stream": [0] * 60, "duration": [100 * MS] * 60}
    writer = RunWriter(tmp_path, made)
    writer.write_table("sockets", pl.concat(sockets))
    writer.write_table("intervals", pl.DataFrame({**intervals, "goodput": [5e6] * 60}))
    (row, _) = measure(tmp_path, 1, made)
    assert row["rtt_min"] == 39 * MS
    assert row["rwnd_limited"] == pytest.approx(0.5, abs=0.001)
    assert row["sndbuf_limited"] == 0
    assert row["drift"] == 0


def test_each_end_of_a_request_flow_has_counters_of_its_own(tmp_path: Path) -> None:
    """After 2 s of warm-up the client is busy for 3 s and waits for the window for 1 s of them; the server,
    busy for 1 s before, is so for 1 s and does not wait."""
    made = plan({"one": "reno"}, seconds=6, omit=2 * SECOND)
    made["flows"][0]["kind"] = "request"
    ends = (("one-a", 4, 4), ("one-a", 7, 5), ("one-b", 1, 0), ("one-b", 2, 0))
    rows = [
        {"time": (2 + 3 * (at % 2)) * SECOND, "flow": "one", "stream": 0, "node": node,
         "busy_time": busy * SECOND, "rwnd_limited": waited * SECOND, "sndbuf_limited": 0}
        for at, (node, busy, waited) in enumerate(ends)
    ]  # fmt: skip
    span = {"flow": "one", "kind": "request", "from": "one-a", "to": "one-b", "start": 0, "end": 6 * SECOND}
    writer = RunWriter(tmp_path, made)
    writer.write_table("sockets", pl.DataFrame(rows))
    writer.write_table("flows", pl.DataFrame([{**span, "stream": 0}]))
    (row, _) = measure(tmp_path, 1, made)
    assert row["rwnd_limited"] == pytest.approx(1 / 4)


def test_marks_are_those_that_the_peers_of_all_streams_reported(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=2, streams=2)
    rows = [
        {"time": at * SECOND, "flow": "one", "stream": stream, "node": "one-a", "delivered_ce": at * marks}
        for at in (1, 2)
        for stream, marks in ((0, 10), (1, 7))
    ]
    span = {"flow": "one", "kind": "tcp", "from": "one-a", "to": "one-b", "start": 0, "end": 2 * SECOND}
    writer = RunWriter(tmp_path, made)
    writer.write_table("sockets", pl.DataFrame(rows))
    writer.write_table(
        "flows", pl.DataFrame([{**span, "stream": stream, "retransmits": 3} for stream in (0, 1)])
    )
    (row, _) = measure(tmp_path, 1, made)
    assert (row["marked"], row["retransmits"]) == (34, 6)
    assert row["limited_by"] == "marks"


def test_the_minimum_rtt_of_probes_and_requests_is_that_of_what_they_measured(tmp_path: Path) -> None:
    """The messages of a request flow take longer than its packets. Of all flows, it is the least."""
    made = plan({"bulk": "reno", "web": "reno", "probe": "none"}, shared=True, seconds=4)
    made["flows"][1].update(kind="request", request=100, response=1000)
    made["flows"][2].update(kind="ping", cc=None, interval=SECOND, payload=56, count=None)
    writer = RunWriter(tmp_path, made)
    flows = [
        {
            "flow": name,
            "stream": 0,
            "kind": kind,
            "from": "client",
            "to": "server",
            "start": 0,
            "end": 4 * SECOND,
        }
        for name, kind in (("bulk", "tcp"), ("web", "request"), ("probe", "ping"))
    ]
    writer.write_table("flows", pl.DataFrame(flows))
    sockets = [
        {"time": SECOND, "flow": name, "stream": 0, "node": "client", "min_rtt": rtt * MS}
        for name, rtt in (("bulk", 40), ("web", 41))
    ]
    writer.write_table("sockets", pl.DataFrame(sockets))
    common = {"flow": "web", "client": 0, "size": 100, "count": 1}
    echoes = [{**common, "time": at, "rtt": (90 - at) * MS} for at in (0, 1)]
    writer.write_table("echoes", pl.DataFrame(echoes))
    pings = [
        {"time": at, "flow": "probe", "stream": 0, "rtt": (30 + at) * MS, "lost": False} for at in (0, 1)
    ]
    writer.write_table("pings", pl.DataFrame(pings))
    found = {row["flow"]: row["rtt_min"] for row in measure(tmp_path, 1, made)}
    assert found == {"bulk": 40 * MS, "web": 89 * MS, "probe": 30 * MS, None: 30 * MS}
