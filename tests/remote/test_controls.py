"""tcplab's congestion controls, and a user's own, in the kernels of real hosts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tcplab.testbed.controls import loader

from .hosts import ROOT, USER, Hosts, wait_for
from .running import Run

# Other tests load controls into this kernel, too, under the same names.
pytestmark = pytest.mark.xdist_group("controls")

SCENARIO = """
tcplab: 1
name: controls
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: ours, kind: tcp, cc: {name: tl_cubic, beta: 0.8}, duration: 1 s}
  - {name: mine, kind: tcp, cc: ./mine.c, duration: 1 s}
  - {name: back, from: right, to: left, kind: tcp, cc: tl_reno, duration: 1 s}
  - {name: kernels, kind: tcp, cc: reno, duration: 1 s}
sample: {sockets: 20 ms}
"""
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.fixture(autouse=True, scope="module")
def _able() -> None:
    hello = loader()
    why = hello["obstacle"] or hello["not_built"]
    if why is not None:
        pytest.skip(why["message"])


def test_controls_are_loaded_at_the_hosts_that_send_and_gone_with_the_run(hosts: Hosts) -> None:
    shutil.copy(ROOT / "cc/vegas.c", hosts.us.folder / "mine.c")
    before = AVAILABLE.read_text().split()
    run = Run(hosts, SCENARIO)
    code, said = run.end()
    assert code == 0, said
    assert (run.table("flows")["bytes_received"] > 0).all()
    names = run.manifest["facts"]["controls"]
    assert names["kernels"] == "reno"
    assert names["ours"].startswith("tl_cubic")
    assert names["back"].startswith("tl_reno")
    # Its telemetry is read at the host that sends.
    phases = run.table("sockets").filter(run.table("sockets")["flow"] == "ours")["phase"]
    assert phases.null_count() < len(phases)
    wait_for(lambda: set(AVAILABLE.read_text().split()) <= set(before), patience=8)


def test_a_user_without_the_right_to_load_is_reported_so(hosts: Hosts) -> None:
    code, said = Run(
        hosts,
        SCENARIO.replace("./mine.c", "reno"),
        at={name: f"ssh://{USER}@{hosts.all[name].address}" for name in ("left", "right")},
    ).end()
    assert code == 4, said
    # Both hosts send, and either may be the first to say so.
    assert "left: " in said or "right: " in said, said
    assert "CAP_BPF" in said or "not permitted" in said or "root" in said
