"""What a run on the kernel says of its own disturbances."""

from __future__ import annotations

from typing import Any

from tcplab.engine.kernel_facts import held_up, stood_still


def test_a_sender_without_a_cpu_is_named_with_how_long_and_when() -> None:
    worst = {"thread": "bulk.0", "time": 1.5, "waited": 0.2, "share": 0.8}
    (said,) = held_up("left", {"waiting": {"total": 0.3, "worst": worst}})
    assert said.startswith("left: bulk.0 was held up: for 200 ms of the 250 ms before 1.50 s")
    assert held_up("left", {"waiting": {"total": 0.3, "worst": {**worst, "share": 0.2}}}) == []
    assert held_up("left", {"waiting": {"total": 0.0, "worst": None}}) == []


def test_a_stall_is_told_by_what_it_means_for_the_links_rtt() -> None:
    def facts(late: int) -> dict[str, Any]:
        return {
            "links": {"path": {"forward": {"lateness": {"max": late}}, "backward": {"lateness": {"max": 0}}}}
        }

    assert stood_still(facts(4_000_000), {"path": 10_000_000}) == []
    assert "path stood still for up to 6 ms" in stood_still(facts(6_000_000), {"path": 10_000_000})[0]
    assert stood_still(facts(6_000_000), {"path": 100_000_000}) == []
