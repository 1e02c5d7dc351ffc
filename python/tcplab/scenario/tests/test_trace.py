"""Delivery traces."""

from pathlib import Path
from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, load

FILE = """tcplab: 1
name: test
network: {path: {trace: slow.down, rtt: 10 ms, queue: 20 ms}}
flows: [{name: bulk, kind: tcp, window: 2 BDP}]
"""


def made(folder: Path, trace: bytes) -> Any:
    (folder / "slow.down").write_bytes(trace)
    (folder / "test.yaml").write_text(FILE, encoding="utf-8")
    return expand(load(folder / "test.yaml"))


def test_a_trace_is_a_millisecond_a_line(tmp_path: Path) -> None:
    trace = made(tmp_path, b"1\n1\n 3 \r\n10")["links"][0]["forward"]["trace"]
    assert trace == {"opportunities_ms": [1, 1, 3, 10]}


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
def test_what_is_not_a_trace_is_refused_with_its_line(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(ScenarioErrors, match=message):
        made(tmp_path, text)


def test_a_trace_stands_in_for_the_rate(tmp_path: Path) -> None:
    plan = made(tmp_path, b"1\n2\n3\n4\n")
    forward, backward = plan["links"][0]["forward"], plan["links"][0]["backward"]
    assert (forward["rate"], forward["trace"]) == (None, {"opportunities_ms": [1, 2, 3, 4]})
    assert (backward["rate"], backward["trace"]) == (None, None)
    # 20 ms and 10 ms at the mean rate of 12 Mbit/s.
    assert forward["queue"]["limit"] == {"bytes": 30_000}
    assert plan["flows"][0]["sender"]["send_buffer"] == 30_000
