"""Random times of sources: both engines draw the same ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tcplab.results import Run

PAUSES = {"on": "120 ms", "off": "80 ms", "distribution": "exponential"}


def source(name: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "kind": "udp", "rate": "800 kbit/s", "payload": "200 B", "streams": 2, **settings}


FLOWS = [
    source("steady", spacing="exponential"),
    source("bursts", pattern=PAUSES),
    source("both", pattern=PAUSES, spacing="exponential"),
]
NETWORK = {"path": {"rate": "100 Mbit/s", "rtt": "10 ms"}}


def sent(done: Run) -> dict[tuple[str, int], int]:
    """Datagrams sent by flow and stream."""
    rows = done.flows.select("flow", "stream", "segments_sent").rows()
    return {(flow, stream): count for flow, stream, count in rows}


@pytest.mark.parametrize("seed", [1, 2])
def test_datagrams_leave_at_the_same_times(
    seed: int, run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    simulated = sent(run(NETWORK, FLOWS, engine="sim", duration="3 s", seed=seed))
    real = sent(undisturbed(lambda: run(NETWORK, FLOWS, duration="3 s", seed=seed)))
    assert len(set(simulated.values())) > 3, "streams and flows draw times of their own"
    # One that is due as the run ends may miss it.
    differences = {stream: real[stream] - count for stream, count in simulated.items()}
    assert max(map(abs, differences.values())) <= 1, differences


def test_connections_write_and_pause_at_the_same_times(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    pauses = {"on": "200 ms", "off": "500 ms", "distribution": "exponential"}
    # The size of a buffer that is tuned depends on how the kernel is configured.
    buffer = {"send_buffer": "64 KiB"}
    names = ("one", "other")
    flows = [{"name": name, "kind": "tcp", "pattern": pauses, **buffer} for name in names]
    network = {"path": {"rate": "20 Mbit/s", "rtt": "10 ms", "queue": "30 packets"}}

    def shares(done: Run) -> dict[str, list[bool]]:
        """By flow: whether data arrived, in each interval."""
        received = {
            name: done.intervals.filter(flow=name).sort("time")["bytes_received"].to_list() for name in names
        }
        return {name: [count > 0 for count in counts] for name, counts in received.items()}

    simulated = shares(run(network, flows, engine="sim", duration="4 s"))
    real = shares(undisturbed(lambda: run(network, flows, duration="4 s")))
    assert simulated["one"] != simulated["other"]
    for name, busy in simulated.items():
        differ = sum(one != other for one, other in zip(busy, real[name], strict=True))
        assert differ <= len(busy) // 10, (name, busy, real[name])
