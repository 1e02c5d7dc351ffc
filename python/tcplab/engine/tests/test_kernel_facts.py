"""Disturbances that a run on the kernel reports of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tcplab.engine.kernel_facts import Findings, held_up, late
from tcplab.testbed.agents import Event
from tcplab.testbed.layout import Layout


def test_a_sender_without_a_cpu_is_named_with_how_long_and_when() -> None:
    worst = {"thread": "bulk.0", "time": 1.5, "waited": 0.2, "share": 0.8}
    said = held_up("left", {"waiting": {"total": 0.3, "worst": worst}})
    assert said is not None
    assert said.startswith("left: bulk.0 was held up: for 200 ms of the 250 ms before 1.50 s")
    assert held_up("left", {"waiting": {"total": 0.3, "worst": {**worst, "share": 0.2}}}) is None
    assert held_up("left", {"waiting": {"total": 0.0, "worst": None}}) is None


def facts(late_share: float = 0.0, stall: float = 0.0, overflows: int = 0) -> Any:
    still = {"lateness": {"max": int(stall * 5e6), "stall": stall}}
    fluent = {"lateness": {"max": 50_000, "stall": 0.0}}
    return {
        "links": {"path": {"forward": still, "backward": fluent}},
        "lateness": {"late_share": late_share},
        "overflows": overflows,
    }


def test_the_verdict_names_what_exceeds_its_limit() -> None:
    assert late(facts(late_share=0.091)) == ["9.1 % of the packets were delivered late"]
    assert late(facts(0.004, stall=14.2)) == ["link path stalled for up to 71 ms"]
    lost, share, still = late(facts(0.02, stall=2.0, overflows=7))
    assert lost == "7 packets dropped between a node and the emulator"
    assert share.startswith("2.0 % of")
    assert still == "link path stalled for up to 10 ms"


def test_a_thread_without_a_cpu_is_overload_though_no_packet_was_late() -> None:
    plan: Any = {"flows": [], "nodes": []}
    findings = Findings(plan, Layout(plan, False, (), ()))
    findings.note(Event(":emulator", "done", {"facts": {**facts(), "excess": 0.2, "overloaded": False}}))
    assert "overload" not in findings.to_facts()
    worst = {"thread": "bulk.0", "time": 1.5, "waited": 0.2, "share": 0.8}
    findings.note(Event("left", "done", {"facts": {"waiting": {"total": 0.3, "worst": worst}}}))
    assert findings.excess == pytest.approx(3.2)
    assert "bulk.0 was held up" in findings.to_facts()["overload"]
    assert findings.to_facts()["overload"].endswith("the machine, not TCP, limited the result")


def test_packets_dropped_where_nothing_emulates_are_overload() -> None:
    plan: Any = {"flows": [], "nodes": []}
    ends = (
        SimpleNamespace(node="a", name="eth0", emulated=False),
        SimpleNamespace(node="a", name="eth1", emulated=True),
    )
    layout: Any = SimpleNamespace(wires=[SimpleNamespace(ends=ends)])
    findings = Findings(plan, layout)
    # The emulator counts those of its own interfaces.
    findings.note(Event("a", "done", {"facts": {"dropped": {"eth1": 5}}}))
    assert "overload" not in findings.to_facts()
    findings.note(Event("a", "done", {"facts": {"dropped": {"eth0": 68, "eth1": 5}}}))
    assert findings.to_facts()["overload"].startswith(
        "68 packets of a dropped at eth0: the queue of arrivals at the other end was full"
    )
    assert findings.excess == 69


def test_an_accelerator_that_was_full_is_warned_of() -> None:
    plan: Any = {"flows": [], "nodes": []}
    findings = Findings(plan, Layout(plan, False, (), ()))
    counts = {"accepted": 10, "broken": 0, "refused": 0, "passed": 0}
    findings.note(Event("gateway", "done", {"facts": {"accelerator": counts}}))
    assert findings.warnings == []
    findings.note(Event("gateway", "done", {"facts": {"accelerator": {**counts, "passed": 1}}}))
    [warning] = findings.warnings
    assert warning.startswith("gateway: the accelerator was full, and connections passed unsplit: raise its")
    findings.note(Event("gateway", "done", {"facts": {"accelerator": {**counts, "refused": 2}}}))
    assert findings.warnings[1].startswith(
        "gateway: the accelerator was full, and reset 2 connections: raise"
    )
