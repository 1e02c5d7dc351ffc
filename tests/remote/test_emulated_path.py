"""Real hosts on an emulated path: what flows get between them, beside the kernel engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tcplab
from tcplab.results import Run, load

from .emulated import Reached, reached
from .hosts import obstacle
from .running import Run as RemoteRun

pytestmark = [pytest.mark.alone, pytest.mark.xdist_group("controls")]

CONTROLS = ("reno", "cubic", "bbr1", "tl_bbr2")
PAIRS = {control: (f"left-{control}", f"right-{control}") for control in CONTROLS}
NODES = [node for pair in PAIRS.values() for node in pair]
# As the scenario four-controls has them, each flow with a path to itself, but with a queue of 1 BDP. With
# half of it, Reno's goodput depends on how many packets its slow start happens to lose: 8.88 or 9.03 Mbit/s.
LINKS = [
    {"ends": list(pair), "rate": "10 Mbit/s", "delay": "50 ms", "queue": "100 ms"} for pair in PAIRS.values()
]
SCENARIO = {
    "tcplab": 1,
    "name": "four",
    "network": {"nodes": NODES, "links": LINKS},
    "flows": [
        {"name": control, "from": left, "to": right, "kind": "tcp", "cc": control}
        for control, (left, right) in PAIRS.items()
    ],
    "duration": "20 s",
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """The nodes, each reached over another link than the emulated one."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    with reached(tmp_path_factory.mktemp("four"), SCENARIO) as found:
        yield found


def test_four_controls_get_between_remote_hosts_what_they_get_on_the_kernel_engine(
    hosts: Reached, tmp_path: Path, undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    def between_hosts() -> Run:
        run = RemoteRun(hosts.hosts, json.dumps(SCENARIO), at=hosts.places, default_places=False)
        code, said = run.end(120)
        assert code == 0, said
        return load(run.out)

    def on_the_kernel() -> Run:
        number = len(list(tmp_path.iterdir()))
        return tcplab.run(SCENARIO, engine="kernel", attempts=1, output=tmp_path / f"run-{number}")

    found, wanted = undisturbed(between_hosts), undisturbed(on_the_kernel)
    goodput = [dict(run.flows.select("flow", "goodput").iter_rows()) for run in (found, wanted)]
    for control in CONTROLS:
        assert goodput[0][control] == pytest.approx(goodput[1][control], rel=0.02), control
