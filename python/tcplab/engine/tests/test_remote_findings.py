"""Warnings about a run on real hosts."""

from __future__ import annotations

from typing import Any

import pytest

from tcplab.engine.remote.examine import findings
from tcplab.engine.remote.findings import ALLOWED_CONTROLS, Findings
from tcplab.testbed.agents import Event
from tcplab.testbed.doctor import Grade


def test_packets_that_an_interface_did_not_send_are_a_warning() -> None:
    plan: Any = {"nodes": []}
    findings = Findings(plan)
    facts: dict[str, Any] = {"waiting": {"total": 0.0, "worst": None}, "dropped": {}}
    findings.note(Event("left", "done", {"facts": facts}))
    assert findings.warnings == []
    findings.note(Event("right", "done", {"facts": {**facts, "dropped": {"eth0": 7}}}))
    assert findings.warnings == ["right: eth0 dropped 7 outgoing packets (of all programs)"]


@pytest.mark.parametrize("net_admin", [True, False])
def test_doctor_names_the_controls_that_the_user_may_choose(net_admin: bool) -> None:
    able: dict[str, Any] = {"controls": ["reno", "bbr", "cubic"], "net_admin": net_admin}
    able |= {"net_raw": False, "rmem_max": None, "wmem_max": None}
    host: dict[str, Any] = {"name": "left", "kernel": "6", "machine": "x86_64", "cpus": 2, "cpu_model": None}
    host |= {"sysctls": {ALLOWED_CONTROLS: "reno bbr"}, "loads_controls": True, "interfaces": {}}
    found = findings({"capabilities": able, "version": "0.1.0"}, host, service=False)
    [one] = [finding for finding in found if finding.name == "congestion controls"]
    if net_admin:
        assert (one.grade, one.message) == (Grade.OK, "reno, bbr, cubic")
    else:
        assert (one.grade, one.message) == (Grade.WARN, "reno, bbr; this user may not choose cubic")
        assert one.hint == f"there: sudo sysctl -w {ALLOWED_CONTROLS}='reno bbr cubic'"
