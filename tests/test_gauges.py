"""Figures that controls publish of themselves, in the simulator: named figures with real values."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab.cc.describe import describe
from tcplab.cc.template import starting_file
from tcplab.results import Run

SECOND = 1_000_000_000


def simulated(tmp_path: Path, cc: str, path: str, duration: str = "10 s") -> Run:
    return tcplab.run(
        f"""
        tcplab: 1
        name: gauges
        network: {{path: {{{path}}}}}
        flows: [{{name: bulk, kind: tcp, cc: {cc}}}]
        duration: {duration}
        """,
        output=tmp_path / "run",
    )


def values(run: Run, name: str, after: int = 0) -> pl.Series:
    return run.gauges.filter(pl.col("name") == name, pl.col("time") > after)["value"]


def test_dctcps_alpha_is_at_its_fixed_point(tmp_path: Path) -> None:
    """RFC 8257, section 3.3: it averages the share of marks. Alizadeh et al. 2010, section 3.3, expect
    sqrt(2 / W) if all packets of a round trip are marked before the cut, W being the window then."""
    path = (
        "rate: 1 Gbit/s, rtt: 1 ms, queue: {kind: droptail, limit: 1 MB, mark_above: 65 packets}, "
        "left: {tso: off, gso: off}"
    )
    run = simulated(tmp_path, "dctcp", path, "2 s")
    queue = run.queues.filter(pl.col("time") > SECOND, pl.col("direction") == "forward").sort("time")
    marks, sent = (queue[name][-1] - queue[name][0] for name in ("marks", "bytes_out"))
    settled = values(run, "alpha", SECOND)
    # In 1/1024, and each step of a sixteenth is rounded down.
    assert settled.mean() == pytest.approx(marks / (sent / 1514), abs=16 / 1024)
    assert 0.5 < settled.mean() / math.sqrt(2 / (1e9 * 0.001 / 8 / 1514 + 65)) <= 1  # type: ignore[operator]
    assert set(run.gauges["unit"]) == {""}


def test_vegas_keeps_its_diff_between_alpha_and_beta(tmp_path: Path) -> None:
    run = simulated(tmp_path, "vegas", "rate: 10 Mbit/s, rtt: 50 ms, queue: 2 BDP")
    settled = values(run, "diff", 5 * SECOND)
    assert settled.is_between(2, 5).all()
    window = run.sockets.filter(pl.col("time") > 5 * SECOND)["cwnd"].mean()
    expected = float(window) * 1448 * 8 / 0.050 / 1e6  # type: ignore[arg-type]
    assert values(run, "expected", 5 * SECOND).mean() == pytest.approx(expected, rel=0.1)


def test_copas_velocity_doubles(tmp_path: Path) -> None:
    """Section 2.1 of its paper: 1 until the direction was the same for three round trips, then doubled."""
    run = simulated(tmp_path, "copa", "rate: 100 Mbit/s, rtt: 50 ms, queue: 2 BDP")
    velocity = values(run, "velocity")
    assert velocity[0] == 1
    assert {2.0, 4.0, 8.0} < set(velocity)
    assert all(math.log2(value).is_integer() for value in velocity)
    before, after = velocity[:-1], velocity[1:]
    # Samples are closer together than round trips.
    steps = {(b, a) for b, a in zip(before, after, strict=True) if a > b}
    assert steps
    assert all(a == 2 * b for b, a in steps)
    inverse = run.gauges.filter(pl.col("name") == "inverse_delta").join(run.sockets, on="time")
    # Section 2.2: 1 / delta is more than the default's 2 only while it competes.
    assert set(inverse.filter(pl.col("phase") != "COMPETITIVE")["value"]) == {2.0}
    delay = values(run, "queueing_delay", 5 * SECOND)
    assert delay.min() >= 0  # type: ignore[operator]
    assert delay.mean() < 10  # type: ignore[operator]


def test_a_figure_without_a_value_has_no_row(tmp_path: Path) -> None:
    """BBRv2's bounds are infinite until it loses something."""
    quiet = simulated(tmp_path / "quiet", "bbr2", "rate: 20 Mbit/s, rtt: 40 ms, queue: 4 BDP")
    assert not len(values(quiet, "inflight_hi"))
    assert len(values(quiet, "ecn_alpha")) == len(quiet.sockets.drop_nulls("srtt"))
    lossy = simulated(tmp_path / "lossy", "bbr2", "rate: 20 Mbit/s, rtt: 40 ms, queue: 0.1 BDP, loss: 1 %")
    bound, window = values(lossy, "inflight_hi", 5 * SECOND), lossy.sockets["cwnd"]
    assert len(bound)
    assert 4 <= bound.min() <= window.max()  # type: ignore[operator]


def test_every_control_publishes_what_it_declares_and_nothing_else(tmp_path: Path) -> None:
    controls = ["cubic", "dctcp", "htcp", "hybla", "illinois", "ledbatpp", "westwood", "bbr1", "bbr3", "reno"]
    for control in controls:
        run = simulated(
            tmp_path / control, control, "rate: 10 Mbit/s, rtt: 40 ms, queue: 0.3 BDP, loss: 0.5 %"
        )
        declared = {(gauge.name, gauge.unit) for gauge in describe(control).gauges}
        assert set(run.gauges.select("name", "unit").iter_rows()) == declared, control
        assert run.gauges["value"].is_finite().all()


def test_a_users_file_publishes_as_a_shipped_one_does(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(starting_file("mine"))
    run = simulated(tmp_path, str(file), "rate: 10 Mbit/s, rtt: 40 ms, queue: 0.5 BDP")
    counted = values(run, "reductions")
    episodes = run.tables["events"].filter(pl.col("event") == "state", pl.col("detail") == "recovery")
    assert counted[-1] == len(episodes) > 3
    assert counted.is_sorted()
