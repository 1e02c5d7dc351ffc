"""The short run that finds what a compiler does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.cc.compiler import Source
from tcplab.cc.smoke import SmokeError, simulated

Write = Callable[..., Path]


def test_the_starting_file_carries_traffic_through_all_its_phases(control: Write) -> None:
    done = simulated(Source.read(control()))
    assert done.goodput > 5e6
    assert done.retransmits > 0
    assert set(done.phases) == {"SLOW_START", "CONGESTION_AVOIDANCE", "RECOVERY"}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("ca->reductions /= tp->snd_cwnd - tp->snd_cwnd;", "division by zero"),
        ("*(volatile u32 *)4096ul = 1;", "null or invalid pointer"),
        ("static u32 n; return 2 + n++;", "two runs with the same seed differ"),
    ],
)
def test_what_is_wrong_is_named_and_takes_nothing_else_along(
    control: Write, statement: str, said: str
) -> None:
    with pytest.raises(SmokeError, match=said):
        simulated(Source.read(control(("ca->reductions++;", statement))))


def test_a_control_that_stops_sending_is_said_to_stall(control: Write) -> None:
    stop = "sk->sk_max_pacing_rate = 1; tl_request_pacing(sk);"
    with pytest.raises(SmokeError, match=r"stalls: after [0-4]"):
        simulated(Source.read(control(("ca->reductions++;", stop))))
