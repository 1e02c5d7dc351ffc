"""A host's interface with a rate, on the kernel: TCP sees what waits there and keeps it short."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcplab.results import Run


def test_tcp_keeps_the_queue_of_its_own_host_short(run: Callable[..., Run]) -> None:
    path = {"rate": "100 Mbit/s", "rtt": "10 ms", "left": {"nic": "10 Mbit/s"}}
    flow = {"name": "t", "kind": "tcp", "cc": "cubic", "duration": "3 s"}
    done = run({"path": path}, [flow], timeout="10 s", sample={"sockets": "20 ms"})
    assert done.intervals["retransmits"].sum() == 0
    # 10 Mbit/s, and what the bucket holds: a millisecond's worth.
    assert done.flows["bytes_received"][0] * 8 < 1.01 * 10e6 * 3.0
    # A full queue of 1000 packets would hold 1.2 s.
    assert np.median(done.sockets["srtt"].drop_nulls().to_numpy()) < 100e6
