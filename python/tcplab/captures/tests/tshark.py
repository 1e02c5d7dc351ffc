"""tshark's analysis of a capture, compared with ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tcplab import captures

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

TSHARK = (
    "frame.number",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.ack_rtt",
    "tcp.analysis.bytes_in_flight",
    "tcp.analysis.duplicate_ack",
)


def tshark(capture: Path) -> pl.DataFrame:
    """tshark's analysis of each packet; null where it has none."""
    wanted = [word for name in TSHARK for word in ("-e", name)]
    printed = subprocess.run(
        ["tshark", "-r", capture, "-T", "fields", *wanted], check=True, capture_output=True, text=True
    ).stdout
    rows = [[field or None for field in line.split("\t")] for line in printed.splitlines()]
    names = [name.rpartition(".")[2] for name in TSHARK]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").with_columns(
        packet=pl.col("number").cast(pl.UInt64),
        ack_rtt=(pl.col("ack_rtt").cast(pl.Decimal(20, 9)) * 1_000_000_000).cast(pl.Int64),
        bytes_in_flight=pl.col("bytes_in_flight").cast(pl.UInt64),
    )


AGAIN = ("fast retransmission", "retransmission after timeout", "tail loss probe", "retransmission")


def same_packets_stand_out(capture: Path) -> int:
    """Assert that both find the same packets retransmitted, overtaken or copied; how many they are.

    tshark tells these apart by other rules (docs/captures-analysis.md says which), but no packet that repeats
    or fills what came before is found by one and not by the other.
    """
    flagged = pl.any_horizontal(
        pl.col(
            "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order"
        ).is_not_null()
    )
    ours = captures.read(capture).series(1)
    found = set(ours.filter(pl.col("kind").is_in([*AGAIN, "out of order", "duplicate"]))["packet"])
    assert found == set(tshark(capture).filter(flagged)["packet"])
    return len(found)


def same_rtts(capture: Path) -> int:
    """Assert that every RTT is also tshark's, to the nanosecond; how many there are.

    tshark gives more: also for what waited behind a gap, which measures the recovery, not the path.
    """
    ours = captures.read(capture).series(1).filter(pl.col("rtt").is_not_null())
    both = ours.join(tshark(capture), on="packet", how="left")
    assert both["ack_rtt"].null_count() == 0
    assert (both["rtt"] == both["ack_rtt"]).all()
    return ours.height
