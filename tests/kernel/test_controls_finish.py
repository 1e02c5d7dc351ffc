"""A flow under every control of ours gets a transfer done over a lossy path, on the real Linux stack."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tcplab import _core
from tcplab.engine.kernel_ecn import sends_ect1
from tcplab.results import Run
from tcplab.testbed.controls import loader


def test_transfers_of_100_mb_over_one_percent_loss_end(run: Callable[..., Run]) -> None:
    """All at once, each over a path of its own. A short round trip lets the slow ones recover soon."""
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        pytest.skip(obstacle["message"])
    path = {"rate": "50 Mbit/s", "rtt": "0.5 ms", "queue": "60 packets", "loss": "1 %", "per_flow": "on"}
    names = [name for name in _core.controls() if not sends_ect1({"name": name})]
    flows = [{"name": name, "kind": "tcp", "cc": f"tl_{name}", "bytes": "100 MB"} for name in names]
    sample = {"sockets": "100 ms", "queues": "100 ms", "flows": "1 s"}
    done = run({"path": path}, flows, duration="900 s", sample=sample)
    received = dict(done.flows.select("flow", "bytes_received").iter_rows())
    assert received == dict.fromkeys(names, 100_000_000)
    assert done.flows["complete"].to_list() == [True] * len(names)
