"""`--engine remote` between hosts with sshd."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import polars as pl
import pytest

from tcplab.captures.two_point import match_ends

from .hosts import USER, Hosts, wait_for
from .running import Run

RIGHT_AHEAD = 3

SCENARIO = """
tcplab: 1
name: there
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, streams: 2, duration: 2 s}
  - {name: noise, kind: udp, rate: 1 Mbit/s, duration: 2 s}
  - {name: asks, kind: request, request: 100 B, response: 1 kB, duration: 2 s}
  - {name: echo, kind: echo, sizes: [1, 1024], iterations: 50}
  - {name: ping, kind: ping, interval: 100 ms, duration: 2 s}
  - {name: web, kind: http, sizes: [10 kB], page: 4, connections: 2, count: 20}
sample: {sockets: 10 ms, flows: 100 ms, hosts: 500 ms}
duration: 2 s
"""
ONE = """
tcplab: 1
name: one
network:
  path: {rate: 100 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: reno, duration: %s}
"""


@pytest.fixture(autouse=True)
def _nothing_is_left(hosts: Hosts) -> Iterator[None]:
    yield
    for name in ("left", "right"):
        wait_for(lambda name=name: hosts.all[name].left() == [], patience=8)


def test_every_kind_of_flow_runs_between_two_hosts_and_fills_the_tables(hosts: Hosts) -> None:
    run = Run(hosts, SCENARIO)
    code, said = run.end()
    assert code == 0, said
    flows = run.table("flows")
    assert sorted(flows["flow"].unique()) == ["asks", "bulk", "echo", "noise", "ping", "web"]
    bulk = flows.filter(pl.col("flow") == "bulk")
    assert bulk.height == 2
    assert (bulk["bytes_received"] > 0).all()
    assert bulk["losses_true"].null_count() == 2
    sockets = run.table("sockets").filter(pl.col("flow") == "bulk")
    assert sockets.height > 100
    assert sockets["node"].unique().to_list() == ["left"]
    assert run.table("pings").filter(~pl.col("lost")).height > 10
    assert run.table("echoes").filter(pl.col("flow") == "echo")["count"].sum() == 100
    fetches = run.table("fetches")
    assert (fetches.height, fetches["bytes"].sum()) == (80, 800_000)
    assert run.table("queues").is_empty()
    # The scenario's settings of its path are not taken for those of the run.
    assert "links: []" in (run.out / "run-1/plan.yaml").read_text()
    facts = run.manifest["facts"]
    assert facts["hosts"]["right"]["name"] == "right"
    assert facts["hosts"]["right"]["address"] == "10.77.0.3"


def test_clocks_that_differ_by_3_s_are_seen_and_do_not_matter(hosts: Hosts) -> None:
    run = Run(hosts, SCENARIO)
    code, said = run.end()
    assert code == 0, said
    clock = run.manifest["facts"]["clocks"]["right"]
    assert abs(clock["offset_at_start"] - 3_000_000_000) <= clock["offset_at_start_bound"]
    assert abs(clock["offset_at_end"] - 3_000_000_000) <= clock["offset_at_end_bound"]
    assert abs(clock["drift"]) <= clock["drift_bound"]
    assert (
        abs(run.manifest["facts"]["clocks"]["left"]["offset_at_start"])
        <= clock["offset_at_start_bound"] + 10**8
    )
    # The receiver's clock is 3 s ahead; its flow began when the sender's did.
    flows = run.table("flows").filter(pl.col("flow") == "bulk")
    assert (flows["end"] < 2_500_000_000).all()


# Stands before the agent, and gives it and its caller each other's times by a clock that is 0.05 % faster.
DRIFTING = """#!/usr/bin/env python3
import json, subprocess, sys, threading, time

PPM, BEGIN = 500, time.monotonic_ns()
AGENT = "/run/checkout/python/tcplab/engine/remote/agents/tcplab-agent-{machine}"
agent = subprocess.Popen([AGENT, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def answers():
    for line in agent.stdout:
        said = json.loads(line)
        if "monotonic" in said:
            said["monotonic"] += (said["monotonic"] - BEGIN) * PPM // 1_000_000
            line = json.dumps(said).encode() + b"\\n"
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    sys.stdout.buffer.close()

threading.Thread(target=answers).start()
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if asked["do"] == "start":
        asked["at"] -= (asked["at"] - BEGIN) * PPM // (1_000_000 + PPM)
        line = json.dumps(asked).encode() + b"\\n"
    agent.stdin.write(line)
    agent.stdin.flush()
agent.stdin.close()
sys.exit(agent.wait())
"""


def test_a_clock_that_drifts_is_followed(hosts: Hosts) -> None:
    drifting = hosts.us.folder / "drifting-agent"
    drifting.write_text(DRIFTING.format(machine=os.uname().machine))
    # Both hosts get that program, and their clocks the same drift.
    run = Run(hosts, ONE % "6 s", environment={"TCPLAB_REMOTE_AGENT": "/run/keep/drifting-agent"})
    code, said = run.end()
    assert code == 0, said
    for name, ahead in (("left", 0), ("right", 3_000_000_000)):
        clock = run.manifest["facts"]["clocks"][name]
        assert abs(clock["drift"] - 500e-6) <= clock["drift_bound"]
        moved = clock["offset_at_end"] - clock["offset_at_start"]
        within = clock["offset_at_end_bound"] + clock["offset_at_start_bound"]
        assert abs(moved - 6_000_000_000 * 500e-6) <= within
        # The agent began a few seconds before the run, and its clock was right then.
        lead = clock["offset_at_start"] - ahead
        assert -clock["offset_at_start_bound"] <= lead <= 60e9 * 500e-6
    # The two ends' records agree on when the flow was.
    flows = run.table("flows")
    assert (flows["end"] - flows["start"] < 6_500_000_000).all()


def test_an_ordinary_user_is_enough(hosts: Hosts) -> None:
    places = {name: f"ssh://{USER}@{hosts.all[name].address}" for name in ("left", "right")}
    run = Run(hosts, ONE % "1 s", at=places)
    code, said = run.end()
    assert code == 0, said
    assert run.table("flows")["bytes_received"].sum() > 0


def test_a_host_that_does_not_know_the_key_is_named_with_a_hint(hosts: Hosts) -> None:
    right = hosts.all["right"]
    with right.authorized(""):
        code, said = Run(hosts, ONE % "1 s").end()
    assert code == 4, said
    assert "right: ssh to 10.77.0.3" in said
    assert "Permission denied" in said
    assert "ssh-copy-id" in said


def test_a_changed_host_key_is_refused(hosts: Hosts) -> None:
    known = hosts.us.folder / "home/root/.ssh/known_hosts"
    before = known.read_text()
    left = before.splitlines()[0]
    known.write_text(f"{left}\n10.77.0.3 {left.split(' ', 1)[1]}\n")
    try:
        code, said = Run(hosts, ONE % "1 s").end()
    finally:
        known.write_text(before)
    assert code == 4, said
    assert "ssh-keygen -R 10.77.0.3" in said


def test_a_host_that_is_down_is_named_within_its_time(hosts: Hosts) -> None:
    code, said = Run(hosts, ONE % "1 s", at={"right": "ssh://10.77.0.9"}).end()
    assert code == 4, said
    assert "right: ssh to 10.77.0.9" in said


def test_a_connection_that_is_cut_ends_the_run_there_and_what_came_until_then_is_kept(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "60 s")
    left, right = hosts.all["left"], hosts.all["right"]
    wait_for(lambda: list(run.out.glob("run-1/intervals.right.arrows")), patience=60)
    # As a pulled cable: nobody is notified. The control path and the data's are both gone.
    right.run("ip", "link", "set", "eth0", "down")
    try:
        wait_for(lambda: right.agents() == [], patience=30)
        code, said = run.end()
    finally:
        right.run("ip", "link", "set", "eth0", "up")
    assert code == 4, said
    assert "right: 10.77.0.3 has not answered" in said
    assert "right: right:" not in said
    assert run.table("intervals")["bytes_received"].sum() > 0
    assert run.manifest["status"] == "failed"
    wait_for(lambda: left.agents() == [], patience=10)


def test_a_flow_whose_other_end_was_killed_is_not_complete(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "60 s")
    right = hosts.all["right"]
    wait_for(lambda: list(run.out.glob("run-1/intervals.right.arrows")), patience=60)
    for agent in right.agents():
        right.run("kill", "-9", agent.partition(":")[0], check=False)
    code, said = run.end()
    assert code == 4, said
    assert run.manifest["status"] == "failed"
    assert run.table("flows")["complete"].to_list() == [False]


def test_a_killed_caller_leaves_nothing_on_the_hosts(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "60 s")
    wait_for(lambda: list(run.out.glob("run-1/intervals.right.arrows")), patience=60)
    run.process.kill()
    run.process.wait()
    for name in ("left", "right"):
        wait_for(lambda name=name: hosts.all[name].agents() == [], patience=20)


def test_a_full_disk_at_the_far_end_is_passed_over_or_named(hosts: Hosts) -> None:
    right = hosts.all["right"]
    right.run("sh", "-c", "head -c 70000000 /dev/zero >/tmp/full; true")
    try:
        # /tmp is full, /run and /dev/shm are too small or not offered: the home has room.
        code, said = Run(hosts, ONE % "1 s", at={"right": f"ssh://{USER}@10.77.0.3"}).end()
    finally:
        right.run("rm", "/tmp/full")
    assert code == 0, said


def test_an_agent_of_another_version_is_refused(hosts: Hosts) -> None:
    old = hosts.us.folder / "old-agent"
    old.write_text('#!/bin/sh\necho \'{"event":"hello","protocol":0,"version":"0.0.1"}\'\nsleep 1\n')
    code, said = Run(hosts, ONE % "1 s", environment={"TCPLAB_REMOTE_AGENT": "/run/keep/old-agent"}).end()
    assert code == 4, said
    assert "protocol version 0" in said
    # The number of the protocol alone does not show that it is old.
    old.write_text('#!/bin/sh\necho \'{"event":"hello","protocol":1}\'\nsleep 1\n')
    code, said = Run(hosts, ONE % "1 s", environment={"TCPLAB_REMOTE_AGENT": "/run/keep/old-agent"}).end()
    assert code == 4, said
    assert "of another version" in said
    assert "scripts/agent" in said


def test_what_login_scripts_print_does_not_disturb(hosts: Hosts) -> None:
    profile = hosts.all["right"].folder / "home/root/.bashrc"
    profile.write_text('echo Welcome; echo \'{"event": "hello"}\'; PATH=/nowhere\n')
    try:
        code, said = Run(hosts, ONE % "1 s").end()
    finally:
        profile.unlink()
    assert code == 0, said


def test_a_jump_host_of_the_users_configuration_is_used(hosts: Hosts) -> None:
    config = hosts.us.folder / "home/root/.ssh/config"
    config.write_text("Host inner\n  HostName 10.77.0.3\n  ProxyJump 10.77.0.2\n")
    try:
        run = Run(hosts, ONE % "1 s", at={"right": "ssh://inner"})
        code, said = run.end()
    finally:
        config.unlink()
    assert code == 0, said
    assert run.manifest["facts"]["hosts"]["right"]["name"] == "right"


def test_ctrl_c_ends_the_run_early_with_what_there_is(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "60 s")
    wait_for(lambda: list(run.out.glob("run-1/intervals.right.arrows")), patience=60)
    run.process.send_signal(signal.SIGINT)
    code, said = run.end()
    assert code == 130, said
    assert run.manifest["status"] == "interrupted"
    assert run.table("intervals").height > 0


def test_places_and_the_path_expected_stand_in_the_scenario(hosts: Hosts) -> None:
    network = """  hosts_at: {left: ssh://10.77.0.2, right: {ssh: 10.77.0.3, address: 10.77.0.3}}
  expect_path: {rtt: 500 ms ± 10 %, mtu: 1500 B}
flows:"""
    text = (ONE % "1 s").replace("flows:", network)
    code, said = Run(hosts, text, default_places=False).end()
    assert code == 4, said
    assert "has an RTT of" in said
    assert "not 500 ms ± 10 %" in said
    run = Run(hosts, text.replace("rtt: 500 ms ± 10 %, ", ""), default_places=False)
    code, said = run.end()
    assert code == 0, said
    [path] = run.manifest["facts"]["paths"]
    assert (path["from"], path["to"], path["mtu"], path["hops"]) == ("left", "right", 1500, 1)
    assert path["rtt"] > 0
    assert path["bandwidth"] > 1e6


def test_the_largest_packet_of_a_path_is_found_where_only_a_later_link_is_narrower(hosts: Hosts) -> None:
    right = hosts.all["right"]
    # As a tunnel on the way: what leaves is whole, what is too long is dropped without a word.
    right.run("ip", "link", "set", "eth0", "mtu", "1400")
    try:
        run = Run(hosts, ONE % "1 s")
        code, said = run.end()
    finally:
        right.run("ip", "link", "set", "eth0", "mtu", "1500")
    assert code == 0, said
    # veth lets the four bytes of a VLAN tag through beyond its MTU.
    assert 1400 <= run.manifest["facts"]["paths"][0]["mtu"] <= 1404


@pytest.mark.parametrize("probes", ["udp", "tcp"])
def test_both_ends_are_captured_and_pair(hosts: Hosts, probes: str) -> None:
    text = (ONE % "1 s").replace("cc: reno", "cc: reno, bytes: 1 MB") + "capture: headers\n"
    right = hosts.all["right"]
    if probes == "tcp":
        # The path is then measured by connections.
        right.run(
            "nft",
            "table inet walled { chain input { type filter hook input priority 0; udp dport != 0 drop; }; }",
        )
    run = Run(hosts, text)
    code, said = run.end()
    if probes == "tcp":
        right.run("nft", "delete table inet walled")
    assert code == 0, said
    assert run.manifest["facts"]["paths"][0]["by"] == probes
    ends = match_ends(run.out / "run-1/left-eth0.pcapng", run.out / "run-1/right-eth0.pcapng")
    # Real hosts have clocks of their own.
    assert not ends.same_clock
    # The flow alone: probes of the path came before; the connection over which the capture came is left out.
    assert len(ends.flows) == 1, [(flow, [way.sent for way in each]) for flow, each in ends.flows]
    [(_, ways)] = ends.flows
    assert ends.unpaired == (0, 0)
    assert sum(way.arrived for way in ways) > 10
    assert run.manifest["facts"]["nodes"]["left"]["captures"]["eth0"]["drops"] == 0


def test_this_machine_can_be_one_end(hosts: Hosts) -> None:
    run = Run(hosts, ONE % "1 s", at={"left": "local:"})
    code, said = run.end()
    assert code == 0, said
    assert run.manifest["facts"]["hosts"]["left"]["address"] == "10.77.0.1"
    assert run.table("flows")["bytes_received"].sum() > 0


def test_a_study_runs_on_real_hosts_and_need_not_run_again(hosts: Hosts) -> None:
    text = """
tcplab: 1
study: two
scenario:
  tcplab: 1
  name: one
  network:
    path: {rate: 100 Mbit/s, rtt: 20 ms}
    hosts_at: {left: ssh://10.77.0.2, right: ssh://10.77.0.3}
  flows: [{name: bulk, kind: tcp, cc: cubic}]
  duration: 1 s
engine: remote
grid: {cc: {set: flows.bulk.cc, values: [cubic, reno]}}
repeat: 1
"""
    (hosts.us.folder / "two.yaml").write_text(text)
    made = []
    for where in ("--output", "--resume"):
        words = ("study", "/run/keep/two.yaml", where, "/run/keep/study", "--json")
        done = hosts.us.run(sys.executable, "-m", "tcplab", *words, timeout=90)
        rows = pl.read_parquet(hosts.us.folder / "study/results.parquet")
        assert set(rows["status"]) == {"done"}, done.stderr
        manifests = (hosts.us.folder / "study").rglob("manifest.json")
        made.append({path: path.stat().st_mtime_ns for path in manifests})
    assert len(made[0]) == 2
    assert made[0] == made[1]
