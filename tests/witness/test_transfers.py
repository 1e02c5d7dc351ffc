"""The simulator beside TCP of a real kernel, over that kernel's own queues.

The kernel is User-mode Linux in virtual time: hosts take no time there, and nothing rests on how fast this
machine is. So whatever differs is TCP or a queue. docs/fidelity.md has the figures.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from virtual_time import CASES, REQUESTS, SHARES, Case, Side, both_sides

from tcplab.testbed.tests import uml

# Each process that runs some of these tests boots the kernel for all of them: one process runs all. It runs
# those of queues too, so that one kernel at a time takes a CPU.
pytestmark = pytest.mark.xdist_group("witness")

# Some, and for a shorter time than on the page.
SHARED: dict[str, Case] = {
    name: replace(SHARES[name], seconds=20)
    for name in ("reno beside bbr1, 0.5 BDP", "reno beside bbr1, 1 BDP", "cubic beside bbr1, 0.5 BDP")
}

# These take four times in turn, one after each loss in four responses. The median is between two of the four.
BY_MEAN = "100 B, 1 MB"


def test_each_run_has_random_numbers_of_its_own() -> None:
    for case in SHARES.values():
        seeds = {case.scenario(apart)["seed"] for apart in case.starts}
        assert len(seeds) == len(case.starts)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Side, Side]]:
    """By case, the kernel's and ours."""
    why = uml.missing()
    if why:
        pytest.skip(why)
    return both_sides({**CASES, **SHARED, **REQUESTS}, tmp_path_factory.mktemp("transfers"))


@pytest.mark.parametrize("case", [*CASES, *SHARED])
def test_transfers_go_as_they_do_there(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    kernel, ours = sides[case]
    assert ours.goodput.sum(1).mean() == pytest.approx(kernel.goodput.sum(1).mean(), rel=0.04)
    assert ours.srtt.mean() == pytest.approx(kernel.srtt.mean(), rel=0.04)
    # PIE drops at random (86 and 111 of the kernel's in two boots), and BBR's phase is random.
    if not case.startswith("pie") and case not in SHARED:
        expected = kernel.retransmitted.sum(1).mean()
        assert ours.retransmitted.sum(1).mean() == pytest.approx(expected, rel=0.2, abs=12)


@pytest.mark.parametrize("case", SHARED)
def test_unlike_controls_share_as_they_do_there(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    kernel, ours = sides[case]
    # Runs differ from each other: four standard errors of the difference, and 0.3 Mbit/s for TCP.
    error = np.sqrt((kernel.goodput.var(0, ddof=1) + ours.goodput.var(0, ddof=1)) / len(kernel.goodput))
    assert abs(ours.goodput.mean(0) - kernel.goodput.mean(0)) == pytest.approx(0, abs=0.3 + 4 * error.max())


@pytest.mark.parametrize("case", REQUESTS)
def test_requests_take_as_long_as_there(sides: dict[str, tuple[Side, Side]], case: str) -> None:
    kernel, ours = sides[case]
    assert len(ours.responses) == pytest.approx(len(kernel.responses), rel=0.05, abs=1)
    typical = np.mean if case == BY_MEAN else np.median
    assert typical(ours.responses) == pytest.approx(typical(kernel.responses), rel=0.02, abs=0.1)
