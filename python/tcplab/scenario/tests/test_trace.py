"""Delivery traces."""

from pathlib import Path

import pytest

from tcplab.scenario import expand, load
from tcplab.scenario.trace import TraceError, mean_rate, parse


def test_a_trace_is_a_millisecond_a_line() -> None:
    assert parse(b"1\n1\n 3 \r\n10") == [1, 1, 3, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"1\n\n3\n", "malformed in line 2: not a whole number"),
        (b"1\n-2\n", "malformed in line 2: not a whole number"),
        (b"5\n3\n", "malformed in line 2: the time is before"),
        (b"0\n0\n", "malformed in line 2: the last time is the trace's period"),
        (b"\xff\n", "malformed in line 1"),
        (b"9999999999999\n", "malformed in line 1"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(text: bytes, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        parse(text)


def test_the_mean_rate_counts_1500_bytes_each() -> None:
    assert mean_rate([1, 2, 3, 4]) == 12_000_000


def test_a_trace_stands_in_for_the_rate(tmp_path: Path) -> None:
    (tmp_path / "slow.down").write_text("1\n2\n3\n4\n", encoding="utf-8")
    file = tmp_path / "test.yaml"
    file.write_text(
        "tcplab: 1\nname: test\nnetwork: {path: {trace: slow.down, rtt: 10 ms, queue: 20 ms}}\n"
        "flows: [{name: bulk, kind: tcp, window: 2 BDP}]\n",
        encoding="utf-8",
    )
    made = expand(load(file))
    forward, backward = made["links"][0]["forward"], made["links"][0]["backward"]
    assert (forward["rate"], forward["trace"]) == (None, {"opportunities_ms": [1, 2, 3, 4]})
    assert (backward["rate"], backward["trace"]) == (None, None)
    # 20 ms and 10 ms at the mean rate of 12 Mbit/s.
    assert forward["queue"]["limit"] == {"bytes": 30_000}
    assert made["flows"][0]["sender"]["send_buffer"] == 30_000
