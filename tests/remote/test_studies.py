"""The shipped studies between two real hosts, in their quick form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from .hosts import Hosts

# Cells that `--quick` has and real hosts do not run, because they set the path; runs of each other cell.
SHIPPED = {"tuning": 3, "echo": 0, "latency": 6, "starvation": 0}
# Controls that not every kernel has.
OPTIONAL = {"vegas": "tcp_vegas", "bbr1": "tcp_bbr"}
SHORT = {
    "tuning": ["duration=2 s", "omit=0.5 s"],
    "echo": ["flows.echo.iterations=50"],
    "latency": ["duration=3 s"],
    "starvation": ["duration=3 s"],
}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_study_runs_between_two_hosts(hosts: Hosts, name: str) -> None:
    out = f"/run/keep/{name}"
    settings = [
        "network.hosts_at.left=ssh://10.77.0.2", "network.hosts_at.right=ssh://10.77.0.3", *SHORT[name],
    ]  # fmt: skip
    done = hosts.us.run(
        sys.executable, "-m", "tcplab", "study", name, "--quick", "--repeat", "1", "--engine", "remote",
        *(word for setting in settings for word in ("--set", setting)), "--output", out,
        timeout=550, check=False,
    )  # fmt: skip
    made = hosts.us.folder / name
    rows = pl.read_parquet(made / "results.parquet").filter(pl.col("flow").is_null())
    # By word: tl_vegas, which another test may have loaded, is not vegas.
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    missing = [cc for cc, module in OPTIONAL.items() if module.removeprefix("tcp_") not in available]
    failed = rows.filter(pl.col("status") != "done")
    if "cc" in rows.columns:
        failed = failed.filter(~pl.col("cc").is_in(missing) | pl.col("cc").is_null())
    assert failed.is_empty(), failed["message"].to_list()
    assert (rows["status"] == "done").any()
    # 1: an expectation does not hold on this path, which is not the study's; 4: a control is not there.
    assert done.returncode in (0, 1, 4), done.stderr
    assert (done.returncode == 4) == (rows["status"] == "failed").any(), done.stderr
    report = (made / "report.html").read_text()
    cells = json.loads((made / "study.json").read_text())["cells"]
    assert rows.height == len(cells)
    assert ("Left out:" in report) == (SHIPPED[name] > 0)
