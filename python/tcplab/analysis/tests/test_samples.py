"""A repetition's samples of one flow or queue, from rows whose answer is known."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tcplab.analysis.samples import Samples, Series
from tcplab.analysis.steady_state import steady_window
from tcplab.plan.paths import Hop
from tcplab.present import summary
from tcplab.results import Run, RunWriter, load
from tcplab.results.tests.synthetic import MS, SECOND, plan

Rows = list[dict[str, Any]]
LINK = Hop("path", "forward")


def recorded(path: Path, made: Any | None = None, **tables: Rows) -> Run:
    """A run of one repetition with these rows."""
    writer = RunWriter(path, made or plan({"one": "reno", "two": "reno"}, shared=True, seconds=10))
    for name, rows in tables.items():
        writer.write_table(name, pl.DataFrame(rows, infer_schema_length=None))
    return load(path)


def samples(path: Path, made: Any | None = None, **tables: Rows) -> Samples:
    return Samples(recorded(path, made, **tables), 1)


def seconds(flow: str, goodput: dict[int, float], **more: Any) -> Rows:
    """Intervals of a second: goodput by the second in which it ends."""
    return [
        {
            "time": end * SECOND,
            "duration": SECOND,
            "flow": flow,
            "stream": 0,
            "goodput": rate,
            "bytes_received": int(rate / 8),
            **more,
        }
        for end, rate in goodput.items()
    ]


def span(flow: str, start: float, end: float, **more: Any) -> Any:
    ends = {"from": "left", "to": "right"}
    return {"flow": flow, "stream": 0, "kind": "tcp", **ends, "start": int(start), "end": int(end), **more}


def waiting(name: str, values: list[Any], **more: Any) -> Rows:
    """One sample of the queue a second."""
    return [
        {"time": (at + 1) * SECOND, "link": "path", "direction": "forward", name: value, **more}
        for at, value in enumerate(values)
    ]


def test_what_was_asked_of_a_repetition_is_kept_with_its_run(tmp_path: Path) -> None:
    run = recorded(tmp_path, intervals=seconds("one", {1: 8e6, 2: 16e6}))
    one = Samples.of(run, 1)
    assert Samples.of(run, 1) is one
    assert one.intervals("one") is one.intervals("one")


def test_a_sample_belongs_to_the_time_that_ends_with_it() -> None:
    series = Series(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]))
    assert series.between(1, 3).value.tolist() == [20, 30]


def test_recent_goodput_is_that_of_the_second_before_while_a_flow_is_active(tmp_path: Path) -> None:
    one = samples(
        tmp_path,
        flows=[span("one", 0, 4 * SECOND), span("two", 2 * SECOND, 3 * SECOND)],
        intervals=[*seconds("one", {1: 8, 2: 16, 3: 24, 4: 32}), *seconds("two", {2: 0, 3: 40, 4: 0})],
    )
    times, rates = one.recent_goodput([("one", None), ("two", None)])
    assert times.tolist() == [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]
    assert rates[:, 0].tolist() == [8, 16, 24, 32]
    # It has not begun at 2 s, and is over at 4 s.
    assert np.isfinite(rates[:, 1]).tolist() == [False, False, True, False]
    assert rates[2, 1] == 40


def test_recent_goodput_weighs_a_short_interval_by_its_length(tmp_path: Path) -> None:
    # From 0.9 s on: 100 kbit in 0.1 s, 900 kbit in 0.5 s, and 20 kbit in the last 10 ms.
    lengths = {1000: (100, 1e6), 1500: (500, 1.8e6), 1510: (10, 2e6)}
    intervals = [
        {"time": end * MS, "duration": length * MS, "flow": "one", "stream": 0, "goodput": rate}
        for end, (length, rate) in lengths.items()
    ]
    one = samples(tmp_path, flows=[span("one", 900 * MS, 1510 * MS)], intervals=intervals)
    for unit in (("one", None), ("one", 0)):
        _, rates = one.recent_goodput([unit])
        assert rates[:, 0] == pytest.approx([1e6, 1e6 / 0.6, 1.02e6 / 0.61])


def test_recent_goodput_of_streams_that_begin_within_an_interval(tmp_path: Path) -> None:
    intervals = [
        {"time": SECOND, "duration": length, "flow": "one", "stream": stream, "goodput": 8e6}
        for stream, length in ((0, SECOND), (1, SECOND // 4))
    ]
    flows = [span("one", 0, SECOND), span("one", 0.75 * SECOND, SECOND) | {"stream": 1}]
    one = samples(tmp_path, flows=flows, intervals=intervals)
    _, rates = one.recent_goodput([("one", None)])
    assert rates[:, 0] == pytest.approx([10e6])


def test_a_flow_that_never_began_shares_nothing(tmp_path: Path) -> None:
    """Jain's index of the other one alone is not 1."""
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 4 * SECOND), span("two", 9 * SECOND, 9 * SECOND)],
        intervals=seconds("one", {1: 8, 2: 16, 3: 24, 4: 32}),
        queues=waiting("packets", [1, 1, 1, 1]),
    )
    (link,) = summary(run).links
    assert link.flows == ("one", "two")
    assert not link.figures["jain"].known


def test_streams_sampled_at_one_time_share_its_duration(tmp_path: Path) -> None:
    both = [*seconds("one", {1: 8, 2: 16}), *seconds("one", {1: 4, 2: 4}, stream=1)]
    rows = samples(tmp_path, intervals=both).intervals("one")
    assert rows.select("time", "duration", "goodput").rows() == [
        (SECOND, SECOND, 12),
        (2 * SECOND, SECOND, 20),
    ]


def test_a_probe_belongs_to_the_time_in_which_it_was_sent(tmp_path: Path) -> None:
    lost = [True, False, False, True]
    pings = [{"time": at * SECOND, "flow": "one", "rtt": None, "lost": one} for at, one in enumerate(lost)]
    one = samples(tmp_path, pings=pings)
    assert one.ping_losses("one", 0) == 1 / 2
    assert one.ping_losses("one", SECOND) == 1 / 3
    assert math.isnan(one.ping_losses("one", 4 * SECOND))


def test_the_first_probe_is_sent_as_the_flow_starts_and_counts(tmp_path: Path) -> None:
    pinging = plan({"one": "reno"}, shared=True, seconds=10)
    pinging["flows"][0].update(kind="ping", cc=None, interval=SECOND, payload=56, count=None)
    pings = [
        {"time": SECOND, "flow": "one", "stream": 0, "seq": 0, "rtt": 300 * MS, "lost": False},
        {"time": 2 * SECOND, "flow": "one", "stream": 0, "seq": 1, "rtt": 100 * MS, "lost": False},
        {"time": 3 * SECOND, "flow": "one", "stream": 0, "seq": 2, "rtt": None, "lost": True},
    ]
    flows = [{**span("one", SECOND, 4 * SECOND), "kind": "ping"}]
    (row,) = summary(recorded(tmp_path, pinging, flows=flows, pings=pings)).flows
    assert row.figures["rtt_mean"].value == 200 * MS
    assert row.figures["loss_rate"].value == pytest.approx(1 / 3)


def test_probes_lost_after_the_last_reply_count(tmp_path: Path) -> None:
    pinging = plan({"one": "reno"}, shared=True, seconds=10)
    pinging["flows"][0].update(kind="ping", cc=None, interval=SECOND, payload=56, count=4)
    probes: Rows = [
        {"time": 0, "flow": "one", "stream": 0, "seq": 0, "rtt": 100 * MS, "lost": False},
        *(
            {"time": at * SECOND, "flow": "one", "stream": 0, "seq": at, "rtt": None, "lost": True}
            for at in (1, 2, 3)
        ),
    ]
    flows = [span("one", 0, 100 * MS, kind="ping")]
    (row,) = summary(recorded(tmp_path, pinging, flows=flows, pings=probes)).flows
    assert row.figures["loss_rate"].value == 3 / 4


def test_probes_on_their_way_when_the_run_ends_are_not_lost(tmp_path: Path) -> None:
    pinging = plan({"one": "reno"}, shared=True, seconds=4)
    pinging["flows"][0].update(kind="ping", cc=None, interval=SECOND, payload=56, count=None)
    rtts = (1500 * MS, None, 1200 * MS, None)
    pings = [
        {"time": at * SECOND, "flow": "one", "stream": 0, "seq": at, "rtt": rtt, "lost": rtt is None}
        for at, rtt in enumerate(rtts)
    ]
    assert samples(tmp_path / "some", pinging, pings=pings).ping_losses("one", 0) == 1 / 3
    # A run as short as the base RTT of 100 ms.
    pinging["duration"] = 100 * MS
    assert math.isnan(samples(tmp_path / "none", pinging, pings=pings[1:2]).ping_losses("one", 0))


def test_nothing_waits_no_time(tmp_path: Path) -> None:
    one = samples(tmp_path, queues=waiting("sojourn", [None, 4 * MS, None], packets=1))
    assert one.head_delay(LINK).value.tolist() == [0, 4 * MS, 0]


def test_each_packet_waits_once_however_many_leave_at_a_time(tmp_path: Path) -> None:
    queues = [
        {
            "time": at * SECOND,
            "link": LINK.link,
            "direction": LINK.direction,
            "packets_out": out,
            "waited": waited,
        }
        for at, out, waited in (
            (1, 7, 70 * MS),
            (2, 8, 80 * MS),
            (3, 8, 80 * MS),
            (4, 17, 170 * MS + 90 * MS),
        )
    ]
    one = samples(tmp_path, queues=queues)
    waits = one.waits(LINK, SECOND, 4 * SECOND)
    assert waits.mean.tolist() == [10 * MS, 0, 20 * MS]
    assert waits.packets.tolist() == [1, 0, 9]
    assert waits.of_all == 19 * MS
    assert waits.linearized.value.mean() == pytest.approx(19 * MS)
    # Packets that left before the first sample waited, too.
    assert one.waits(LINK, 0, SECOND).of_all == 10 * MS


def test_a_queue_that_nothing_leaves_has_no_wait(tmp_path: Path) -> None:
    queues = [
        {
            "time": at * SECOND,
            "link": LINK.link,
            "direction": LINK.direction,
            "packets_out": 3,
            "waited": 5 * MS,
        }
        for at in (1, 2, 3)
    ]
    waits = samples(tmp_path, queues=queues).waits(LINK, SECOND, 3 * SECOND)
    assert math.isnan(waits.of_all)
    assert not len(waits.linearized)


def test_without_times_of_packets_the_queue_waits_as_long_as_it_drains(tmp_path: Path) -> None:
    # 12,500 bytes take 10 ms at 10 Mbit/s.
    one = samples(tmp_path, queues=waiting("bytes", [0, 12_500], packets=9))
    assert one.head_delay(LINK).value.tolist() == [0, 10 * MS]


def test_utilization_follows_a_rate_that_changes_between_two_samples(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, shared=True, seconds=4)
    made["links"][0]["forward"] |= {
        "rate": 8_000_000,
        "changes": [{"at": 3 * SECOND // 2, "rate": 80_000_000}],
    }
    carried = [0, 1_000_000, 6_500_000, 16_500_000]
    queues = [
        {"time": at * SECOND, "link": LINK.link, "direction": LINK.direction, "bytes_out": bytes_out}
        for at, bytes_out in enumerate(carried)
    ]
    used = samples(tmp_path, made, queues=queues).utilization(LINK, 0, 3 * SECOND).value
    assert used.mean() == pytest.approx(1)


def test_utilization_is_what_the_link_carried_over_what_its_rate_allowed(tmp_path: Path) -> None:
    slowing = plan({"one": "reno"}, shared=True, seconds=10)
    slowing["links"][0]["forward"].update(rate=100_000_000, changes=[{"at": 3 * SECOND, "rate": 10_000_000}])
    # Half of 100 Mbit/s for two seconds, then all of 10 Mbit/s.
    carried = [0, 6_250_000, 12_500_000, 13_750_000, 15_000_000]
    one = samples(tmp_path, slowing, queues=waiting("bytes_out", carried))
    used = one.utilization(LINK, SECOND, 5 * SECOND).value
    assert used.mean() == pytest.approx((50 + 50 + 10 + 10) / (100 + 100 + 10 + 10))


def test_each_of_many_echoes_counts_once(tmp_path: Path) -> None:
    """Two have rows of their own; of 98 there are a histogram and two batches."""
    made = plan({"one": "reno"}, shared=True, seconds=10)
    made["flows"][0].update(kind="echo", sizes=[8], iterations=100)
    common = {"flow": "one", "client": 0, "size": 8}
    single = [{**common, "iteration": at, "time": at * SECOND, "rtt": MS, "count": 1} for at in (0, 1)]
    histogram = [
        {**common, "iteration": None, "time": None, "rtt": rtt * MS, "count": count}
        for rtt, count in ((2, 93), (50, 5))
    ]
    batches = [
        {**common, "iteration": 2 + 49 * at, "time": (2 + at) * SECOND, "count": 49, "rtt_mean": mean * 1e6}
        for at, mean in enumerate((5.0, 191 / 49))
    ]
    flows = [span("one", 0, 4 * SECOND, kind="echo")]
    run = recorded(tmp_path, made, flows=flows, echoes=[*single, *histogram], echo_batches=batches)
    figures = summary(run, omit=0).flows[0].figures
    assert figures["rtt_mean"].value == pytest.approx((2 * 1 + 93 * 2 + 5 * 50) / 100 * MS)
    assert (figures["rtt_p95"].value, figures["rtt_p99"].value) == (2 * MS, 50 * MS)
    # The second half has one batch, and its echoes are taken to be as all of them.
    figures = summary(run, omit=5 * SECOND // 2).flows[0].figures
    assert figures["rtt_mean"].value == pytest.approx((93 * 2 + 5 * 50) / 98 * MS)


def test_of_hops_alike_the_one_with_the_longer_queue_limits_and_the_empty_do_not(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=2)
    first = made["links"][0]
    names = {node["name"]: node for node in made["nodes"]}
    # Three links alike, one behind the other.
    ends = ["one-a", "m", "n", "one-b"]
    made["links"] = [{**first, "name": f"l{at}", "ends": ends[at : at + 2]} for at in range(3)]
    made["nodes"] += [{**names["one-a"], "name": name} for name in ("m", "n")]
    for at, node in enumerate(["one-a", "m", "n"]):
        next(one for one in made["nodes"] if one["name"] == node)["routes"] = {"one-b": f"l{at}"}
    queues = [
        {"time": SECOND, "link": f"l{at}", "direction": "forward", "packets": packets}
        for at, packets in enumerate([3, 0, 7])
    ]
    one = samples(tmp_path, made, queues=queues)
    assert one.bottlenecks("one") == [Hop("l2", "forward"), Hop("l0", "forward")]
    assert one.bottleneck("one") == Hop("l2", "forward")


@pytest.mark.parametrize(("omit", "start"), [(3 * SECOND, 5), (6 * SECOND - 1, 8), (6 * SECOND, 2)])
def test_a_warm_up_as_long_as_the_flow_is_not_left_out(tmp_path: Path, omit: int, start: float) -> None:
    one = samples(tmp_path, flows=[span("one", 2 * SECOND, 8 * SECOND)])
    window = steady_window(one, "one", omit)
    assert window is not None
    assert window.start == pytest.approx(start * SECOND, abs=1)
    assert (window.end, bool(window.note)) == (8 * SECOND, omit == 6 * SECOND)


def test_a_summary_says_in_how_many_repetitions_flows_converged(tmp_path: Path) -> None:
    made = plan({"one": "reno", "two": "reno"}, shared=True, seconds=10)
    for repetition, share in ((1, 8.0), (2, 24.0), (3, 24.0)):
        tables = {
            "flows": [span("one", 0, 10 * SECOND), span("two", 0, 10 * SECOND)],
            "intervals": [
                *seconds("one", dict.fromkeys(range(1, 11), 8.0)),
                *seconds("two", dict.fromkeys(range(1, 11), share)),
            ],
            "queues": waiting("packets", [0] * 10, bytes_out=0),
        }
        writer = RunWriter(tmp_path / f"run-{repetition}", made, repetition=repetition)
        for name, rows in tables.items():
            writer.write_table(name, pl.DataFrame(rows, infer_schema_length=None))
    found = summary(load(tmp_path))
    (link,) = found.links
    assert link.figures["convergence"].n == 1
    assert "path forward: flows converged in 1 of 3 repetitions; the time is of these." in found.notes


def test_an_automatic_warm_up_is_counted_from_the_flows_own_start(tmp_path: Path) -> None:
    slow = {end: 1.0 if end < 110 else 9.0 + end % 2 for end in range(101, 200)}
    one = samples(
        tmp_path,
        flows=[span("one", 100 * SECOND, 199 * SECOND)],
        intervals=seconds("one", slow),
    )
    window = steady_window(one, "one", "auto")
    assert window is not None
    assert 5 * SECOND <= window.warm_up <= 20 * SECOND
    assert window.start == 100 * SECOND + window.warm_up


def test_a_transfer_that_is_over_before_its_automatic_warm_up_is_taken_whole(tmp_path: Path) -> None:
    short = {end: 9.0 if end == 102 else 0.0 for end in range(101, 121)}
    one = samples(tmp_path, flows=[span("one", 100 * SECOND, 120 * SECOND)], intervals=seconds("one", short))
    window = steady_window(one, "one", "auto")
    assert window is not None
    assert (window.start, window.warm_up) == (100 * SECOND, 0)


def test_flows_are_compared_while_all_are_there_and_links_described_while_any_is(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 10 * SECOND), span("two", 4 * SECOND, 6 * SECOND)],
        intervals=[
            *seconds("one", {end: 4e6 if end in (5, 6) else 8e6 for end in range(1, 11)}),
            *seconds("two", {5: 4e6, 6: 4e6}),
        ],
        queues=waiting("sojourn", [(50 if end in (5, 6) else 10) * MS for end in range(1, 11)], packets=1),
    )
    (link,) = summary(run, omit=0).links
    assert link.figures["jain"].value == 1
    assert link.figures["queueing_delay"].value == 18 * MS


def test_a_probe_beside_the_flows_does_not_change_the_steady_state_of_their_link(tmp_path: Path) -> None:
    """It has no warm-up, and is over before theirs."""
    made = plan({"one": "reno", "two": "reno", "probe": "none"}, shared=True, seconds=10)
    made["flows"][2].update(kind="ping", cc=None, interval=SECOND, payload=56, count=2)
    ends = [span("one", 0, 10 * SECOND), span("two", 0, 10 * SECOND), span("probe", 0, SECOND, kind="ping")]
    run = recorded(
        tmp_path,
        made,
        flows=ends,
        intervals=[
            *seconds("one", {end: 4e6 if end > 3 else 1e6 for end in range(1, 11)}),
            *seconds("two", {end: 4e6 if end > 3 else 7e6 for end in range(1, 11)}),
        ],
        pings=[{"time": at, "flow": "probe", "stream": 0, "rtt": MS, "lost": False} for at in (0, SECOND)],
        queues=waiting("sojourn", [(10 if end > 3 else 90) * MS for end in range(1, 11)], packets=1),
    )
    (link,) = summary(run, omit=3 * SECOND).links
    assert link.figures["jain"].value == 1
    assert link.figures["queueing_delay"].value == 10 * MS


def test_the_retransmission_rate_is_of_all_segments_sent(tmp_path: Path) -> None:
    intervals = seconds("one", {1: 8e6, 2: 8e6}, bytes_sent=45 * 1448, retransmits=5)
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 2 * SECOND)],
        intervals=intervals,
        sockets=[{"time": SECOND, "flow": "one", "stream": 0, "mss": 1448}],
    )
    (row,) = summary(run, omit=0).flows
    assert row.figures["retransmission_rate"].value == pytest.approx(10 / 100)
    assert math.isnan(row.figures["loss_rate"].value)


def test_segments_shorter_than_the_mss_are_counted_by_their_own_size(tmp_path: Path) -> None:
    """Messages of 10 B, a segment each: of 100 segments 10 were retransmissions."""
    counts = {"bytes_sent": 900, "segments_sent": 100, "retransmits": 10}
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 2 * SECOND, **counts)],
        intervals=[
            *seconds("one", {1: 4e3}, bytes_sent=500, retransmits=0),
            *seconds("one", {2: 3.2e3}, bytes_sent=400, retransmits=10),
        ],
        sockets=[{"time": SECOND, "flow": "one", "stream": 0, "mss": 1448}],
    )
    (row,) = summary(run, omit=0).flows
    assert row.figures["retransmission_rate"].value == pytest.approx(10 / 100)
    (row,) = summary(run, omit=SECOND).flows
    assert row.figures["retransmission_rate"].value == pytest.approx(10 / 50)


def test_a_connection_that_sent_no_data_has_no_share_of_it_retransmitted(tmp_path: Path) -> None:
    """Its SYN was, twice, which counts among the retransmissions alone."""
    counts = {"bytes_sent": 0, "segments_sent": 0, "retransmits": 2}
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 2 * SECOND, **counts)],
        intervals=seconds("one", {1: 0.0, 2: 0.0}, bytes_sent=0, retransmits=1),
        sockets=[{"time": SECOND, "flow": "one", "stream": 0, "mss": 1448}],
    )
    (row,) = summary(run, omit=0).flows
    assert math.isnan(row.figures["retransmission_rate"].value)


@pytest.mark.parametrize("sampled", [True, False])
def test_a_syn_that_was_retransmitted_is_a_segment_that_was_sent(tmp_path: Path, sampled: bool) -> None:
    """One segment, retransmitted as the SYN was, which counts among the retransmissions alone: 2 of 3."""
    counts = {"bytes_sent": 10, "segments_sent": 2, "retransmits": 2}
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 2 * SECOND, **counts)],
        sockets=[{"time": SECOND, "flow": "one", "stream": 0, "mss": 1448}],
        **({"intervals": seconds("one", {1: 80.0}, bytes_sent=10, retransmits=2)} if sampled else {}),
    )
    (row,) = summary(run, omit=0).flows
    assert row.figures["retransmission_rate"].value == pytest.approx(2 / 3)


def test_utilization_from_the_start_counts_what_came_before_the_first_sample(tmp_path: Path) -> None:
    """10 Mbit/s carry 1.25 MB in a second."""
    carried = waiting("bytes_out", [250_000, 1_500_000])
    used = samples(tmp_path, queues=carried).utilization(LINK, 0, 2 * SECOND).value
    assert used.mean() == pytest.approx(1.5e6 / 2.5e6)


def test_the_share_of_datagrams_lost_is_not_a_retransmission(tmp_path: Path) -> None:
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0]["kind"] = "udp"
    lost = span("one", 0, 2 * SECOND, kind="udp", segments_sent=200, losses_true=50)
    (row,) = summary(recorded(tmp_path, made, flows=[lost]), omit=0).flows
    assert row.figures["loss_rate"].value == 0.25
    assert math.isnan(row.figures["retransmission_rate"].value)


def test_losses_that_neither_receiver_nor_links_know_are_not_none(tmp_path: Path) -> None:
    """As of datagrams that a host without tcplab discards."""
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0]["kind"] = "udp"
    sent = span("one", 0, 2 * SECOND, kind="udp", segments_sent=200)
    (row,) = summary(recorded(tmp_path, made, flows=[sent]), omit=0).flows
    assert math.isnan(row.figures["loss_rate"].value)


def test_datagrams_lost_in_the_warm_up_do_not_count(tmp_path: Path) -> None:
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    whole = span("one", 0, 2 * SECOND, kind="udp", segments_sent=200, losses_true=50)
    rates = seconds("one", {1: 4.8e5, 2: 7.2e5}, bytes_sent=100_000)
    intervals = [{**row, "lost": lost} for row, lost in zip(rates, (40, 10), strict=True)]
    run = recorded(tmp_path, made, flows=[whole], intervals=intervals)
    for omit in (SECOND, "1 s"):
        (row,) = summary(run, omit=omit).flows
        assert row.figures["loss_rate"].value == 0.1
    with pytest.raises(ValueError, match="`soon` is not a time"):
        summary(run, omit="soon")
    assert summary(run, omit=np.int64(SECOND)) == summary(run, omit=SECOND)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"omit=0\.5: a warm-up is a time such as '10 s', or"):
        summary(run, omit=0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="omit=-1: it is at least 0"):
        summary(run, omit=-1)


def test_losses_are_a_share_of_what_the_receiver_knew_of_when_it_noticed_them(tmp_path: Path) -> None:
    """The first datagram after a pause shows what the burst before has lost."""
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    whole = span("one", 0, 2 * SECOND, kind="udp", segments_sent=110, losses_true=80)
    rates = seconds("one", {1: 1.6e5, 2: 0.8e5})
    sent_and_lost = ((100_000, 0), (10_000, 80))
    intervals = [
        {**row, "bytes_sent": sent, "lost": lost}
        for row, (sent, lost) in zip(rates, sent_and_lost, strict=True)
    ]
    run = recorded(tmp_path, made, flows=[whole], intervals=intervals)
    (row,) = summary(run, omit=SECOND).flows
    assert row.figures["loss_rate"].value == pytest.approx(80 / 90)
    (row,) = summary(run, omit=0).flows
    assert row.figures["loss_rate"].value == pytest.approx(80 / 110)


def test_datagrams_lost_behind_the_last_arrival_count(tmp_path: Path) -> None:
    """That they are lost is known when nothing is on its way, long after the flow's last delivery."""
    made = plan({"one": "none"}, seconds=4)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    whole = span("one", 0, 0.9 * SECOND, kind="udp", segments_sent=100, losses_true=80)
    intervals = [
        *seconds("one", {1: 1.6e5}, bytes_sent=100_000, lost=10),
        *seconds("one", {4: 0.0}, bytes_sent=0, lost=70),
    ]
    (row,) = summary(recorded(tmp_path, made, flows=[whole], intervals=intervals), omit=0).flows
    assert row.figures["loss_rate"].value == 0.8
    assert row.figures["goodput"].value == pytest.approx(1.6e5 / 0.9)


def test_all_datagrams_of_a_stream_that_nothing_comes_of_are_lost(tmp_path: Path) -> None:
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    whole = span("one", 0, 2 * SECOND, kind="udp", segments_sent=200, losses_true=100)
    rates = seconds("one", {1: 8e5, 2: 0.0}, bytes_sent=100_000)
    # The receiver, to which no datagram comes, counts none as lost.
    intervals = [{**row, "lost": 0} for row in rates]
    (row,) = summary(recorded(tmp_path, made, flows=[whole], intervals=intervals), omit=SECOND).flows
    assert row.figures["loss_rate"].value == 1.0


def test_datagrams_sent_after_the_last_arrival_are_lost_though_no_later_one_shows_it(tmp_path: Path) -> None:
    """As after a failure that outlasts the run."""
    made = plan({"one": "none"}, seconds=4)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    whole = span("one", 0, 4 * SECOND, kind="udp", segments_sent=400, losses_true=310)
    rates = seconds("one", {1: 7.2e5, 2: 0.0, 3: 0.0, 4: 0.0}, bytes_sent=100_000)
    intervals = [{**row, "lost": lost} for row, lost in zip(rates, (10, 0, 0, 0), strict=True)]
    (row,) = summary(recorded(tmp_path, made, flows=[whole], intervals=intervals), omit=0).flows
    assert row.figures["loss_rate"].value == pytest.approx(310 / 400)


def test_datagrams_on_their_way_when_the_run_ends_are_not_lost(tmp_path: Path) -> None:
    made = plan({"one": "none"}, seconds=2)
    made["flows"][0] |= {"kind": "udp", "payload": 1000}
    made["links"][0]["forward"]["delay"] = 3 * SECOND
    whole = span("one", 0, 2 * SECOND, kind="udp", segments_sent=200, losses_true=0)
    intervals = [{**row, "lost": 0} for row in seconds("one", {1: 0.0, 2: 0.0}, bytes_sent=100_000)]
    (row,) = summary(recorded(tmp_path, made, flows=[whole], intervals=intervals), omit=0).flows
    assert row.figures["loss_rate"].value == 0


def test_packets_dropped_in_the_warm_up_do_not_count(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        flows=[span("one", 0, 3 * SECOND)],
        intervals=seconds("one", {1: 8e6, 2: 8e6, 3: 8e6}),
        queues=waiting("drops", [120, 121, 125], lost=0),
    )
    (link,) = summary(run, omit=SECOND).links
    assert (link.figures["drops_steady"].value, link.figures["drops"].value) == (5, 125)


def test_a_flow_that_never_ended_is_one_stream_at_least(tmp_path: Path) -> None:
    (row,) = summary(recorded(tmp_path, intervals=seconds("one", {1: 8e6})), omit=0).flows
    assert (row.flow, row.streams) == ("one", 1)
    assert row.figures["goodput"].value == 8e6


def test_streams_that_end_before_an_interval_does_are_no_faster_together_than_their_link(
    tmp_path: Path,
) -> None:
    """1 MB over 1 Gbit/s in 10 ms: one stream had most of the link for 5 ms, the other the rest for 10 ms."""
    streams = [
        span("one", 0, 5 * MS, bytes_received=437_500, goodput=700e6),
        span("one", 0, 10 * MS, bytes_received=562_500, goodput=450e6) | {"stream": 1},
    ]
    intervals = [
        {"time": 100 * MS, "duration": 100 * MS, "flow": "one", "stream": stream, "bytes_received": received}
        for stream, received in ((0, 437_500), (1, 562_500))
    ]
    (row,) = summary(recorded(tmp_path, flows=streams, intervals=intervals), omit=0).flows
    assert row.figures["goodput"].value == pytest.approx(800e6)


def test_intervals_of_streams_that_overlap_count_their_time_once(tmp_path: Path) -> None:
    streams = [span("one", 0, 2 * SECOND), span("one", 0, 1.5 * SECOND) | {"stream": 1}]
    intervals = seconds("one", {1: 8e6, 2: 8e6})
    other = [{**row, "stream": 1} for row in seconds("one", {1: 8e6})]
    cut = {**other[0], "time": int(1.5 * SECOND), "duration": SECOND // 2, "bytes_received": 500_000}
    run = recorded(tmp_path, flows=streams, intervals=[*intervals, *other, cut])
    (row,) = summary(run, omit=0).flows
    assert row.figures["goodput"].value == pytest.approx(3.5e6 * 8 / 2)
