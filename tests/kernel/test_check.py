"""`check` says beforehand what this machine cannot do, and the exact command that fixes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcplab
from tcplab.engine import kernel_check
from tcplab.engine.base import Problem
from tcplab.scenario import ScenarioErrors
from tcplab.testbed.probe import Probed

PATH = {"path": {"rate": "10 Mbit/s", "rtt": "10 ms"}}
BULK = {"name": "f", "kind": "tcp"}


def check(
    flow: dict[str, Any] | None = None, network: dict[str, Any] | None = None, **more: Any
) -> list[Problem]:
    flows = [{**BULK, **(flow or {})}]
    scenario = {"tcplab": 1, "name": "t", "network": network or PATH, "flows": flows, "duration": "1 s"}
    return tcplab.check({**scenario, **more}, engine="kernel")


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def test_what_the_machine_can_do_is_not_refused() -> None:
    assert check() == []


def test_a_window_the_kernel_would_cut_is_refused_with_the_command_that_raises_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_check, "_unlimited", lambda: False)
    limit = int(Path("/proc/sys/net/core/wmem_max").read_text(encoding="ascii"))
    problem = only(check({"send_buffer": f"{limit + 1} B"}))
    assert problem.where == "flows.f.send_buffer"
    assert problem.fix == f"sudo sysctl -w net.core.wmem_max={limit + 1}"
    assert check({"send_buffer": f"{limit} B"}) == []


@pytest.mark.skipif(not Path("/usr/sbin/tc").exists(), reason="needs tc where distributions have it")
def test_programs_of_administrators_need_not_be_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    network = {"path": {**PATH["path"], "left": {"nic": {"rate": "100 Mbit/s"}}}}
    assert check(network=network) == []
    flows = [{**BULK, "duration": "100 ms"}]
    scenario = {"tcplab": 1, "name": "t", "network": network, "flows": flows, "duration": "300 ms"}
    assert tcplab.run(scenario, engine="kernel", output=tmp_path / "out").status == "done"


def test_netem_has_no_shared_medium() -> None:
    link = {"ends": ["a", "b"], "medium": "air", "rate": "10 Mbit/s", "delay": "1 ms"}
    network = {"nodes": ["a", "b"], "media": ["air"], "links": [link]}
    emulators = ("tcplab", "netem")
    found = [check({"from": "a", "to": "b"}, network, emulator=emulator) for emulator in emulators]
    ours, netems = ([one for one in problems if one.where == "links.a-b.medium"] for problems in found)
    assert ours == []
    assert only(netems).fatal


def test_a_window_no_kernel_has_is_refused_whoever_asks() -> None:
    assert "at most" in only(check({"receive_buffer": "2 GB"})).message


@pytest.mark.parametrize(("generator", "most"), [("native", 32_767), ("iperf3", 9_216)])
def test_an_mss_that_no_socket_takes_is_refused(generator: str, most: int) -> None:
    """A wide MTU has one, whose segments the simulator sends."""
    wide = {"path": {**PATH["path"], "mtu": "60000 B"}}
    problem = only(check({"generator": generator}, wide))
    assert problem.where == "flows.f.mss"
    assert f"59960 B: {most} B at most" in problem.message
    assert problem.fatal
    assert check({"generator": generator, "mss": f"{most} B"}, wide) == []


def test_an_unknown_control_is_refused_with_those_there_are() -> None:
    with pytest.raises(ScenarioErrors, match="unknown congestion control `nonesuch`"):
        check({"cc": "nonesuch"})


def test_bbr1_is_the_kernels_bbr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_check, "available", lambda: ["reno", "bbr"])
    assert check({"cc": "bbr1"}) == []


def test_the_kernels_controls_take_no_parameters() -> None:
    assert "beta" in only(check({"cc": {"name": "reno", "beta": 0.8}})).message


def test_a_missing_iperf3_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert only(check({"generator": "iperf3"})).fix == "sudo apt-get install iperf3"


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"kind": "udp", "rate": "1 Mbit/s", "spacing": "exponential"}, "spacing"),
        ({"kind": "tcp", "pattern": {"on": "1 s", "off": "1 s"}}, "pattern"),
    ],
)
def test_what_iperf3_cannot_send_is_refused(settings: dict[str, Any], key: str) -> None:
    found = [one for one in check({"generator": "iperf3", **settings}) if f"`{key}`" in one.fix]
    assert only(found).fatal
    assert check(settings) == []


def test_an_iperf3_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "iperf3"
    program.write_text("#!/bin/sh\necho 'iperf 3.9 (cJSON 1.7.13)'\n", encoding="ascii")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "3.9" in only(check({"generator": "iperf3"})).message


def test_a_setting_of_the_whole_machine_is_refused() -> None:
    hosts = {"path": {**PATH["path"], "left": {"sysctls": {"net.core.rmem_max": 1}}}}
    problem = only(check(network=hosts))
    assert problem.where == "nodes.left.sysctls.net.core.rmem_max"
    assert "whole machine" in problem.message


def test_a_setting_the_kernel_does_not_have_is_refused() -> None:
    hosts = {"path": {**PATH["path"], "left": {"sysctls": {"net.ipv4.tcp_nonesuch": 1}}}}
    assert "no setting" in only(check(network=hosts)).message


def test_a_cpu_that_is_not_there_is_refused() -> None:
    assert "no CPU 999" in only(check(network={"path": {**PATH["path"], "left": {"cpus": 999}}})).message


def without(monkeypatch: pytest.MonkeyPatch, **missing: str) -> None:
    """A machine that has everything but this."""
    have: dict[str, Any] = {"netem": None, "ipv6": None, **missing}
    monkeypatch.setattr(kernel_check, "probe", lambda sysctls: Probed(privileged=True, **have))


def test_a_kernel_without_netem_is_refused_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, netem="Specified qdisc kind is unknown")
    problem = only([one for one in check(emulator="netem") if one.fatal])
    assert problem.where == "emulator"
    assert "modprobe sch_netem" in problem.fix
    assert check() == []


def test_what_netem_cannot_do_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    path = {"path": {"rate": "10 Mbit/s", "rtt": "10 ms", "queue": "9 packets", "loss": {"packets": [1, 2]}}}
    found = check(network=path, emulator="netem", capture="headers", sample={"packets": "on"})
    assert [one.where for one in found if one.fatal] == [
        "links.path.forward.loss",
        "sample.packets",
        "capture.at",
    ]


def test_a_flow_over_ipv6_needs_a_kernel_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, ipv6="Address family not supported by protocol")
    problem = only(check({"ip": 6}))
    assert problem.where == "flows.f.ip"
    assert problem.fix
    assert check() == []


def test_more_nodes_than_sensible_are_refused() -> None:
    nodes = [f"n{number}" for number in range(600)]
    links = [{"ends": ["n0", node]} for node in nodes[1:]]
    found = check({"from": "n0", "to": "n1"}, {"nodes": nodes, "links": links})
    assert any("600 nodes" in problem.message for problem in found)


def test_more_pollers_than_cpus_are_warned_of() -> None:
    problem = only(check({"kind": "echo", "clients": 500, "busy_poll": "on"}))
    assert problem.where == "flows.f.busy_poll"
    assert not problem.fatal
