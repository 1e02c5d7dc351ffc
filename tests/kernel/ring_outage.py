"""Outages in a ring of eight OSPF routers with FRR, beside the simulator's, of each of four flows.

`python -m tests.kernel.ring_outage [CASE ...]`, as root, on a quiet machine: 13 runs of each case that are
not overloaded, about 50 minutes for all.
The exit code is 1 where a flow's median outage differs by more than 20 % and by more than its resolution.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import tcplab
from tcplab.analysis.outages import outages

# Some outages have two lengths: whether one more round trip, or a timeout, passes.
_RUNS, _ATTEMPTS, _SIMULATED = 13, 24, 60
_TOLERANCE = 0.2
_LINK = "network.links.2.at"
_VANISH = {_LINK: {"10 s": {"loss": "100 %"}}}
_TUNED = {"hello_interval": "1 s", "dead_interval": "4 s"}
# An outage of a few hundred ms lasts one or two intervals of 100 ms, which says nothing about 20 %.
_FINE = {"sample.flows": "10 ms"}
CASES: dict[str, dict[str, Any]] = {
    "carrier": {"duration": "13 s"},
    "tuned": {"duration": "30 s", **_VANISH},
    "default": {"duration": "80 s", **_VANISH},
}


def main() -> None:
    """Print each case's outages, their medians and ranges, and the verdict."""
    names = sys.argv[1:] or list(CASES)
    verdicts = []
    with tempfile.TemporaryDirectory() as where:
        for name in names:
            verdicts += _case(name, Path(where) / name)
    passed = all(verdicts)
    sys.stdout.write(f"{'PASS' if passed else 'FAIL'}: {sum(verdicts)} of {len(verdicts)} within 20 %\n")
    sys.exit(0 if passed else 1)


def _case(name: str, where: Path) -> list[bool]:
    settings = CASES[name] | _FINE
    if name == "tuned":
        settings |= {f"network.nodes.{number}.routing.ospf": _TUNED for number in range(2, 10)}
    simulated = tcplab.run("routing-failure", set=settings, repeat=_SIMULATED, output=where / "sim")
    real = []
    for number in range(_ATTEMPTS):
        out = where / f"kernel-{number}"
        run = tcplab.run("routing-failure", engine="kernel", set=settings, attempts=1, output=out)
        overload = run.manifest.overload
        sys.stdout.write(f"{name}: kernel run {number + 1}: {overload or 'not overloaded'}\n")
        sys.stdout.flush()
        real += [] if overload else [run]
        if len(real) == _RUNS:
            break
    if len(real) < _RUNS:
        sys.stdout.write(f"{name}: only {len(real)} runs were not overloaded: no verdict\n")
        return [False]
    ours, theirs = _by_flow([simulated]), _by_flow(real)
    return [_compare(name, flow, ours[flow], theirs[flow]) for flow in ours]


def _by_flow(runs: list[tcplab.Run]) -> dict[str, list[tuple[float, float]]]:
    """The outages of each flow at the first failure, and their resolution, s."""
    found: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        for one in outages(run):
            found.setdefault(one.flow, []).append((one.outage / 1e9, one.resolution / 1e9))
    return found


def _compare(
    name: str, flow: str, ours: list[tuple[float, float]], theirs: list[tuple[float, float]]
) -> bool:
    simulated, real = ([outage for outage, _ in found] for found in (ours, theirs))
    expected, median = statistics.median(simulated), statistics.median(real)
    off = abs(median - expected)
    within = off <= max(_TOLERANCE * expected, max(resolution for _, resolution in ours))
    sys.stdout.write(
        f"{name}, {flow}: simulator {expected:.3f} s ({min(simulated):.3f} to {max(simulated):.3f}),"
        f" FRR {median:.3f} s ({min(real):.3f} to {max(real):.3f}): {'ok' if within else 'DIFFERS'}\n"
        f"  simulator {_listed(simulated)}\n  FRR {_listed(real)}\n"
    )
    return within


def _listed(found: list[float]) -> str:
    return " ".join(f"{outage:.2f}" for outage in sorted(found))


if __name__ == "__main__":
    main()
