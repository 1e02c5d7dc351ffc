"""The words about a network whose links were measured."""

from __future__ import annotations

from tcplab.results.certificate import described


def measured(what: str, reason: str = "") -> dict[str, str]:
    return {"what": what, "verdict": "not_verified" if reason else "ok", "reason": reason}


def test_properties_that_were_not_verified_have_their_reason_once() -> None:
    found = [measured("delay"), measured("queue limit", "too slow to fill it")]
    certificate = {
        "seconds": 1.24,
        "directions": [{"link": "a-b", "measured": found}, {"link": "b-c", "measured": found}],
    }
    verified, left = described(certificate).split("; ")
    assert verified == "2 links verified in 1.2 s"
    assert left == "2 of 4 properties could not be verified (queue limit: too slow to fill it)"
    whole = {"seconds": 1.24, "directions": [{"link": "a-b", "measured": [measured("delay")]}]}
    assert described(whole) == "1 link verified in 1.2 s"
