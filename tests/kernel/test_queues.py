"""Queue disciplines under the real Linux stack: how flows share a link, and what a ping beside them waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from tcplab.results import Run

# Makes a run again if it says that the machine disturbed it.
Undisturbed = Callable[[Callable[[], Run]], Run]
SECOND = 1_000_000_000
BASE_RTT = 2
PATH = {"rate": "50 Mbit/s", "rtt": f"{BASE_RTT} ms"}
BULK = [{"name": f"bulk-{number}", "kind": "tcp", "cc": "cubic"} for number in range(4)]
PING = {"name": "ping", "kind": "ping", "interval": "20 ms"}
DROPTAIL = {"kind": "droptail", "limit": "400 packets"}
# Ports are random: of 1024 queues two of five flows share one in 1 % of the runs. A ping then waits 10 ms.
FAIR = {"kind": "fq_codel", "flows": 8192}
# 400 full packets at 50 Mbit/s.
WHOLE_BUFFER = 97


def pings(done: Run) -> np.ndarray:
    """Round trips once the flows are under way, ms; a lost one took for ever."""
    rows = done.pings.filter(pl.col("time") > 2 * SECOND)
    return rows["rtt"].fill_null(10 * SECOND).to_numpy() / 1e6


def shares(done: Run) -> list[float]:
    """The share of each flow, once all were under way, as a multiple of the mean."""
    rows = done.intervals.filter((pl.col("time") > 2 * SECOND) & pl.col("flow").str.starts_with("bulk"))
    received = rows.group_by("flow").agg(pl.col("bytes_received").sum())["bytes_received"].to_numpy()
    assert len(received) == len(BULK)
    return list(received / received.mean())


def test_four_flows_share_fq_codel_evenly_and_a_ping_passes_them(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    def over(queue: Any, ping: dict[str, Any] = PING) -> Run:
        return undisturbed(lambda: run({"path": PATH | {"queue": queue}}, [*BULK, ping], duration="8 s"))

    droptail, fair = over(DROPTAIL), over(FAIR)
    assert np.quantile(pings(droptail), 0.9) > 0.8 * WHOLE_BUFFER
    assert np.quantile(pings(fair), 0.9) < 10
    assert max(abs(share - 1) for share in shares(fair)) < 0.02
    assert fair.queue_classes["class"].n_unique() >= len(BULK)
    assert {"new_flows", "old_flows", "early_drop"} <= set(fair.queue_gauges["name"])


def test_datagrams_have_the_codepoint_that_their_flow_says(run: Callable[..., Run]) -> None:
    """DualPI2 sorts by it; one of ECT(0) and one without are in the classic queue."""

    def classes(**more: Any) -> dict[str, int]:
        datagrams = {
            "name": "datagrams",
            "kind": "udp",
            "rate": "2 Mbit/s",
            "payload": "500 B",
            "bytes": "200 kB",
        }
        done = run({"path": PATH | {"queue": "dualpi2"}}, [datagrams | more], duration="5 s")
        assert done.flows["complete"].all()
        rows = done.queue_classes.filter(pl.col("direction") == "forward")
        out = rows.group_by("class").agg(pl.col("packets_out").max())
        return dict(out.iter_rows())

    # 400 datagrams; other packets of a host are few.
    for more in ({}, {"ect": 0}):
        counts = classes(**more)
        assert counts["C"] >= 400
        assert counts["L"] < 50
    counts = classes(ect=1)
    assert counts["L"] >= 400
    assert counts["C"] < 50
    # With a DSCP beside it, in IPv6.
    counts = classes(ect=1, dscp="EF", ip=6)
    assert counts["L"] >= 400


def test_a_codepoint_lets_a_ping_pass_in_a_band_of_its_own(
    run: Callable[..., Run], undisturbed: Undisturbed
) -> None:
    bands = [{"dscp": ["EF"], "queue": "50 packets"}, {"queue": DROPTAIL}]
    network = {"path": PATH | {"queue": {"kind": "prio", "bands": bands}}}
    marked = undisturbed(lambda: run(network, [*BULK, PING | {"dscp": "EF"}], duration="8 s"))
    assert np.quantile(pings(marked), 0.9) < 10
    first = marked.queue_classes.filter(pl.col("class") == "band 1")
    assert first["packets_out"].to_numpy().max() > 300
