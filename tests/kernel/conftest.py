"""Kernel tests run wherever the machine allows, and say why where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tcplab
from tcplab.results import Run
from tcplab.testbed.doctor import Grade, examine

from .beside import SERVER, Network, Program
from .cached import ORIGIN

Scenario = dict[str, Any]
# Load controls of ours, some under the names that others of these expect.
LOADING = {"test_controls", "test_controls_finish", "test_marking", "test_own_controls", "test_studies"}
# It loads none. It is of their group so that the group `kernel`, the longest, is shorter.
BESIDE_THEM = {"test_against_sim"}
PROXIES = {
    "test_accelerator",
    "test_accelerator_stress",
    "test_cache",
    "test_cache_ends",
    "test_cache_http",
    "test_cache_passing",
    "test_cache_programs",
}
# Fixtures of tests that judge times or rates.
JUDGING = {"undisturbed", "usual_goodput"}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A few at a time, also beside other tests, and one at a time those that load controls.

    Those of routers wait for their timers most of the time.
    """
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            group = _group(item.path.stem)
            if isinstance(item, pytest.Function) and JUDGING & set(item.fixturenames):
                item.add_marker(pytest.mark.alone)
                # As few long groups as there are workers: these two fill what is left of their time.
                group = item.name if group == "proxies" else group
            item.add_marker(pytest.mark.xdist_group(group))


def _group(file: str) -> str:
    """The group of a test file; one group runs in one process."""
    if file == "test_routing":
        return "routing"
    if file in PROXIES:
        return "proxies"
    return "controls" if file in LOADING | BESIDE_THEM else "kernel"


@pytest.fixture(scope="session", autouse=True)
def able() -> None:
    """Skip with the reason where the machine does not allow it."""
    missing = [one for one in examine() if one.grade is Grade.MISSING]
    if missing:
        pytest.skip("; ".join(f"{one.name}: {one.message}" for one in missing))


@pytest.fixture
def net() -> Iterator[Network]:
    """A client, a router and a server in namespaces of their own, for any program."""
    if os.geteuid() != 0:
        pytest.skip("joins namespaces, as root")
    with Network() as one:
        yield one


@pytest.fixture
def origin(net: Network) -> Program:
    """A web server at the server's port 80 that says what it was asked."""
    server = net.start(SERVER, ORIGIN, "80")
    server.next(event="serves")
    return server


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    """Run a scenario on the kernel engine (or another), once, whatever the machine does meanwhile."""

    def run_it(network: Scenario, flows: list[Scenario], *, engine: str = "kernel", **more: Any) -> Run:
        scenario = {"tcplab": 1, "name": "t", "network": network, "flows": flows, **more}
        number = sum(1 for _ in tmp_path.glob("results-*"))
        return tcplab.run(scenario, engine=engine, attempts=1, output=tmp_path / f"results-{number}")

    return run_it


@pytest.fixture(scope="session")
def usual_goodput() -> Callable[..., float]:
    """The median over a flow's intervals of its goodput in bit/s, whatever a standstill took away."""

    def measure(done: Run, flow: str, *, after: float = 1.0) -> float:
        counted = (pl.col("flow") == flow) & pl.col("bytes_received").is_not_null()
        rows = done.intervals.filter(counted & (pl.col("time") > after * 1e9))
        # The last one is short where the flow ended first.
        whole = rows.filter(pl.col("duration") > 0.9 * pl.col("duration").max())
        by_time = whole.group_by("time").agg(pl.col("bytes_received").sum(), pl.col("duration").first())
        return float(np.median(by_time["bytes_received"] * 8e9 / by_time["duration"]))

    return measure


@pytest.fixture
def descendants() -> Callable[[int], dict[int, str]]:
    """Every process below one, with its command line."""
    return _descendants


def _descendants(pid: int) -> dict[int, str]:
    """Every process below one, with its command line."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        children.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            found[child] = _command_line(child)
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
