"""Ways to hosts: three of them, other ports, IPv6, and shared connections of ssh."""

from __future__ import annotations

import polars as pl

from .hosts import SSHD, USER, Hosts, wait_for
from .running import Run
from .test_remote import ONE

THREE = """
tcplab: 1
name: beside-the-load
network:
  nodes: [left, right, third]
  links:
    - {ends: [left, right], rate: unlimited}
    - {ends: [third, right], rate: unlimited}
flows:
  - {name: first, from: left, to: right, kind: tcp, cc: reno, duration: 1 s}
  - {name: second, from: left, to: right, kind: tcp, cc: reno, start: 1 s, duration: 1 s}
  - {name: several, from: third, to: right, kind: tcp, cc: reno, start: 1 s, duration: 1 s}
  - {name: latency, from: third, to: right, kind: echo, sizes: [1], iterations: 20, interval: 20 ms}
  - {name: ping, from: third, to: right, kind: ping, interval: 50 ms, duration: 2 s}
duration: 2 s
"""
THIRD = {"third": "ssh://10.77.0.4"}


def test_a_third_host_measures_latency_beside_a_load_of_others(hosts: Hosts) -> None:
    run = Run(hosts, THREE, at=THIRD)
    code, said = run.end()
    assert code == 0, said
    flows = run.table("flows")
    assert (flows.filter(pl.col("flow") != "ping")["bytes_received"] > 0).all()
    assert run.table("pings").filter(~pl.col("lost")).height > 10
    assert run.table("echoes").filter(pl.col("flow") == "latency")["count"].sum() == 20
    # One load after the other, and then one of each host to the same server.
    starts = dict(flows.select("flow", "start").iter_rows())
    assert starts["first"] < 1_000_000_000 <= min(starts["second"], starts["several"])
    facts = run.manifest["facts"]
    assert sorted(facts["hosts"]) == sorted(facts["clocks"]) == ["left", "right", "third"]
    pairs = [(path["from"], path["to"]) for path in facts["paths"]]
    assert pairs == [("left", "right"), ("third", "right")]
    for name in ("left", "right", "third"):
        wait_for(lambda name=name: hosts.all[name].left() == [], patience=8)


def test_a_flow_that_asks_for_ipv6_and_runs_over_ipv4_is_warned_of(hosts: Hosts) -> None:
    text = (ONE % "1 s").replace("kind: tcp", "kind: tcp, ip: 6")
    run = Run(hosts, text)
    code, said = run.end()
    assert code == 0, said
    [warning] = [one for one in run.manifest["warnings"] if "IPv" in one]
    assert "runs over IPv4, not IPv6: right is reached at 10.77.0.3" in warning
    assert "--at 'right=ssh://10.77.0.3?address=ADDRESS'" in warning
    known = {"right": "ssh://10.77.0.3?address=fd77::3"}
    for host, address in (("left", "fd77::2"), ("right", "fd77::3")):
        hosts.all[host].run("ip", "address", "add", f"{address}/64", "dev", "eth0", "nodad")
    try:
        run = Run(hosts, text, at=known)
        code, said = run.end()
    finally:
        for host, address in (("left", "fd77::2"), ("right", "fd77::3")):
            hosts.all[host].run("ip", "address", "del", f"{address}/64", "dev", "eth0")
    assert code == 0, said
    assert not any("IPv" in one for one in run.manifest["warnings"])


def test_an_ipv6_literal_with_another_port_is_reached(hosts: Hosts) -> None:
    left, right, us = hosts.all["left"], hosts.all["right"], hosts.us
    for host, address in ((us, "fd77::1"), (left, "fd77::2"), (right, "fd77::3")):
        host.run("ip", "address", "add", f"{address}/64", "dev", "eth0", "nodad")
    config = right.folder / "ssh/config"
    other = config.read_text().replace("ListenAddress 10.77.0.3", "ListenAddress [fd77::3]:2222")
    (right.folder / "ssh/config6").write_text(other.replace("ssh/pid", "ssh/pid6"))
    server = right.start(SSHD, "-D", "-e", "-f", "/run/keep/ssh/config6")
    wait_for((right.folder / "ssh/pid6").exists)
    known = us.folder / "home/root/.ssh/known_hosts"
    before = known.read_text()
    key = " ".join((right.folder / "ssh/host.pub").read_text().split()[:2])
    known.write_text(f"{before}[fd77::3]:2222 {key}\n")
    try:
        run = Run(hosts, ONE % "1 s", at={"right": "ssh://[fd77::3]:2222"})
        code, said = run.end()
    finally:
        known.write_text(before)
        server.terminate()
        server.wait(10)
        for host, address in ((us, "fd77::1"), (left, "fd77::2"), (right, "fd77::3")):
            host.run("ip", "address", "delete", f"{address}/64", "dev", "eth0")
    assert code == 0, said
    assert run.manifest["facts"]["hosts"]["right"]["address"] == "fd77::3"
    assert run.table("flows")["bytes_received"].sum() > 0


def test_a_connection_that_other_commands_share_serves_and_outlives_the_run(hosts: Hosts) -> None:
    us = hosts.us
    config = us.folder / "home/root/.ssh/config"
    config.write_text(
        "Host *\n  ControlMaster auto\n  ControlPath /tmp/home/root/.ssh/m-%h\n  ControlPersist 60\n"
    )
    try:
        for _ in range(2):
            run = Run(hosts, ONE % "1 s")
            code, said = run.end()
            assert code == 0, said
            us.run("ssh", "-O", "check", "10.77.0.3")
            wait_for(lambda: hosts.all["right"].agents() == [], patience=8)
    finally:
        for address in ("10.77.0.2", "10.77.0.3"):
            us.run("ssh", "-O", "exit", address, check=False)
        config.unlink()


def test_a_host_without_room_anywhere_is_named_with_each_place(hosts: Hosts) -> None:
    right = hosts.all["right"]
    right.run("sh", "-c", f"head -c 70000000 /dev/zero >/tmp/full; chown root /tmp/home/{USER}")
    try:
        code, said = Run(hosts, ONE % "1 s", at={"right": f"ssh://{USER}@10.77.0.3"}).end()
    finally:
        right.run("sh", "-c", f"rm /tmp/full; chown 4001 /tmp/home/{USER}")
    assert code == 4, said
    assert "right: no directory can hold the agent" in said
    assert "/tmp (disk full)" in said
    assert "/dev/shm (disk full)" in said
    assert right.left() == []


def test_a_host_without_gzip_takes_the_agent_as_it_is(hosts: Hosts) -> None:
    right = hosts.all["right"]
    right.run("mount", "--bind", "/dev/null", "/usr/bin/gzip")
    try:
        assert right.run("sh", "-c", "command -v gzip", check=False).returncode != 0
        code, said = Run(hosts, ONE % "1 s").end()
    finally:
        right.run("umount", "/usr/bin/gzip")
    assert code == 0, said
    assert right.left() == []


def test_a_host_of_ssh_config_alone_is_reached_from_this_machine(hosts: Hosts) -> None:
    """Its name cannot be resolved."""
    config = hosts.us.folder / "home/root/.ssh/config"
    config.write_text("Host known-to-ssh\n  HostName 10.77.0.3\n")
    try:
        run = Run(hosts, ONE % "1 s", at={"left": "local:", "right": "ssh://known-to-ssh"})
        code, said = run.end()
    finally:
        config.unlink()
    assert code == 0, said
    described = run.manifest["facts"]["hosts"]
    assert [described[name]["address"] for name in ("left", "right")] == ["10.77.0.1", "10.77.0.3"]


def test_a_link_local_address_does_not_do_for_flows(hosts: Hosts) -> None:
    """Each end would have to name its own interface."""
    code, said = Run(hosts, ONE % "1 s", at={"right": "ssh://10.77.0.3?address=fe80::77%25eth0"}).end()
    assert code == 4
    assert "right was reached at fe80::77%eth0, a link-local address: flows need another" in said
    assert "?address=ADDRESS" in said
