"""Links are measured before traffic: of a network that stays up, and of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tcplab.api import RunFailedError
from tcplab.results import Run
from tcplab.results.certificate import described
from tcplab.scenario import expand, from_data
from tcplab.testbed import held, verification
from tcplab.testbed.errors import TestbedError

NAME = f"verified-{os.getpid()}"


def plan(**settings: Any) -> Any:
    flow = {"name": "probe", "kind": "ping", "from": "a", "to": "b"}
    network = {"nodes": ["a", "b"], "links": [{"ends": ["a", "b"], **settings}]}
    return expand(from_data({"tcplab": 1, "name": "verified", "network": network, "flows": [flow]}))


def certificate(of: Any) -> Any:
    """That of a network which is up for a moment."""
    lab = held.up(of, NAME, "verified.yaml")
    held.down(NAME)
    return lab.about["verification"]


def test_a_link_proves_its_settings() -> None:
    back = {"loss": "0 %", "queue": "60 packets"}
    found = certificate(plan(rate="20 Mbit/s", delay="10 ms", loss="5 %", reverse=back))
    there, here = ({one["what"]: one for one in way["measured"]} for way in found["directions"])
    assert "off" not in {one["verdict"] for one in (*there.values(), *here.values())}
    assert there["loss"]["verdict"] == "ok"
    assert there["loss"]["measured"] > 0
    assert here["loss"]["measured"] == 0
    # Never before its time; how much later is the machine's.
    assert there["delay"]["measured"] >= 0.0099
    assert there["queue limit"]["verdict"] == "not_verified"
    assert described(found).startswith("1 link verified in ")


def test_a_link_that_is_off_is_refused_with_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    real = verification._directions

    def slower(layout: Any) -> Any:
        """The measurement is held against four times the delay."""
        for one in real(layout):
            yield {**one, "plan": {**one["plan"], "delay": 4 * one["plan"]["delay"]}}

    monkeypatch.setattr(verification, "_directions", slower)
    with pytest.raises(TestbedError, match=r"a-b forward: delay .*, asked 2 s"):
        held.up(plan(delay="500 ms"), NAME, "verified.yaml")
    assert NAME not in held.names()


def test_verification_can_be_left_out() -> None:
    assert certificate({**plan(delay="1 ms"), "verify": False}) is None


PATH = {"path": {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": "50 packets"}}
PING = {"name": "ping", "kind": "ping", "interval": "500 ms", "stop": "10.1 s"}


def test_a_run_of_more_than_ten_seconds_has_a_certificate_and_no_probes_in_its_counts(
    run: Callable[..., Run],
) -> None:
    done = run(PATH, [PING])
    found = done.manifest.facts["verification"]
    assert found["plan"] == done.manifest.plan_digest
    for one in found["directions"]:
        verdicts = {finding["what"]: finding["verdict"] for finding in one["measured"]}
        assert "off" not in verdicts.values()
        assert verdicts["delay"] == verdicts["loss"] == "ok"
    for one in done.manifest.facts["emulator"]["links"].values():
        # Echo requests one way, replies the other.
        assert one["forward"]["packets_in"] == one["backward"]["packets_in"] == len(done.pings)


def test_shorter_runs_are_verified_when_they_ask_for_it(run: Callable[..., Run]) -> None:
    short = PING | {"stop": "1 s"}
    assert "verification" not in run(PATH, [short]).manifest.facts
    assert "verification" in run(PATH, [short], verify="on").manifest.facts


def test_a_run_whose_link_is_off_fails_with_figures(
    run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = verification._directions

    def slower(layout: Any) -> Any:
        """The measurement is held against a hundred times the delay."""
        for one in real(layout):
            yield {**one, "plan": {**one["plan"], "delay": 100 * one["plan"]["delay"]}}

    monkeypatch.setattr(verification, "_directions", slower)
    with pytest.raises(RunFailedError, match=r"forward: delay .*, asked 1 s"):
        run(PATH, [PING])
