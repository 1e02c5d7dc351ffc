"""Routers on the kernel share flows between paths of equal cost as those of the simulator do."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from tcplab.results import Run

# The ways differ in delay, so that packets of one flow on both would arrive out of order.
NETWORK = {
    "nodes": ["a", "b", *({"name": name, "kind": "router", "ecmp": "on"} for name in "rstu")],
    "links": [
        {"ends": ["a", "r"]},
        {"ends": ["r", "s"], "delay": "2 ms"},
        {"ends": ["r", "t"], "delay": "12 ms"},
        {"ends": ["s", "u"]},
        {"ends": ["t", "u"]},
        {"ends": ["u", "b"]},
    ],
}


@pytest.mark.parametrize("ip", [4, 6])
def test_flows_are_shared_and_each_keeps_to_one_path(run: Callable[..., Run], ip: int) -> None:
    datagrams = {"kind": "udp", "rate": "400 kbit/s", "payload": "500 B", "streams": 32, "duration": "1 s"}
    flow = {"name": "u", "from": "a", "to": "b", "ip": ip, **datagrams}
    done = run(NETWORK, [flow], timeout="10 s", sample={"queues": "100 ms"})
    # 100 datagrams each. With 32 streams all take one path in one of 2^31 runs.
    forward = done.queues.filter(pl.col("direction") == "forward")
    carried = dict(forward.group_by("link").agg(pl.col("bytes_out").max()).iter_rows())
    assert carried["r-s"] > 0
    assert carried["r-t"] > 0
    assert done.intervals["out_of_order"].sum() == 0
