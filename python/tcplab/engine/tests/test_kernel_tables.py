"""Figures of flows that the tables of a run on the kernel have together."""

import polars as pl

from tcplab.engine.kernel_tables import _hosts, _mean_windows, _with_probes


def test_the_mean_window_weighs_samples_by_the_time_since_the_one_before() -> None:
    """The last one comes at the socket's end, soon after the one before."""
    sockets = pl.DataFrame(
        [("one", 0, 10, 99), ("one", 0, 20, 10), ("one", 0, 30, 20), ("one", 0, 31, 120), ("short", 0, 5, 7)],
        schema=["flow", "stream", "time", "cwnd"],
        orient="row",
    )
    assert dict(_mean_windows(sockets).select("flow", "_cwnd").rows()) == {"one": 20.0, "short": 7.0}


def test_connections_that_are_sampled_together_count_alike() -> None:
    sockets = pl.DataFrame(
        [("web", 0, time, cwnd) for time in (10, 20) for cwnd in (10, 30)],
        schema=["flow", "stream", "time", "cwnd"],
        orient="row",
    )
    assert _mean_windows(sockets)["_cwnd"].to_list() == [20.0]


def test_a_ping_has_the_percentiles_of_its_replies() -> None:
    names = ["rtt_mean", "rtt_p50", "rtt_p95", "rtt_p99"]
    flows = pl.DataFrame({"flow": ["bulk", "ping", "lost"], "stream": [0, 0, 0], **dict.fromkeys(names)})
    flows = flows.with_columns(pl.col(names).cast(pl.Float64))
    replies = [("ping", 0, rtt) for rtt in [*range(100, 0, -1), None]]
    pings = pl.DataFrame([*replies, ("lost", 0, None)], schema=["flow", "stream", "rtt"], orient="row")
    nothing = (None,) * 4
    assert _with_probes(flows, pings).select(names).rows() == [nothing, (50.5, 50.0, 95.0, 99.0), nothing]


def test_the_emulator_and_the_machine_belong_to_no_node() -> None:
    """Each agent names its node; one of them has sampled what all of them share."""
    sampled = [("left", "agent"), ("left", "emulator"), ("left", None), ("right", "agent")]
    hosts = pl.DataFrame(sampled, schema=["node", "process"], orient="row")
    expected = [("left", "agent"), (None, "emulator"), (None, None), ("right", "agent")]
    assert _hosts(hosts).rows() == expected
