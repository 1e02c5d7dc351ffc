"""Real hosts on an emulated path: what flows get between them, beside the kernel engine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import tcplab
from tcplab.plan.types import Plan
from tcplab.results import Run, load
from tcplab.scenario import expand, from_data
from tcplab.testbed import held

from . import hosts as remote
from .running import Run as RemoteRun

pytestmark = pytest.mark.alone

CONTROLS = ("reno", "cubic", "bbr1", "tl_bbr2")
PAIRS = {control: (f"left-{control}", f"right-{control}") for control in CONTROLS}
NODES = [node for pair in PAIRS.values() for node in pair]
# As the scenario four-controls has them: each flow has a path to itself.
LINKS = [
    {"ends": list(pair), "rate": "10 Mbit/s", "delay": "50 ms", "queue": "50 ms"} for pair in PAIRS.values()
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


@dataclass(frozen=True)
class Reached:
    """Hosts with sshd on the ends of the emulated links, and where they are."""

    hosts: remote.Hosts
    places: dict[str, str]


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reached]:
    """Each over another link than the emulated one, from `us`."""
    if (reason := remote.obstacle()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("hosts")
    control = [{"ends": ["us", node], "rate": "unlimited"} for node in NODES]
    network = {"nodes": ["us", *NODES], "links": [*LINKS, *control]}
    plan = expand(from_data({**SCENARIO, "network": network}))
    lab = held.up(plan, f"remote-{os.getpid()}", "four")
    try:
        others = {node: remote.Host(node, _address(plan, node, "us"), folder / node) for node in NODES}
        made = remote.Hosts(folder, **others)
        for node, host in made.all.items():
            host.within = lab.node(node)
        try:
            made.up()
            inner = {
                node: _address(plan, node, other)
                for left, right in PAIRS.values()
                for node, other in ((left, right), (right, left))
            }
            yield Reached(
                made, {node: f"ssh://{others[node].address}?address={inner[node]}" for node in NODES}
            )
        finally:
            made.down()
    finally:
        held.down(lab.name)


def _address(plan: Plan, node: str, other: str) -> str:
    """The address of a node on its link to another."""
    [link] = [one for one in plan["links"] if set(one["ends"]) == {node, other}]
    return str(link["addresses"][link["ends"].index(node)]).partition("/")[0]


def test_four_controls_get_between_remote_hosts_what_they_get_on_the_kernel_engine(
    reached: Reached, tmp_path: Path, undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    def between_hosts() -> Run:
        run = RemoteRun(reached.hosts, json.dumps(SCENARIO), at=reached.places, default_places=False)
        code, said = run.end(120)
        assert code == 0, said
        return load(run.out)

    def on_the_kernel() -> Run:
        number = len(list(tmp_path.iterdir()))
        return tcplab.run(SCENARIO, engine="kernel", attempts=1, out=tmp_path / f"run-{number}")

    found, wanted = undisturbed(between_hosts), undisturbed(on_the_kernel)
    goodput = [dict(run.flows.select("flow", "goodput").iter_rows()) for run in (found, wanted)]
    for control in CONTROLS:
        assert goodput[0][control] == pytest.approx(goodput[1][control], rel=0.02), control
