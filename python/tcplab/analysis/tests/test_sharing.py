from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tcplab.analysis.samples import Samples
from tcplab.analysis.sharing import convergence, starvation
from tcplab.analysis.starvation import faring
from tcplab.results import RunWriter, load, write_table
from tcplab.results.tests.synthetic import MS, SECOND, plan


def shared(path: Path, first: list[float], second: list[float], kind: str = "tcp") -> Samples:
    """Two flows from 0 s on; one goodput a second each, Mbit/s."""
    made = plan({"one": "reno", "two": "reno"}, shared=True, seconds=len(first))
    made["flows"][1]["kind"] = kind
    writer = RunWriter(path, made)
    time = np.arange(1, len(first) * 10 + 1) * 100 * MS
    frames = [
        pl.DataFrame(
            {
                "time": time,
                "duration": [100 * MS] * len(time),
                "flow": [name] * len(time),
                "stream": [0] * len(time),
                "goodput": np.repeat(rates, 10) * 1e6,
            }
        )
        for name, rates in (("one", first), ("two", second))
    ]
    writer.write_table("intervals", pl.concat(frames))
    return Samples(load(path), 1)


FLOWS = ("one", "two")


def test_convergence_is_counted_from_the_last_start(tmp_path: Path) -> None:
    samples = shared(tmp_path, [9, 8, 7, *[5] * 9], [1, 2, 3, *[5] * 9])
    # Within 20 % of 5 Mbit/s from some time in the fourth second on.
    assert 3 * SECOND < convergence(samples, FLOWS) < 4 * SECOND


def test_to_be_near_the_fair_share_for_less_than_5_s_is_not_to_converge(tmp_path: Path) -> None:
    samples = shared(tmp_path, [9, 9, 5, 5, 5, 9, 9, 9, 9, 9], [1, 1, 5, 5, 5, 1, 1, 1, 1, 1])
    assert np.isnan(convergence(samples, FLOWS))


def test_a_flow_that_comes_later_is_what_all_have_to_share_with(tmp_path: Path) -> None:
    samples = shared(tmp_path, [5.0] * 12, [5.0] * 12)
    lasting = [
        {
            "flow": name,
            "stream": 0,
            "kind": "tcp",
            "from": "left",
            "to": "right",
            "start": start,
            "end": 12 * SECOND,
        }
        for name, start in (("one", 0), ("two", 4 * SECOND))
    ]
    write_table(tmp_path, "flows", pl.DataFrame(lasting))
    # At once after the later start, and not 4 s after the earlier one.
    assert convergence(Samples(load(tmp_path), 1), FLOWS) < 0.2 * SECOND
    assert convergence(samples, FLOWS) < 0.2 * SECOND


def test_flows_that_never_share_fairly_do_not_converge(tmp_path: Path) -> None:
    samples = shared(tmp_path, [9.0] * 12, [1.0] * 12)
    assert np.isnan(convergence(samples, FLOWS))


def test_a_flow_with_next_to_nothing_starves(tmp_path: Path) -> None:
    samples = shared(tmp_path, [5, 5, 10, 10, 10, 10, 5, 5], [5, 5, 0, 0, 0, 0, 5, 5])
    # A second behind is looked at, so the first and last second of silence do not count whole.
    assert starvation(samples, FLOWS) == pytest.approx(3 * SECOND, abs=0.3 * SECOND)


def test_a_datagram_source_neither_converges_nor_starves(tmp_path: Path) -> None:
    samples = shared(tmp_path, [9.0] * 8, [0.1] * 8, kind="udp")
    assert np.isnan(starvation(samples, FLOWS))
    assert np.isnan(convergence(samples, FLOWS))


def test_a_flow_does_not_starve_before_it_starts(tmp_path: Path) -> None:
    """Samples are of 2 s. It begins in the midst of the second one, and gets nothing until the end."""
    made = plan({"one": "reno", "two": "reno"}, shared=True, seconds=4)
    common = {"stream": 0, "time": 4 * SECOND}
    intervals = [
        {**common, "flow": "one", "time": 2 * SECOND, "duration": 2 * SECOND, "goodput": 9e6},
        {**common, "flow": "one", "duration": 2 * SECOND, "goodput": 9e6},
        {**common, "flow": "two", "duration": SECOND, "goodput": 0.0},
    ]
    lasting = [
        {
            "flow": name,
            "stream": 0,
            "kind": "tcp",
            "from": "client",
            "to": "server",
            "start": start,
            "end": end,
        }
        for name, start, end in (("one", 0, 4 * SECOND), ("two", 3 * SECOND, 4 * SECOND))
    ]
    writer = RunWriter(tmp_path, made)
    writer.write_table("intervals", pl.DataFrame(intervals))
    writer.write_table("flows", pl.DataFrame(lasting))
    samples = Samples(load(tmp_path), 1)
    found = faring(samples, "two", 0.0)
    assert found is not None
    assert (found.starved, found.began) == (SECOND, 3 * SECOND)
    assert starvation(samples, FLOWS) == SECOND
