"""Warnings about a run on real hosts."""

from __future__ import annotations

from typing import Any

from tcplab.engine.remote.findings import Findings
from tcplab.testbed.agents import Event


def test_packets_that_an_interface_did_not_send_are_a_warning() -> None:
    plan: Any = {"nodes": []}
    findings = Findings(plan)
    facts: dict[str, Any] = {"waiting": {"total": 0.0, "worst": None}, "dropped": {}}
    findings.note(Event("left", "done", {"facts": facts}))
    assert findings.warnings == []
    findings.note(Event("right", "done", {"facts": {**facts, "dropped": {"eth0": 7}}}))
    assert findings.warnings == ["right: eth0 dropped 7 outgoing packets (of all programs)"]
