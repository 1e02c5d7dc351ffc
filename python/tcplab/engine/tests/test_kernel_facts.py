"""What a run on the kernel says of its own disturbances."""

from __future__ import annotations

from typing import Any

from tcplab.engine.kernel_facts import held_up, verdict


def test_a_sender_without_a_cpu_is_named_with_how_long_and_when() -> None:
    worst = {"thread": "bulk.0", "time": 1.5, "waited": 0.2, "share": 0.8}
    (said,) = held_up("left", {"waiting": {"total": 0.3, "worst": worst}})
    assert said.startswith("left: bulk.0 was held up: for 200 ms of the 250 ms before 1.50 s")
    assert held_up("left", {"waiting": {"total": 0.3, "worst": {**worst, "share": 0.2}}}) == []
    assert held_up("left", {"waiting": {"total": 0.0, "worst": None}}) == []


def facts(late_share: float = 0.0, stall: float = 0.0, overflows: int = 0) -> dict[str, Any]:
    still = {"lateness": {"max": int(stall * 5e6), "stall": stall}}
    fluent = {"lateness": {"max": 50_000, "stall": 0.0}}
    return {
        "links": {"path": {"forward": still, "backward": fluent}},
        "lateness": {"late_share": late_share},
        "overflows": overflows,
    }


def test_the_verdict_names_what_exceeds_its_limit() -> None:
    set_by = "the machine, not TCP, set the result"
    assert verdict(facts(late_share=0.091)) == f"9.1% of the packets were delivered late: {set_by}"
    assert verdict(facts(0.004, stall=14.2)) == f"link path stood still for up to 71 ms: {set_by}"
    both = verdict(facts(0.02, stall=2.0, overflows=7))
    assert both.startswith("7 packets found no room between a node and the emulator and 2.0% of")
    assert "link path stood still for up to 10 ms" in both
