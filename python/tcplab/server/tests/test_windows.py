"""Windows of a run with millions of samples: bounded, with every extreme, read from a part of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import tcplab
from tcplab.plan.types import Plan
from tcplab.results import write_table
from tcplab.scenario import expand, load
from tcplab.server import curves

from .test_server import decoded

Array = NDArray[np.float64]
# A sample each millisecond of two flows, and a packet counted in the queue.
SAMPLES, STEP = 1_500_000, 1_000_000
FLOWS = ("first", "second")
SCENARIO = f"""tcplab: 1
name: long
network:
  path: {{rate: 10 Mbit/s, rtt: 20 ms, queue: 100 packets}}
flows:
  - {{name: first, kind: tcp, cc: cubic}}
  - {{name: second, kind: tcp, cc: cubic}}
duration: {SAMPLES // 1000} s
"""
# Values that one sample alone has.
SPIKES = {"first": {700_123: 900, 701_000: 1}, "second": {0: 800, SAMPLES - 1: 850}}


class Long:
    """The run, and what was put into it."""

    def __init__(self, run_dir: Path, plan: Plan) -> None:
        self.run_dir, self.plan = run_dir, plan
        random = np.random.default_rng(17)
        time = np.arange(SAMPLES, dtype=np.int64) * STEP
        self.times = time / 1e9
        self.cwnd = {flow: random.integers(100, 200, SAMPLES) for flow in FLOWS}
        for flow, spikes in SPIKES.items():
            self.cwnd[flow][list(spikes)] = list(spikes.values())
        self.queue = random.integers(0, 100, SAMPLES)
        sockets = pl.DataFrame(
            {
                "time": np.repeat(time, len(FLOWS)),
                "flow": list(FLOWS) * SAMPLES,
                "cwnd": np.column_stack([self.cwnd[flow] for flow in FLOWS]).ravel(),
            }
        )
        write_table(run_dir, "sockets", sockets.with_columns(stream=0, node=pl.lit("left")))
        queues = pl.DataFrame({"time": time, "packets": self.queue, "drops": np.arange(SAMPLES) // 1000})
        write_table(
            run_dir,
            "queues",
            queues.with_columns(
                link=pl.lit("path"),
                direction=pl.lit("forward"),
                marks=0,
                lost=0,
                sojourn=pl.lit(None, pl.Int64),
            ),
        )

    def window(self, start: float, end: float, points: int) -> dict[str, Any]:
        """The answer's header, and the points of each series."""
        data = curves.curves(
            self.run_dir,
            self.plan,
            panels=("cwnd", "queue"),
            start=round(start * 1e9),
            end=round(end * 1e9),
            points=points,
        )
        header, arrays = decoded(data)
        series = {
            about["label"]: (arrays[2 * n], arrays[2 * n + 1]) for n, about in enumerate(header["series"])
        }
        return {"bytes": len(data), "header": header, "series": series}

    def values(self, label: str) -> Array:
        """The values that were put in."""
        return np.asarray(self.queue if label == "path" else self.cwnd[label], dtype=np.float64)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Long:
    folder = tmp_path_factory.mktemp("long")
    (folder / "long.yaml").write_text(SCENARIO)
    run_dir = folder / "run-1"
    run_dir.mkdir()
    return Long(run_dir, expand(load(folder / "long.yaml")))


def bounded(answer: dict[str, Any], points: int) -> None:
    """Two values a stretch and series and one on either side, and as many marks as there may be."""
    for x, y in answer["series"].values():
        assert len(x) == len(y) <= 2 * points + 2
    assert sum(len(mark["times"]) for mark in answer["header"]["marks"]) <= curves.MAX_MARKS
    assert answer["bytes"] <= 3 * 2 * 8 * (2 * points + 2) + 32 * curves.MAX_MARKS + 4096


@pytest.mark.parametrize("points", [50, 1000, curves.MAX_POINTS])
def test_the_whole_run_is_as_large_as_the_screen_and_has_every_extreme(long: Long, points: int) -> None:
    answer = long.window(0, SAMPLES / 1000, points)
    bounded(answer, points)
    assert set(answer["series"]) == {*FLOWS, "path"}
    for label, (x, y) in answer["series"].items():
        stretches = np.array_split(long.values(label), points)
        for stretch, pair in zip(stretches, y.reshape(-1, 2), strict=True):
            assert sorted(pair) == [stretch.min(), stretch.max()], label
        assert (y.min(), y.max()) == (long.values(label).min(), long.values(label).max())
        assert np.all(np.diff(x) > 0)
    for flow, spikes in SPIKES.items():
        x, y = answer["series"][flow]
        for place, value in spikes.items():
            if value in (long.cwnd[flow].min(), long.cwnd[flow].max()):
                assert abs(x[np.flatnonzero(y == value)[0]] - place / 1000) <= SAMPLES / 1000 / points


def test_any_window_has_its_own_extremes_and_none_of_its_neighbours(long: Long) -> None:
    random = np.random.default_rng(5)
    for _ in range(25):
        length = 10 ** random.uniform(0, 3)
        start = random.uniform(0, SAMPLES / 1000 - length)
        points = int(random.integers(50, 1200))
        answer = long.window(start, start + length, points)
        bounded(answer, points)
        inside = (long.times >= start) & (long.times <= start + length)
        for label, (x, y) in answer["series"].items():
            shown = y[(x >= start) & (x <= start + length)]
            expected = long.values(label)[inside]
            assert (shown.min(), shown.max()) == (expected.min(), expected.max()), (
                label,
                start,
                length,
                points,
            )


def test_a_narrow_window_has_the_samples_themselves(long: Long) -> None:
    answer = long.window(700, 700.3, 1000)
    for label, (x, y) in answer["series"].items():
        inside = (x >= 700) & (x <= 700.3)
        assert np.array_equal(x[inside], long.times[700_000:700_301])
        assert np.array_equal(y[inside], long.values(label)[700_000:700_301])
        # Lines reach the edges.
        assert x[0] < 700 < 700.3 < x[-1]


def test_a_window_reads_no_more_of_the_file_than_it_takes(long: Long, tmp_path: Path) -> None:
    """Wherever the rest of the file cannot be read any more, the answer is the same."""
    start, end = 700.0, 730.0
    before = long.window(start, end, 400)
    damaged = 0
    for table in ("sockets", "queues"):
        file = long.run_dir / f"{table}.parquet"
        whole = file.read_bytes()
        parts = duckdb.execute(
            "select row_group_id, min(coalesce(dictionary_page_offset, data_page_offset)), "
            "sum(total_compressed_size), "
            "max(case when path_in_schema = 'time' then stats_min_value::bigint end), "
            "max(case when path_in_schema = 'time' then stats_max_value::bigint end) "
            f"from parquet_metadata('{file}') group by 1"
        ).fetchall()
        broken = bytearray(whole)
        for _, offset, size, first, last in parts:
            if last < (start - 2) * 1e9 or first > (end + 2) * 1e9:
                broken[offset : offset + size] = b"\xff" * size
                damaged += size
        (tmp_path / f"{table}.parquet").write_bytes(broken)
    assert damaged > 0
    copy = object.__new__(Long)
    copy.run_dir, copy.plan = tmp_path, long.plan
    after = copy.window(start, end, 400)
    for label, (x, y) in before["series"].items():
        assert np.array_equal(after["series"][label][0], x)
        assert np.array_equal(after["series"][label][1], y)
    with pytest.raises(Exception, match=r"."):
        copy.window(0, end, 400)


def test_of_requests_the_socket_is_shown_that_sends_most(tmp_path: Path) -> None:
    """As in the report: the server's window grows, the client's stays at 10 segments."""
    flow = {"name": "web", "kind": "request", "request": "100 B", "response": "1 MB"}
    path = {"rate": "50 Mbit/s", "rtt": "20 ms"}
    asked = {"tcplab": 1, "name": "web", "network": {"path": path}, "flows": [flow], "duration": "1 s"}
    run = tcplab.run(asked, output=tmp_path / "web")
    header, (_, shown) = decoded(curves.curves(run.run_dirs[1], run.plan, panels=("cwnd",)))
    assert [series["flow"] for series in header["series"]] == ["web"]
    assert np.array_equal(shown, run.sockets.filter(node="right")["cwnd"].to_numpy())
    assert shown.max() > run.sockets.filter(node="left")["cwnd"].to_numpy().max()


def test_a_run_whose_flows_end_early_is_shown_until_then(tmp_path: Path) -> None:
    flow = {"name": "bulk", "kind": "tcp", "bytes": "1 MB"}
    path = {"rate": "10 Mbit/s", "rtt": "20 ms"}
    asked = {"tcplab": 1, "name": "early", "network": {"path": path}, "flows": [flow]}
    asked["sample"] = {"sockets": "off"}
    for duration, shown in (("60 s", None), ("1500 ms", 1.5)):
        run = tcplab.run(asked | {"duration": duration}, output=tmp_path / duration)
        end = float(run.flows["end"].to_numpy().max()) / 1e9
        assert 0.8 < end < 1.1
        header, _ = decoded(curves.curves(run.run_dirs[1], run.plan, panels=("goodput", "cwnd")))
        assert header["duration"] == header["end"] == (shown or end)
        assert header["unsampled"] == {"cwnd": "sockets"}


def test_a_window_between_two_samples_has_the_lines_that_cross_it(tmp_path: Path) -> None:
    flows = [{"name": "bulk", "kind": "tcp"}, {"name": "ping", "kind": "ping", "interval": "2 s"}]
    asked = {
        "tcplab": 1,
        "name": "coarse",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": "20 packets"}},
        "flows": flows,
        "sample": {"flows": "1 s", "sockets": "1 s", "queues": "1 s"},
        "duration": "6 s",
    }
    run = tcplab.run(asked, output=tmp_path / "coarse")
    panels = ("goodput", "cwnd", "rtt", "queue")
    data = curves.curves(run.run_dirs[1], run.plan, panels=panels, start=2_400_000_000, end=2_600_000_000)
    header, arrays = decoded(data)
    assert [(one["panel"], one["label"]) for one in header["series"]] == [
        ("goodput", "bulk"),
        ("cwnd", "bulk"),
        ("rtt", "bulk"),
        ("queue", "path"),
        ("rtt", "ping"),
    ]
    for times in arrays[::2]:
        assert times[0] <= 2.4
        assert times[-1] >= 2.6


def test_packets_lost_before_the_first_sample_of_the_queue_are_marked(tmp_path: Path) -> None:
    asked = {
        "tcplab": 1,
        "name": "early",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "20 ms", "loss": "100 %"}},
        "flows": [{"name": "never", "kind": "tcp"}],
        "sample": {"queues": "100 ms"},
        "duration": "4 s",
        "omit": "0 s",
    }
    run = tcplab.run(asked, output=tmp_path / "early")
    lost = run.queues.filter(direction="forward")["lost"]
    # The SYN and three retransmissions, 1 s after each other.
    assert (lost[0], lost[-1]) == (1, 4)

    def marked(start: int) -> int:
        header, _ = decoded(curves.curves(run.run_dirs[1], run.plan, panels=("queue",), start=start))
        return sum(sum(mark["counts"]) for mark in header["marks"])

    assert marked(0) == 4
    # That of a window within the run are those of its own samples.
    assert marked(2_000_000_000) == 2


def test_a_narrow_window_has_one_sample_on_either_side(long: Long) -> None:
    """The scale of its values is that of what is seen: a spike lies 100 ms before it."""
    answer = long.window(700.2225, 700.2525, 1000)
    for label, (x, y) in answer["series"].items():
        assert x.round(3).tolist() == [round(700.222 + at / 1000, 3) for at in range(32)]
        assert y.max() <= long.values(label)[700_200:700_300].max() < 900
