"""`impair: on`: netem at real hosts, and that it is gone whatever ends the run.

The last test runs on User-mode Linux, whose kernel has netem. The others have a tc that only writes down what
it is asked for: whether its commands are taken back does not depend on what they do.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import polars as pl
import pytest

from tcplab.results import Run as Results
from tcplab.results import load
from tcplab.testbed.tests import uml

from .hosts import ROOT, Host, Hosts, wait_for
from .running import Run
from .test_remote import ONE

TC = """#!/bin/sh
echo "$*" >>/run/keep/tc.log
[ "$*" = "qdisc show dev eth0 root" ] && cat /run/keep/root-qdisc
exit 0
"""
ON = {"left": "ssh://10.77.0.2?impair=on", "right": "ssh://10.77.0.3?impair=on"}
REMOVED = "qdisc del dev eth0 root"


@pytest.fixture(autouse=True)
def _tc(request: pytest.FixtureRequest) -> None:
    """The tc that only writes, at both hosts."""
    if "hosts" not in request.fixturenames:
        return
    hosts = request.getfixturevalue("hosts")
    for host in (hosts.all["left"], hosts.all["right"]):
        (host.folder / "root-qdisc").write_text("qdisc noqueue 0: root refcnt 2\n")
        log(host).write_text("")
        stub = host.folder / "tc"
        if not stub.exists():
            stub.write_text(TC)
            stub.chmod(0o755)
            host.run("mount", "--bind", "/run/keep/tc", "/usr/sbin/tc")


def log(host: Host) -> Path:
    return host.folder / "tc.log"


def asked(host: Host) -> list[str]:
    """The commands that a host's tc was given, but for questions."""
    return [line for line in log(host).read_text().splitlines() if " show " not in line]


def test_each_host_impairs_what_it_sends_to_the_other_and_nothing_else(hosts: Hosts) -> None:
    text = (ONE % "1 s").replace("rtt: 20 ms", "rtt: 20 ms, loss: 1 %, queue: 50 packets")
    run = Run(hosts, text, at=ON)
    code, said = run.end()
    assert code == 0, said
    for name, other in (("left", "10.77.0.3"), ("right", "10.77.0.2")):
        *made, removed = asked(hosts.all[name])
        assert removed == REMOVED
        assert run.manifest["facts"]["impaired"][name] == made
        assert made[-1].endswith(f"match ip dst {other}/32 flowid 1:2")
        netems = [line.partition(" netem ")[2] for line in made if " netem " in line]
        lost = " loss random 1.0000000%" if name == "left" else ""
        assert netems[0] == f"delay 10000.000us{lost} limit 1000000"
        assert netems[1].startswith("rate 100000000bit limit ")
    # The scenario's path is applied.
    assert "links: []" not in (run.out / "run-1/plan.yaml").read_text()


@pytest.mark.parametrize("end", ["cut", "killed agent", "killed tcplab"])
def test_netem_is_gone_whatever_ends_the_run(hosts: Hosts, end: str) -> None:
    run = Run(hosts, ONE % "60 s", at=ON)
    right = hosts.all["right"]
    wait_for(lambda: list(run.out.glob("run-1/intervals.right.arrows")), patience=60)
    assert REMOVED not in asked(right)
    try:
        if end == "cut":
            right.run("ip", "link", "set", "eth0", "down")
        elif end == "killed tcplab":
            run.process.kill()
        else:
            [agent] = right.agents()
            os.kill(int(agent.partition(":")[0]), signal.SIGKILL)
        wait_for(lambda: asked(right)[-1] == REMOVED, patience=30)
        run.end()
    finally:
        right.run("ip", "link", "set", "eth0", "up")
    wait_for(lambda: asked(hosts.all["left"])[-1] == REMOVED, patience=30)


def test_what_an_administrator_has_set_is_left_alone(hosts: Hosts) -> None:
    right = hosts.all["right"]
    (right.folder / "root-qdisc").write_text("qdisc htb 1: root refcnt 2 r2q 10\n")
    code, said = Run(hosts, ONE % "1 s", at=ON).end()
    assert code == 4, said
    assert "eth0 has qdisc htb 1:" in said
    assert "leave out `impair`" in said
    assert asked(right) == []


def test_what_netem_cannot_do_is_refused_before_anything_runs(hosts: Hosts) -> None:
    text = (ONE % "1 s").replace("rtt: 20 ms", "rtt: 20 ms, queue: {kind: codel}")
    code, said = Run(hosts, text, at=ON).end()
    assert code == 3, said
    assert "netem's queue is droptail" in said
    assert asked(hosts.all["left"]) == []


def test_one_end_alone_is_impaired_with_a_warning(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "1 s", at={"left": ON["left"]})
    code, said = run.end()
    assert code == 0, said
    assert "the reverse path is not changed" in said
    assert asked(hosts.all["right"]) == []
    assert asked(hosts.all["left"])[-1] == REMOVED
    # The plan has what was applied: one direction.
    [link] = load(run.out).plan["links"]
    assert (link["forward"]["rate"], link["forward"]["delay"]) == (100_000_000, 10_000_000)
    assert (link["backward"]["rate"], link["backward"]["delay"]) == (None, 0)


MODULES = ["veth", "ipv6", "bridge", "sch_netem", "sch_prio", "sch_tbf", "cls_u32"]


@pytest.fixture(scope="module")
def impaired(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run between two hosts on a kernel with netem."""
    if (why := uml.missing()) is not None:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("impaired")
    words = ["env", f"PYTHONPATH={ROOT}/python:{ROOT}/tests", sys.executable, "-m", "remote.impaired", folder]
    code, said = uml.run([str(word) for word in words], folder, MODULES, seconds=400)
    assert code == 0, said
    return load(folder / "hosts/us/out-0")


def test_a_real_kernels_netem_makes_the_path_that_was_asked_for(impaired: Results) -> None:
    [path] = impaired.manifest.facts["paths"]
    assert path["rtt"] >= 20e6
    pings = impaired.pings.filter(~pl.col("lost"))
    assert 20e6 <= float(pings["rtt"].min()) < 22e6  # type: ignore[arg-type]
    bulk = impaired.flows.filter(pl.col("flow") == "bulk")
    # Without netem it would be a hundred times as much.
    assert 0 < bulk["goodput"][0] < 10e6 * 1448 / 1514 * 1.02
    # Packets, not bursts, are queued and lost.
    assert bulk["retransmits"][0] > 0
