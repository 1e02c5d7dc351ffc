"""Links made by the kernel's netem, in a real kernel that has it."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from tcplab.results import Run, load
from tcplab.testbed.tests import uml

pytestmark = pytest.mark.alone

MODULES = ["veth", "ipv6", "bridge", "sch_netem"]
SCENARIO = """\
tcplab: 1
name: netem
emulator: netem
network:
  nodes: [a, b, c]
  links:
    - {ends: [a, b], rate: 10 Mbit/s, delay: 20 ms, queue: 50 packets}
    - {ends: [a, c], delay: 5 ms, forward: {loss: 20 %}}
flows:
  - {name: four, kind: ping, from: a, to: b, interval: 20 ms, duration: 1 s}
  - {name: six, kind: ping, from: a, to: b, ip: 6, interval: 20 ms, duration: 1 s}
  - {name: lossy, kind: ping, from: a, to: c, interval: 2 ms, count: 500, start: 1.1 s, duration: 1.5 s}
  - {name: bulk, kind: tcp, from: a, to: b, cc: cubic, start: 2.5 s}
duration: 8 s
sample: {sockets: 20 ms, hosts: off}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run in another kernel than this machine's."""
    why = uml.missing()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("netem")
    (folder / "netem.yaml").write_text(SCENARIO, encoding="utf-8")
    words = [sys.executable, "-m", "tcplab", "run", "netem.yaml", "--engine", "kernel", "--output", "out"]
    code, said = uml.run([*words, "--no-report"], folder, MODULES, seconds=400)
    assert code == 0, said
    return load(folder / "out")


@pytest.fixture
def unspoilt(run: Run) -> Run:
    """The run, unless its machine within a machine was held up: there is no other measure of that."""
    samples = run.manifest.facts["nodes"]["a"]["socket_samples"]
    missed = samples["missed"] / (samples["missed"] + samples["taken"])
    if missed > 0.02:
        pytest.skip(f"this machine was too busy for another in it, which missed {missed:.0%} of its samples")
    return run


def test_it_is_another_kernel_and_its_netem(run: Run) -> None:
    assert os.uname().release not in str(run.manifest.host.kernel)
    assert set(run.manifest.qdiscs.values()) == {"netem"}


@pytest.mark.parametrize("flow", ["four", "six"])
def test_an_idle_path_has_the_rtt_asked_for(run: Run, flow: str) -> None:
    # A machine within a machine has pauses, so the quickest shows the path; and none is too quick.
    quickest = run.pings.filter(pl.col("flow") == flow)["rtt"].to_numpy().min()
    assert 40e6 <= quickest < 41e6


def test_a_bulk_flow_gets_the_rate_less_the_headers(
    unspoilt: Run, usual_goodput: Callable[..., float]
) -> None:
    assert usual_goodput(unspoilt, "bulk", after=4) == pytest.approx(10e6 * 1448 / 1514, rel=0.03)


def test_the_queue_holds_packets_not_bursts(unspoilt: Run) -> None:
    long = np.quantile(unspoilt.sockets.filter(pl.col("flow") == "bulk")["srtt"], 0.9)
    # 50 packets and the one being sent; bursts of two would take twice as long.
    full = 51 * 1514 * 8 / 10e6
    assert 0.5 * full < long / 1e9 - 0.040 < 1.5 * full


def test_a_full_queue_loses_packets_in_the_network(run: Run) -> None:
    assert run.flows.filter(pl.col("flow") == "bulk")["retransmits"][0] > 0


def test_losses_are_those_asked_for(unspoilt: Run) -> None:
    lossy = unspoilt.pings.filter(pl.col("flow") == "lossy")
    sent, lost = lossy.height, int(lossy["lost"].cast(pl.Int64).to_numpy().sum())
    assert sent > 300
    assert abs(lost - 0.2 * sent) < 4 * math.sqrt(sent * 0.2 * 0.8)


def test_what_netem_does_not_tell_is_not_made_up(run: Run) -> None:
    assert run.queues.is_empty()
    assert run.flows["losses_true"].null_count() == run.flows.height
    # Threads of flows that wait for a CPU are counted all the same; lateness is known to an emulator alone.
    assert "emulator" not in run.manifest.facts
    assert "packets" not in (run.manifest.overload or "")
    assert "stalled" not in (run.manifest.overload or "")
