"""The reported limit of a flow."""

import pytest

from tcplab.analysis.limits import Windows, limited_by, path_of
from tcplab.results.tests.synthetic import plan

WIDE = Windows(used=100e3, send_buffer=10e6, receive_window=10e6)


@pytest.mark.parametrize(
    ("metrics", "windows", "utilization", "limit"),
    [
        ({"rwnd_limited": 0.6, "sndbuf_limited": 0.3}, WIDE, 0.99, "receive window"),
        ({"rwnd_limited": 0.3, "sndbuf_limited": 0.6}, WIDE, 0.99, "send buffer"),
        ({"rwnd_limited": 0.4, "sndbuf_limited": 0.4, "retransmits": 9}, WIDE, 0.96, "link"),
        ({"retransmits": 9}, Windows(90e3, 10e6, 100e3), 0.5, "receive window"),
        ({"retransmits": 9}, Windows(80e3, 10e6, 100e3), 0.5, "loss"),
        # Of a send buffer's memory 63 % is payload.
        ({"retransmits": 9}, Windows(60e3, 100e3, 10e6), 0.5, "send buffer"),
        ({"retransmits": 9}, Windows(50e3, 100e3, 10e6), 0.5, "loss"),
        ({"retransmits": 0}, WIDE, 0.5, "slow start"),
        ({"retransmits": 0, "rwnd_limited": 0.05, "sndbuf_limited": 0.2}, WIDE, 0.5, "send buffer"),
        ({"retransmits": 0, "rwnd_limited": 0.2, "sndbuf_limited": 0.15}, WIDE, 0.5, "receive window"),
        ({"retransmits": 0, "rwnd_limited": 0.05, "sndbuf_limited": 0.05}, WIDE, 0.5, "slow start"),
        ({"retransmits": 9, "sndbuf_limited": 0.2}, WIDE, 0.5, "loss"),
        ({"retransmits": 0, "marked": 1}, WIDE, 0.5, "marks"),
        ({"retransmits": 9, "marked": 40}, WIDE, 0.5, "marks"),
        ({"retransmits": 9, "marked": 9}, WIDE, 0.5, "loss"),
        ({"marked": 40}, WIDE, 0.96, "link"),
        ({"marked": 40, "rwnd_limited": 0.6}, WIDE, 0.5, "receive window"),
        ({}, Windows(None, None, None), None, "slow start"),
    ],
)
def test_the_first_reason_that_holds_is_named(
    metrics: dict[str, float | None], windows: Windows, utilization: float | None, limit: str
) -> None:
    assert limited_by(metrics, windows, utilization) == limit


def test_the_laws_are_given_the_plan_s_path() -> None:
    made = plan({"one": "reno"})
    made["links"][0]["forward"]["loss"] = {"model": {"kind": "random", "chance": {"rate": 10**7}}}
    path = path_of(made, "one")
    assert path is not None
    assert (path.rate, path.mss) == (10e6, 1460)
    assert (path.rtt, path.loss) == pytest.approx((0.1, 0.01))
    assert path_of(made, "another") is None
