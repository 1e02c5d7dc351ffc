"""A flow under every control gets a transfer done over a lossy path, in the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcplab
from tcplab import _core


@pytest.mark.parametrize("cc", _core.controls())
def test_a_transfer_of_100_mb_over_one_percent_loss_ends(cc: str, tmp_path: Path) -> None:
    """Reno's 1.22 segments over the root of the loss rate are 12 segments a round trip: at 10 ms 14 Mbit/s,
    so 100 MB take it a minute. The limit is for controls that are slower by design."""
    run = tcplab.run(
        f"""
        tcplab: 1
        name: finish
        network: {{path: {{rate: 100 Mbit/s, rtt: 10 ms, queue: 1 BDP, loss: 1 %}}}}
        flows: [{{name: bulk, kind: tcp, cc: {cc}, bytes: 100 MB}}]
        sample: {{sockets: 100 ms, queues: 100 ms}}
        duration: 1200 s
        """,
        output=tmp_path / "run",
    )
    assert run.flows["complete"].to_list() == [True]
    assert run.flows["bytes_received"].to_list() == [100_000_000]
