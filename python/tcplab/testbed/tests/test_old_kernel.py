"""Controls in a kernel that has no struct_ops links, older than the one that runs here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from tcplab.testbed.agent import agent_command
from tcplab.testbed.controls import loader
from tcplab.testbed.tests import qemu

GUEST = Path(__file__).with_name("old_kernel_guest.py")


def test_controls_load_carry_data_and_go_with_whoever_held_them(tmp_path: Path) -> None:
    why = qemu.missing()
    if why is not None:
        pytest.skip(why)
    hello = loader()
    if hello["not_built"] is not None:
        pytest.skip(hello["not_built"]["message"])
    command = [sys.executable, "-I", "-S", str(GUEST), *agent_command()]
    if qemu.release() >= (6, 4):
        pytest.skip(f"the kernel to test with is Linux {'.'.join(map(str, qemu.release()))}, which has links")
    code, said = qemu.run(command, tmp_path, ["inet_diag", "tcp_diag"], seconds=600)
    assert code == 0, said
    seen = json.loads(said)
    controls = [f"tl_{name}" for name in hello["controls"]]
    assert seen["obstacle"] is None
    assert seen["registered"] == controls
    assert sorted(seen["offered"]) == sorted(controls)
    assert seen["guardians"] == len(controls)
    received = pl.read_ipc_stream(tmp_path / "flows.server.arrows")
    assert received["bytes_received"].to_list() == [1_000_000, 1_000_000]
    sent = pl.read_ipc_stream(tmp_path / "sockets.client.arrows")
    phases = {str(flow): set(rows["phase"].drop_nulls()) for (flow,), rows in sent.group_by("flow")}
    assert phases["bbr2"] & {"STARTUP", "DRAIN", "PROBE_BW_UP", "PROBE_BW_DOWN", "PROBE_BW_CRUISE"}
    assert phases["cubic"] & {"SLOW_START", "CONCAVE", "CONVEX", "RENO_FRIENDLY"}
    assert (sent.filter(pl.col("flow") == "bbr2")["bandwidth"] > 0).any()
    assert seen["after_kill"] == []
    assert seen["abandoned"] == seen["swept"] == ["tl_reno"]
    assert seen["left"] == []
