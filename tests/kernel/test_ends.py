"""A run ends when its traffic has ended, whatever was lost; the simulator and the kernel agree on when."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run

# The limit of all these runs, far beyond the seconds they take.
LIMIT = "120 s"
TRANSFER = {"name": "bulk", "kind": "tcp", "bytes": "50 kB"}
# How much later than on the wire a thread may see what happens, s: half of what would be another round trip.
LATE = {"sim": 0.05, "kernel": 0.2}
# One request of each kind.
ASKED: list[dict[str, Any]] = [
    {"kind": "request", "request": "100 B", "response": "1 kB", "count": 1},
    {"kind": "http", "sizes": ["1 kB"], "count": 1, "connections": 1},
]


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_a_ping_with_a_lost_probe_ends(engine: str, run: Callable[..., Run]) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "loss": {"packets": [3]}}
    ping = {"name": "ping", "kind": "ping", "interval": "50 ms", "count": 10}
    done = run({"path": path}, [ping], engine=engine, timeout=LIMIT)
    assert done.pings["lost"].to_list() == [number == 2 for number in range(10)]
    assert done.flows["end"][0] < 60e9


@pytest.mark.parametrize("engine", ["sim", "kernel"])
@pytest.mark.parametrize("loss", ["0 %", "20 %"])
def test_datagrams_end_after_their_duration(engine: str, loss: str, run: Callable[..., Run]) -> None:
    """Data still on a path of a second when the sender ends count as received."""
    path: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "2 s", "loss": loss}
    noise = {"name": "noise", "kind": "udp", "rate": "1 Mbit/s", "duration": "1 s"}
    done = run({"path": path}, [noise, TRANSFER], engine=engine, timeout=LIMIT)
    row = done.flows.filter(flow="noise").to_dicts()[0]
    assert row["bytes_sent"] - row["bytes_received"] == row["losses_true"] * 1472
    assert row["end"] < 60e9


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_datagrams_by_bytes_end_though_some_are_lost(engine: str, run: Callable[..., Run]) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "loss": {"packets": [3, 5]}}
    noise = {"name": "noise", "kind": "udp", "rate": "1 Mbit/s", "bytes": "30 kB"}
    done = run({"path": path}, [noise], engine=engine, timeout=LIMIT)
    row = done.flows.to_dicts()[0]
    assert row["losses_true"] == 2
    assert row["end"] < 60e9


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_a_timeout_below_the_usual_duration_holds(engine: str, run: Callable[..., Run]) -> None:
    path = {"rate": "1 Mbit/s", "rtt": "20 ms"}
    done = run({"path": path}, [TRANSFER | {"bytes": "5 MB"}], engine=engine, timeout="3 s")
    assert done.flows["end"][0] == pytest.approx(3e9, rel=0.01)
    assert not done.flows["complete"][0]


@pytest.mark.parametrize("engine", ["sim", "kernel"])
@pytest.mark.parametrize(("minimum", "timeouts"), [("20 ms", (3, 7)), ("2 s", (0, 0))])
def test_a_host_has_its_minimum_retransmission_timeout(
    engine: str,
    minimum: str,
    timeouts: tuple[int, int],
    run: Callable[..., Run],
    undisturbed: Callable[[Callable[[], Run]], Run],
) -> None:
    """Timeouts double: of 40 ms with a smoothed RTT of 20, five fit into a second without the link.

    A stall of 100 ms before it makes the first one as long as with the usual minimum.
    """
    link = {"name": "link", "ends": ["a", "b"], "rate": "100 Mbit/s", "delay": "10 ms"}
    cut = {"1 s": {"loss": "100 %"}, "2 s": {"loss": "0 %"}}
    network = {"hosts": {"rto_min": minimum}, "nodes": ["a", "b"], "links": [link | {"at": cut}]}
    bulk = {"name": "bulk", "kind": "tcp", "from": "a", "to": "b", "window": "16 kB"}
    made = partial(run, network, [bulk], engine=engine, duration="1.9 s")
    done = made() if engine == "sim" else undisturbed(made)
    assert timeouts[0] <= done.flows["rtos"][0] <= timeouts[1]


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_timeouts_of_a_syn_are_events_though_no_connection_follows(
    engine: str, run: Callable[..., Run]
) -> None:
    """The SYN's timeout is 1 s four times (`tcp_syn_linear_timeouts`); Linux is a little late."""
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "up": "off"}
    kinds: list[dict[str, Any]] = [
        {"kind": "tcp", "bytes": "20 kB"},
        {"kind": "request", "request": "100 B", "response": "1 kB"},
        {"kind": "http", "sizes": ["10 kB"], "connections": 1},
        {"kind": "echo", "sizes": [100]},
    ]
    flows = [{"name": f"f{number}", **kind} for number, kind in enumerate(kinds)]
    done = run({"path": path}, flows, engine=engine, duration="2.5 s")
    assert done.sockets.is_empty()
    events = done.tables["events"].filter(event="rto")
    for name, counted in done.flows.select("flow", "rtos").iter_rows():
        # Null before Linux 6.7.
        expected = [] if counted is None else [1, 2]
        times = events.filter(flow=name)["time"].to_list()
        # On a busy machine they are seen late, but not by half a second.
        assert [time / 1e9 for time in times] == pytest.approx(expected, abs=0.4)


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_what_comes_after_the_end_of_the_run_does_not_count(engine: str, run: Callable[..., Run]) -> None:
    """Each kind has something under way then; the rows of intervals have all that the flow's row has."""
    path = {"rate": "10 Mbit/s", "rtt": "60 ms"}
    kinds: list[dict[str, Any]] = [
        {"kind": "tcp"},
        {"kind": "udp", "rate": "1 Mbit/s"},
        {"kind": "request", "request": "100 kB", "response": "20 kB"},
        {"kind": "http", "sizes": ["300 kB"]},
        {"kind": "echo", "sizes": [1000], "iterations": 10000},
        # One of a flow that stops earlier is waited for.
        {"kind": "echo", "sizes": [1000], "iterations": 10000, "stop": "1 s"},
    ]
    flows = [{"name": f"f{number}", **kind} for number, kind in enumerate(kinds)]
    done = run({"path": path}, flows, engine=engine, duration="2 s")
    own = ("flow", "stream")
    intervals = done.intervals.group_by(own).agg(within=pl.col("bytes_received").sum())
    rows = done.flows.join(intervals, on=own, validate="1:1")
    assert rows.height == done.flows.height
    assert rows["within"].to_list() == rows["bytes_received"].to_list()
    end = 2_000_000_000
    assert rows.filter(pl.col("end") > end).is_empty()
    echoes = done.echoes.filter(pl.col("flow") != "f2")
    assert echoes.filter(pl.col("time") + pl.col("rtt") > end).is_empty()
    assert echoes.filter(flow="f5").filter(pl.col("time") >= 1_000_000_000).is_empty()


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_only_what_the_run_or_a_stop_cuts_off_is_incomplete(engine: str, run: Callable[..., Run]) -> None:
    """Flows that last as long as the run, that have a stop within it, and that would go on after it."""
    kinds: list[dict[str, Any]] = [
        {"kind": "tcp"},
        {"kind": "udp", "rate": "20 kbit/s"},
        {"kind": "ping"},
        {"kind": "request", "request": "100 B", "response": "1 kB", "think": "50 ms"},
        {"kind": "http", "sizes": ["1 kB"], "connections": 1, "think": "50 ms"},
    ]
    # Each has an amount that the time has no room for.
    amounts: list[dict[str, Any]] = [{"bytes": "1 GB"}] * 2 + [{"count": 1000}] * 3
    times: dict[str, dict[str, Any]] = {
        "through": {},
        "stopped": {"stop": "500 ms"},
        "beyond": {"stop": "5 s"},
    }
    flows = [
        {"name": f"{kind['kind']}-{name}{suffix}", **kind, **time, **more}
        for kind, amount in zip(kinds, amounts, strict=True)
        for name, time in times.items()
        for suffix, more in [("", {}), ("-of-many", amount)]
    ]
    path = {"rate": "100 Mbit/s", "rtt": "20 ms", "per_flow": True}
    done = run({"path": path}, flows, engine=engine, duration="1 s")
    complete = dict(done.flows.select("flow", "complete").iter_rows())
    assert complete == {
        flow["name"]: "beyond" not in flow["name"] and "-of-many" not in flow["name"] for flow in flows
    }


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_what_a_stop_ends_lasts_until_its_last_answer(engine: str, run: Callable[..., Run]) -> None:
    """Not until the stop, where that falls into a pause, nor until the connection is closed."""
    kinds: list[dict[str, Any]] = [
        {"kind": "request", "request": "100 B", "response": "1 kB", "count": 100},
        {"kind": "request", "request": "100 B", "response": "1 kB", "think": "5 s"},
        {"kind": "http", "sizes": ["1 kB"], "count": 100, "connections": 1},
        {"kind": "echo", "sizes": [100], "iterations": 100},
        {"kind": "echo", "sizes": [100], "iterations": 100, "interval": "5 s"},
    ]
    flows = [{"name": f"f{number}", "stop": "3 s", **kind} for number, kind in enumerate(kinds)]
    path = {"rate": "100 Mbit/s", "rtt": "800 ms", "per_flow": True}
    done = run({"path": path}, flows, engine=engine, duration="6 s")
    fetches = done.tables["fetches"].select("flow", answered=pl.col("time") + pl.col("duration"))
    echoes = done.echoes.select("flow", answered=pl.col("time") + pl.col("rtt"))
    last = dict(pl.concat([fetches, echoes]).group_by("flow").agg(pl.col("answered").max()).iter_rows())
    for flow, end in done.flows.select("flow", "end").iter_rows():
        assert end / 1e9 == pytest.approx(last[flow] / 1e9, abs=LATE[engine]), flow


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_a_transfer_is_complete_when_all_has_arrived_though_the_run_ends_before_the_connection_does(
    engine: str, run: Callable[..., Run]
) -> None:
    """All has arrived after 2.3 s; a FIN takes 450 ms there and is answered in another 450 ms."""
    path = {"rate": "10 Mbit/s", "rtt": "900 ms"}
    kinds = [{"kind": "tcp", "bytes": "20 kB"}, *ASKED]
    flows = [{"name": f"f{number}", **kind} for number, kind in enumerate(kinds)]
    done = run({"path": path}, flows, engine=engine, duration="2.48 s")
    rows = done.flows.sort("flow")
    assert rows["complete"].to_list() == [True] * 3
    assert [end / 1e9 for end in rows["end"]] == pytest.approx([2.26, 1.8, 1.8], abs=LATE[engine])
    assert done.tables["events"].filter(event="closed").is_empty()


@pytest.mark.parametrize("engine", ["sim", "kernel"])
def test_every_connection_is_established_and_closed_by_a_handshake(
    engine: str, run: Callable[..., Run]
) -> None:
    """An RTT after the SYN, and an RTT after the last byte, where nothing is in flight any more."""
    path = {"rate": "100 Mbit/s", "rtt": "800 ms"}
    kinds = [{"kind": "tcp", "bytes": "2 kB"}, *ASKED, {"kind": "echo", "sizes": [100], "iterations": 1}]
    flows = [{"name": f"f{number}", **kind} for number, kind in enumerate(kinds)]
    done = run({"path": path}, flows, engine=engine, timeout=LIMIT)
    events = done.tables["events"].sort("time")
    last = done.sockets.filter(node="left").group_by("flow").agg(pl.col("time", "inflight").last())
    # The last byte of a transfer is delivered halfway of the FIN's round trip.
    after = [0.4, 0.8, 0.8, 0.8]
    late = LATE[engine]
    for flow, closing in zip(flows, after, strict=True):
        (row,) = done.flows.filter(flow=flow["name"]).to_dicts()
        (established,) = events.filter(flow=flow["name"], event="established")["time"]
        (closed,) = events.filter(flow=flow["name"], event="closed")["time"]
        assert established / 1e9 == pytest.approx(0.8, abs=late)
        assert (closed - row["end"]) / 1e9 == pytest.approx(closing, abs=late)
        (sample,) = last.filter(flow=flow["name"]).to_dicts()
        assert (sample["inflight"], sample["time"] / 1e9) == (0, pytest.approx(closed / 1e9, abs=late))
    assert not done.intervals.select("flow", "stream", "time").is_duplicated().any()
    begin = done.intervals.select("flow", "stream", pl.col("time") - pl.col("duration"))
    assert not begin.is_duplicated().any()


def test_a_connection_that_tcp_gives_up_is_aborted_and_the_run_is_done(run: Callable[..., Run]) -> None:
    """Here 1.4 s after the first timeout (`tcp_retries2` = 2)."""
    patience = {"net.ipv4.tcp_retries2": 2}
    link = {"name": "link", "ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "10 ms", "queue": "20 packets"}
    network = {
        "nodes": [{"name": name, "sysctls": patience} for name in "ab"],
        "links": [link | {"at": {"1 s": {"loss": "100 %"}}}],
    }
    flows: list[dict[str, Any]] = [
        {"name": "bulk", "kind": "tcp"},
        {"name": "request", "kind": "request", "request": "200 B", "response": "100 kB"},
        {"name": "echo", "kind": "echo", "sizes": ["100 B"]},
    ]
    pair = {"from": "a", "to": "b", "cc": "cubic"}
    done = run(network, [flow | pair for flow in flows], engine="kernel", duration="7 s")
    assert done.manifest.status == "done"
    assert not done.flows["complete"].any()
    assert (done.flows["bytes_received"] > 0).all()
    aborted = done.events.filter(pl.col("event") == "aborted")
    assert set(aborted["flow"]) == {flow["name"] for flow in flows}
    said = " ".join(done.warnings)
    assert all(f"{name}: TCP gave up stream 0" in said for name in ("bulk", "request")), said
    assert said.count("(os error 110)") >= 3


def test_an_echo_flow_waits_for_the_network_unless_it_has_a_timeout(run: Callable[..., Run]) -> None:
    link = {"name": "link", "ends": ["a", "b"], "rate": "10 Mbit/s", "delay": "10 ms"}
    cut = {"1 s": {"loss": "100 %"}, "2 s": {"loss": "0 %"}}
    flows: list[dict[str, Any]] = [{"name": "patient"}, {"name": "brief", "timeout": "500 ms"}]
    work = {"kind": "echo", "from": "a", "to": "b", "sizes": ["100 B"], "iterations": 100}
    network = {"nodes": ["a", "b"], "links": [link | {"at": cut}]}
    done = run(network, [flow | work for flow in flows], engine="kernel", timeout="30 s")
    assert dict(done.flows.select("flow", "complete").iter_rows()) == {"patient": True, "brief": False}
    assert "brief: client 0" in " ".join(done.warnings)
