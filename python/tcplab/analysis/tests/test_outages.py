"""Outages from arrivals: the gap that overlaps a failure counts, others do not."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.analysis.outages import Outage, outages
from tcplab.results import Run, RunWriter, load
from tcplab.results.tests.synthetic import MS, plan
from tcplab.results.writer import create_result_dir, run_dir_of

ONE = plan({"one": "reno"}, shared=True)


def finished(path: Path, of: Any = ONE, **tables: list[dict[str, Any]]) -> Run:
    create_result_dir(path, "tcplab: 1\nname: t\n")
    made: Any = {**of, "duration": 20_000 * MS}
    writer = RunWriter(run_dir_of(path, 1), made, engine="kernel", repetition=1)
    for name, rows in tables.items():
        writer.write_table(name, pl.DataFrame(rows, infer_schema_length=None))
    writer.finish("done", wall_duration=0.1)
    return load(path)


def change(at: int, detail: str) -> Any:
    return {"time": at * MS, "event": "link_change", "link": "path", "detail": detail}


DOWN = [change(5000, "forward: down"), change(5000, "backward: down"), change(9000, "forward: up")]


def pings(missing: range) -> list[dict[str, Any]]:
    return [
        {"time": n * 100 * MS, "flow": "one", "stream": 0, "seq": n, "rtt": None if n in missing else 10 * MS,
         "lost": n in missing}
        for n in range(200)
    ]  # fmt: skip


def test_probes_tell_the_outage_and_what_was_lost(tmp_path: Path) -> None:
    routes = [
        {"time": at * MS, "node": "r", "prefix": "10.0.0.0/24", "protocol": "ospf"}
        for at in (0, 5010, 5600, 9500)
    ]
    found = outages(finished(tmp_path, events=DOWN, pings=pings(range(50, 56)), routes=routes))
    (one,) = found
    assert one == Outage(
        1,
        "path",
        5000 * MS,
        "one",
        outage=700 * MS,
        resolution=100 * MS,
        # The probe of 5.6 s is answered 10 ms later.
        restored=610 * MS,
        lost=6,
        # Six of ten a second, twice.
        fib=1200 * MS,
        reordered=0,
        routes=600 * MS,
        before=one.before,
        after=one.after,
    )


def test_a_failure_is_of_the_flows_that_pass_the_link(tmp_path: Path) -> None:
    apart = plan({"one": "reno", "other": "reno"})
    downs = [DOWN[0] | {"link": f"{flow}-path"} for flow in ("one", "other")]
    both = [row | {"flow": flow} for flow in ("one", "other") for row in pings(range(50, 56))]
    found = outages(finished(tmp_path, apart, events=downs, pings=both))
    assert [(one.link, one.flow) for one in found] == [("one-path", "one"), ("other-path", "other")]


def test_a_gap_before_a_failure_is_none_of_it(tmp_path: Path) -> None:
    (found,) = outages(finished(tmp_path, events=DOWN, pings=pings(range(10, 30))))
    assert (found.outage, found.lost, found.routes) == (100 * MS, 0, None)


def test_without_an_arrival_the_outage_lasts_as_long_as_the_failure(tmp_path: Path) -> None:
    (found,) = outages(finished(tmp_path, events=DOWN, pings=pings(range(50, 200))))
    assert found.outage == pytest.approx(4090 * MS)


def test_goodput_shows_when_a_flow_has_recovered(tmp_path: Path) -> None:
    def received(at: int) -> int:
        return 0 if 50 <= at < 60 else 400 if 60 <= at < 80 else 1000

    intervals = [
        {
            "time": (n + 1) * 100 * MS,
            "duration": 100 * MS,
            "flow": "one",
            "stream": 0,
            "bytes_received": received(n),
            "bytes_sent": 0,
            "goodput": 0.0,
        }
        for n in range(200)
    ]
    (found,) = outages(finished(tmp_path, events=DOWN, intervals=intervals))
    assert (found.outage, found.resolution) == (1000 * MS, 100 * MS)
    # From 8 s on, though spans of 2 s that begin up to a third of a second earlier have 90 % of it too.
    assert found.recovered == 3_000 * MS


def test_a_probe_that_waited_in_a_queue_when_the_link_failed_is_lost_to_the_failure(tmp_path: Path) -> None:
    # Those of 4.8 and 4.9 s were under way; one long before was lost to something else.
    missing = pings(range(48, 56))
    missing[10] |= {"lost": True, "rtt": None}
    (found,) = outages(finished(tmp_path, events=DOWN, pings=missing))
    assert (found.lost, found.fib) == (8, 1600 * MS)


def test_probes_of_an_outage_that_outlasts_the_failure_are_all_lost_to_it(tmp_path: Path) -> None:
    # The link is back after 9 s, the routes after 12 s.
    (found,) = outages(finished(tmp_path, events=DOWN, pings=pings(range(50, 120))))
    assert (found.outage, found.lost, found.fib) == (7100 * MS, 70, 14_000 * MS)


def test_what_a_queue_drops_once_the_tables_are_at_rest_is_not_a_time_of_convergence(tmp_path: Path) -> None:
    missing = pings(range(50, 56))
    missing[80] |= {"lost": True, "rtt": None}
    (found,) = outages(finished(tmp_path, events=DOWN, pings=missing))
    assert (found.lost, found.fib) == (7, 1200 * MS)


def datagrams(missing: range, lost: dict[int, int], until: int = 200) -> dict[str, list[dict[str, Any]]]:
    """Ten datagrams of 100 B in each interval of 100 ms; the numbers are of intervals."""
    intervals: list[dict[str, Any]] = [
        {
            "time": (n + 1) * 100 * MS,
            "duration": 100 * MS,
            "flow": "one",
            "stream": 0,
            "bytes_received": 0 if n in missing else 1000,
            "bytes_sent": 1000,
            "goodput": 0.0,
            "lost": lost.get(n, 0),
            "out_of_order": 0,
        }
        for n in range(until)
    ]
    sent, received = (sum(row[key] for row in intervals) for key in ("bytes_sent", "bytes_received"))
    stream: dict[str, Any] = {"flow": "one", "stream": 0, "from": "a", "to": "b", "kind": "udp", "start": 0}
    stream |= {"end": until * 100 * MS, "segments_sent": sent // 100}
    stream |= {"bytes_sent": sent, "bytes_received": received}
    return {"intervals": intervals, "flows": [stream]}


def test_an_interval_without_an_arrival_does_not_blur_the_others(tmp_path: Path) -> None:
    """Before a straggler one covers all the time since a stream has ended."""
    tables = datagrams(range(50, 60), {60: 100}, until=100)
    (last,) = tables["intervals"][-1:]
    tables["intervals"].append(last | {"time": 19_900 * MS, "duration": 9_900 * MS, "bytes_received": 0})
    tables["intervals"].append(last | {"time": 20_000 * MS})
    (found,) = outages(finished(tmp_path, events=DOWN, **tables))
    assert (found.outage, found.resolution) == (1000 * MS, 100 * MS)


def test_datagrams_are_lost_to_a_failure_from_the_moment_of_it(tmp_path: Path) -> None:
    # The receiver counts the losses of intervals 50 to 59 in interval 60. Those of 49 came before.
    tables = datagrams(range(50, 60), {49: 7, 60: 100})
    (found,) = outages(finished(tmp_path, events=DOWN, **tables))
    assert (found.outage, found.lost, found.fib) == (1000 * MS, 100, 2000 * MS)


def test_datagrams_that_a_receiver_misses_after_the_link_is_back_were_lost_to_its_failure(
    tmp_path: Path,
) -> None:
    # Without another way arrivals go on after 9 s, and only then are the losses known.
    (found,) = outages(finished(tmp_path, events=DOWN, **datagrams(range(50, 90), {90: 400})))
    assert (found.outage, found.lost) == (4000 * MS, 400)


def test_datagrams_that_are_never_followed_by_one_are_lost(tmp_path: Path) -> None:
    (found,) = outages(finished(tmp_path, events=DOWN[:2], **datagrams(range(50, 200), {})))
    assert (found.lost, found.restored) == (1500, None)


def test_segments_that_tcp_retransmits_in_a_failure_are_counted(tmp_path: Path) -> None:
    tables = datagrams(range(0), {})
    for row in tables["intervals"]:
        n = row["time"] // (100 * MS)
        row |= {"lost": None, "out_of_order": None, "retransmits": {50: 1, 51: 2, 90: 4, 91: 8}.get(n, 0)}
    tables["flows"][0] |= {"kind": "tcp"}
    (found,) = outages(finished(tmp_path, events=DOWN, **tables))
    assert (found.retransmitted, found.lost) == (6, None)


def test_packets_of_tcp_that_are_lost_in_a_failure_are_counted_where_links_know_them(tmp_path: Path) -> None:
    tables = datagrams(range(0), {})
    for row in tables["intervals"]:
        row |= {"lost": None, "out_of_order": None, "retransmits": 0}
    tables["flows"][0] |= {"kind": "tcp", "losses_true": 15}
    losses = [
        {"time": at * MS, "flow": "one", "stream": 0, "forward": lost, "reverse": 32}
        for at, lost in ((5000, 1), (5100, 2), (9000, 4), (9100, 8))
    ]
    (found,) = outages(finished(tmp_path / "known", events=DOWN, losses=losses, **tables))
    assert found.lost == 6
    # Responses take the reverse direction.
    asked: Any = plan({"one": "reno"}, shared=True)
    asked["flows"][0]["kind"] = "request"
    (found,) = outages(finished(tmp_path / "asked", asked, events=DOWN, losses=losses, **tables))
    assert found.lost == 6 + 64
    # Results of before there was the table.
    (found,) = outages(finished(tmp_path / "unknown", events=DOWN, **tables))
    assert found.lost is None
    tables["flows"][0]["losses_true"] = 0
    (found,) = outages(finished(tmp_path / "none", events=DOWN, **tables))
    assert found.lost == 0


def test_a_link_that_loses_everything_for_a_moment_fails_once(tmp_path: Path) -> None:
    def lossy(at: int, rate: int) -> dict[str, Any]:
        return {"at": at * MS, "loss": {"model": {"kind": "random", "chance": {"rate": rate}}}}

    of: Any = plan({"one": "reno"}, shared=True)
    of["links"][0]["forward"]["changes"] = [lossy(5000, 1_000_000_000), lossy(5300, 0)]
    events = [change(5000, "forward: loss"), change(5300, "forward: loss"), change(9000, "backward: loss")]
    found = outages(finished(tmp_path, of, events=events, pings=pings(range(50, 53))))
    assert [(one.at, one.lost) for one in found] == [(5000 * MS, 3)]
