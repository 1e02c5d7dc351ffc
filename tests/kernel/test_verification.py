"""Links are measured before traffic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

import tcplab
from tcplab.results import Run
from tcplab.testbed import verification

PING = [{"name": "probe", "kind": "ping", "interval": "50 ms", "from": "a", "to": "b"}]


def network(**settings: Any) -> dict[str, Any]:
    return {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], **settings}]}


def findings(done: Run) -> dict[str, dict[str, Any]]:
    """What was found of the direction there, by property."""
    certificate = done.manifest.facts["verification"]
    assert certificate["plan"] == done.manifest.plan_digest
    return {found["what"]: found for found in certificate["directions"][0]["measured"]}


def test_a_link_proves_its_settings(run: Callable[..., Run]) -> None:
    asked = network(
        rate="20 Mbit/s", delay="10 ms", loss="5 %", backward={"loss": "0 %", "queue": "60 packets"}
    )
    done = run(asked, PING, duration="1 s", verify="on")
    found = findings(done)
    assert {one["verdict"] for one in found.values()} <= {"ok", "not_verified"}
    assert found["loss"]["verdict"] == "ok"
    assert found["loss"]["measured"] > 0
    assert found["delay"]["measured"] >= 0.0099
    there = done.manifest.facts["verification"]["directions"][1]["measured"]
    limit = next(one for one in there if one["what"] == "queue limit")
    assert limit["verdict"] in ("ok", "not_verified")


def test_a_short_run_is_not_verified_unless_it_asks(run: Callable[..., Run]) -> None:
    assert "verification" not in run(network(delay="1 ms"), PING, duration="1 s").manifest.facts


def test_a_link_that_is_off_stops_the_run_with_figures(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for = verification._directions

    def more(layout: Any) -> Any:
        """What is measured is held against four times the delay."""
        for one in ask_for(layout):
            yield {**one, "plan": {**one["plan"], "delay": 4 * one["plan"]["delay"]}}

    monkeypatch.setattr(verification, "_directions", more)
    with pytest.raises(tcplab.RunFailedError, match=r"a-b forward: delay .* asked 2 s"):
        run(network(delay="500 ms"), PING, duration="1 s", verify="on")


def test_the_certificate_is_signed_with_the_plan() -> None:
    class Nothing:
        wires = ()

    made = verification.measured(Nothing(), "plan", lambda _: {"directions": [], "seconds": 0.1})  # type: ignore[arg-type]
    again = {key: value for key, value in made.items() if key != "digest"}
    text = json.dumps(again, sort_keys=True, separators=(",", ":"))
    assert made["digest"] == hashlib.sha256(text.encode()).hexdigest()
