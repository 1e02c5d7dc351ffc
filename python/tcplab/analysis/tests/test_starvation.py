"""A flow's share of its bottleneck beside others, and when it has next to nothing."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcplab.analysis.samples import Samples
from tcplab.analysis.starvation import faring, verdict
from tcplab.analysis.steady_state import Window
from tcplab.results import RunWriter, load
from tcplab.results.tests.synthetic import MS, SECOND, plan

# Payload that 10 Mbit/s of frames carry.
CAPACITY = 10e6 * 1448 / 1514


def shared(path: Path, tcp: list[float], udp: list[float], streams: int = 1) -> Samples:
    """A TCP flow beside a UDP source; one goodput a second each, Mbit/s."""
    made = plan({"tcp": "cubic", "udp": "none"}, shared=True, seconds=len(tcp))
    made["flows"][1] |= {"kind": "udp", "streams": streams}
    writer = RunWriter(path, made)
    time = np.arange(1, 10 * len(tcp) + 1) * 100 * MS
    common = {"time": time, "duration": [100 * MS] * len(time), "stream": [0] * len(time)}
    frames = [
        pl.DataFrame({**common, "flow": [name] * len(time), "goodput": np.repeat(rates, 10) * 1e6})
        for name, rates in (("tcp", tcp), ("udp", udp))
    ]
    writer.write_table("intervals", pl.concat(frames))
    return Samples(load(path), 1)


def test_sources_that_do_not_yield_count_in_the_fair_share(tmp_path: Path) -> None:
    one = faring(shared(tmp_path / "one", [2.0] * 6, [7.5] * 6), "tcp", 2e6)
    three = faring(shared(tmp_path / "three", [2.0] * 6, [7.5] * 6, streams=3), "tcp", 2e6)
    assert one is not None
    assert three is not None
    assert one.share == pytest.approx(2e6 / (CAPACITY / 2))
    assert three.share == pytest.approx(2e6 / (CAPACITY / 4))


def test_a_source_with_a_rate_of_its_own_takes_no_more_than_that_of_the_fair_share(tmp_path: Path) -> None:
    found = {}
    for rate in (1e6, 8e6):
        samples = shared(tmp_path / str(rate), [7.0] * 6, [rate / 1e6] * 6)
        flows: Any = samples.plan["flows"]
        next(flow for flow in flows if flow["name"] == "udp")["rate"] = rate
        found[rate] = [faring(samples, "tcp", 7e6), faring(samples, "udp", rate)]
    slow, fast = found[1e6], found[8e6]
    assert slow[0] is not None
    assert slow[0].share == pytest.approx(7e6 / (CAPACITY - 1e6))
    assert slow[1] is not None
    assert slow[1].share == pytest.approx(1), "it has all it asks for"
    assert fast[0] is not None
    assert fast[0].share == pytest.approx(7e6 / (CAPACITY / 2))


def test_what_frames_carry_beside_payload_is_of_the_flow_and_of_the_link(tmp_path: Path) -> None:
    samples = shared(tmp_path, [4.0] * 6, [1.0] * 6)
    flows: Any = samples.plan["flows"]
    flows[0] |= {"sender": {"mss": 1360, "timestamps": False}, "receiver": {"mss": 8960}, "ip": 6}
    flows[1] |= {"payload": 100, "rate": 1e6}
    links: Any = samples.plan["links"]
    links[0]["forward"]["overhead"] = {"bytes": 38, "minimum": 84, "atm": False}
    tcp, udp = (faring(samples, name, rate) for name, rate in (("tcp", 4e6), ("udp", 1e6)))
    assert tcp is not None
    assert udp is not None
    # 1 Mbit/s of datagrams of 100 B takes 1.8 of the 10 Mbit/s: 142 B of frame and 38 of overhead.
    assert udp.share == pytest.approx(1)
    assert tcp.share == pytest.approx(4e6 / (8.2e6 * 1360 / (1360 + 20 + 40 + 14 + 38)))


def test_under_5_percent_of_the_fair_share_is_starvation(tmp_path: Path) -> None:
    # A second behind is looked at; of 4.78 Mbit/s 5 % are 0.24.
    tcp = [4, 4, 4, 0.2, 0.2, 0.2, 0.2, 4, 4, 4]
    found = faring(shared(tmp_path / "a", tcp, [5.0] * 10), "tcp", 2e6)
    assert found is not None
    assert found.starved == pytest.approx(3 * SECOND, abs=0.2 * SECOND)
    assert found.began == pytest.approx(4 * SECOND, abs=0.2 * SECOND)
    assert found.ended == pytest.approx(7 * SECOND, abs=0.2 * SECOND)
    more = faring(shared(tmp_path / "b", [0.3 if rate < 1 else rate for rate in tcp], [5.0] * 10), "tcp", 2e6)
    assert more is not None
    assert more.starved == 0
    assert math.isnan(more.began)


def test_less_than_a_second_with_nothing_is_not_starvation(tmp_path: Path) -> None:
    found = faring(shared(tmp_path, [4, 4, 4, 0, 4, 4, 4], [5.0] * 7), "tcp", 3e6)
    assert found is not None
    assert found.starved == 0


def test_the_fair_share_follows_the_rate_of_the_link(tmp_path: Path) -> None:
    """From 10 Mbit/s to 0.4 after 5 s: both have all their fair share, of which 5 % was more before."""
    rates = [4.7] * 5 + [0.19] * 5
    samples = shared(tmp_path, rates, rates)
    (link,) = samples.plan["links"]
    changes: Any = link["forward"]["changes"]
    changes.append({"at": 5 * SECOND, "rate": 400_000})
    found = faring(samples, "tcp", 0.19e6, Window(6 * SECOND, 10 * SECOND, 6 * SECOND))
    assert found is not None
    assert found.share == pytest.approx(0.19e6 / (CAPACITY / 25 / 2))
    assert found.starved == 0
    whole = faring(samples, "tcp", 2.445e6)
    assert whole is not None
    assert whole.share == pytest.approx(2.445e6 / (CAPACITY * 0.52 / 2))


def test_a_flow_alone_fares_beside_nobody(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=2)
    RunWriter(tmp_path, made)
    assert faring(Samples(load(tmp_path), 1), "one", 1e6) is None


@pytest.mark.parametrize(
    ("share", "starved", "words"),
    [
        (0.9, 0, "fair"),
        (1.25, 0, "fair"),
        (1.26, 0, "above share"),
        (1.99, 0, "above share"),
        (0.8, 0, "fair"),
        (0.79, 0, "squeezed"),
        (0.9, 1, "starved"),
        (0.3, 0.9, "squeezed"),
    ],
)
def test_the_verdict_is_by_share_and_a_tenth_of_the_time(share: float, starved: float, words: str) -> None:
    assert verdict(share, starved, 10) == words


def test_the_streams_of_one_flow_alone_are_neither_squeezed_nor_starved(tmp_path: Path) -> None:
    samples = shared(tmp_path, [0.1] * 6, [7.5] * 6)
    flows: Any = samples.plan["flows"]
    del flows[1]
    flows[0]["streams"] = 16
    found = faring(samples, "tcp", 2e6)
    assert found is not None
    assert found.share == pytest.approx(2e6 / CAPACITY)
    assert verdict(found.share, found.starved, 6 * SECOND) == ""
    assert verdict(0.9, found.starved, 6 * SECOND) == "fair"
