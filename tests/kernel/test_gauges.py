"""Figures that controls publish of themselves, read from the running kernel's socket storage."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tcplab.cc.describe import describe
from tcplab.cc.template import starting_file
from tcplab.results import Run
from tcplab.testbed.controls import loader

pytestmark = pytest.mark.alone

SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def loading() -> None:
    """Skip with the reason where controls cannot be loaded."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])


def test_named_figures_come_from_the_kernel_with_their_values(
    run: Callable[..., Run], tmp_path: Path
) -> None:
    file = tmp_path / "mine.c"
    file.write_text(starting_file("mine"))
    controls = {"vegas": "vegas", "copa": "copa", "htcp": "htcp", "mine": str(file)}
    path = {"rate": "10 Mbit/s", "rtt": "40 ms", "queue": "1 BDP"}
    nodes = [{"name": f"{end}-{name}", "kind": "host"} for name in controls for end in ("from", "to")]
    links = [
        {
            "name": name,
            "ends": [f"from-{name}", f"to-{name}"],
            "rate": path["rate"],
            "delay": "20 ms",
            "queue": path["queue"],
        }
        for name in controls
    ]
    flows = [
        {"name": name, "kind": "tcp", "cc": cc, "from": f"from-{name}", "to": f"to-{name}"}
        for name, cc in controls.items()
    ]
    done = run({"nodes": nodes, "links": links}, flows, duration="8 s")

    def values(flow: str, name: str, after: int = 0) -> pl.Series:
        rows = done.gauges.filter(flow=flow, name=name).filter(pl.col("time") > after)
        return rows["value"]

    for flow in ("vegas", "copa", "htcp"):
        declared = {(gauge.name, gauge.unit) for gauge in describe(flow).gauges}
        assert set(done.gauges.filter(flow=flow).select("name", "unit").iter_rows()) == declared
        sampled = done.sockets.filter(flow=flow)
        assert set(done.gauges.filter(flow=flow)["time"]) <= set(sampled["time"])
    settled = values("vegas", "diff", 4 * SECOND)
    assert 1 <= settled.median() <= 5  # type: ignore[operator]
    assert all(math.log2(value).is_integer() for value in values("copa", "velocity"))
    # H-TCP halves at least, keeps 0.8 at most, and grows by more than Reno a second after a loss.
    assert values("htcp", "beta").is_between(0.5, 0.8).all()
    assert values("htcp", "alpha").max() > 1  # type: ignore[operator]
    episodes = done.tables["events"].filter(flow="mine", event="state", detail="recovery")
    # Two samples may miss an episode between them.
    assert values("mine", "reductions")[-1] >= len(episodes) > 0


def faded(alpha: int) -> int:
    """The alpha of dctcp after a round trip without marks: below 16/1024 it becomes none, as in Linux."""
    return alpha - (alpha // 16 or alpha)


def test_dctcps_alpha_moves_by_sixteenths_towards_the_share_of_marks(run: Callable[..., Run]) -> None:
    queue = {"kind": "droptail", "limit": "1 MB", "mark_above": "20 packets"}
    network = {"path": {"rate": "50 Mbit/s", "rtt": "20 ms", "queue": queue}}
    done = run(network, [{"name": "f", "kind": "tcp", "cc": "tl_dctcp"}], duration="5 s")
    alpha = done.gauges.filter(name="alpha").sort("time")
    # RFC 8257, section 3.3, in 1/1024: each round trip takes away a sixteenth, rounded down, and adds a
    # sixteenth of the share of marks in it.
    values = (alpha["value"] * 1024).to_list()
    assert all(value.is_integer() for value in values)
    # The first sample may come some round trips late; until there are marks, alpha only falls.
    unmarked = [1024]
    while len(unmarked) < 40:
        unmarked.append(faded(unmarked[-1]))
    assert values[0] in unmarked
    # The RTT is 20 ms at least, so this many round trips may have ended between two samples.
    elapsed = alpha["time"].diff().fill_null(0).to_list()
    lowest = highest = values[0]
    for before, after, time in zip(values[:-1], values[1:], elapsed[1:], strict=True):
        lowest = highest = int(before)
        for _ in range(1 + math.ceil(time / 20e6)):
            lowest = faded(lowest)
            highest = min(faded(highest) + 64, 1024)
        assert lowest <= after <= highest, (before, after, time)
    # It comes down to the share of marks; the mean of its round trips need not be the mean over packets.
    marks = done.queues.filter(direction="forward").sort("time").select("time", "marks")
    rises = [
        time for time, step in zip(alpha["time"], np.diff(values, prepend=values[0]), strict=True) if step > 0
    ]
    first = marks.filter(pl.col("marks") > 0)["time"].min()
    assert rises
    assert min(rises) > first, "nothing raises alpha but a mark"
    assert min(values) < 512
