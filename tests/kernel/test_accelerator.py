"""Accelerators on the real stack: what they gain and count, and what the simulator says of the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run

SATELLITE = {"towards_server": {"cc": "bbr1", "send_buffer": "8 MiB"}}


def network(accelerate: dict[str, Any] | None, link: dict[str, Any]) -> dict[str, Any]:
    gateway: dict[str, Any] = {"name": "gateway", "kind": "router"}
    if accelerate is not None:
        gateway |= {"accelerate": accelerate}
    links = [
        {"ends": ["client", "gateway"], "rate": "100 Mbit/s", "delay": "1 ms"},
        {"ends": ["gateway", "server"], **link},
    ]
    return {"nodes": ["client", gateway, "server"], "links": links}


def flow(**more: Any) -> dict[str, Any]:
    return {"name": "f", "kind": "tcp", "from": "client", "to": "server", **more}


@pytest.mark.parametrize("ip", [4, 6])
def test_both_engines_split_and_count_the_same(
    ip: int, run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    link = {"rate": "50 Mbit/s", "delay": "10 ms", "forward": {"loss": {"every": "200 packets"}}}
    for engine in ("sim", "kernel"):
        made = partial(run, network({}, link), [flow(ip=ip, bytes="4 MB")], engine=engine, timeout="60 s")
        # A sender that waits for a CPU may retransmit without a loss.
        done = made() if engine == "sim" else undisturbed(made)
        (row,) = done.flows.to_dicts()
        assert row["bytes_received"] == 4_000_000
        assert row["complete"]
        assert row["retransmits"] == 0, "losses are those of the second leg"
        last = done.legs.sort("time").group_by("leg").last()
        legs = {leg["leg"]: leg for leg in last.to_dicts()}
        assert legs["client"]["flow"] == legs["server"]["flow"] == "f"
        # Linux counts the FIN among the bytes received (`tcp_rcv_nxt_update`).
        assert legs["client"]["bytes_received"] - 4_000_000 in (0, 1)
        # 4 MB are 2,763 segments, of which every 200th was lost.
        assert legs["server"]["retransmits"] >= 10
        assert 1e6 < legs["client"]["srtt"] < 20e6 < legs["server"]["srtt"]


def test_a_satellite_path_gains_five_times_and_the_engines_agree(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    """CUBIC over 50 Mbit/s, 300 ms and 0.1 % loss. The same packets are lost in both engines."""
    # The client's link is bare: 5 ms of stall are overload on an emulated one of 2 ms; on this path, 30 ms.
    links = [
        {"ends": ["client", "gateway"]},
        {"ends": ["gateway", "server"], "rate": "50 Mbit/s", "delay": "150 ms", "queue": "1 BDP"}
        | {"forward": {"loss": "0.1 %"}},
    ]
    settings: tuple[dict[str, Any] | None, ...] = (None, SATELLITE)

    def made(engine: str, accelerate: dict[str, Any] | None) -> Run:
        path = {**network(accelerate, {}), "links": links}
        return run(path, [flow()], engine=engine, duration="20 s")

    goodput: dict[tuple[str, bool], float] = {}
    for accelerate in settings:
        split = accelerate is not None
        goodput["sim", split] = made("sim", accelerate).flows["goodput"][0]
        measured = undisturbed(partial(made, "kernel", accelerate))
        goodput["kernel", split] = measured.flows["goodput"][0]
    for engine in ("sim", "kernel"):
        assert goodput[engine, True] > 5 * goodput[engine, False], goodput
    for split in (False, True):
        assert goodput["kernel", split] == pytest.approx(goodput["sim", split], rel=0.1), goodput


def test_a_short_clean_path_gains_nothing(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    short = {"rate": "20 Mbit/s", "delay": "2 ms"}
    goodput = []
    settings: tuple[dict[str, Any] | None, ...] = (None, {})
    for accelerate in settings:

        def made(accelerate: dict[str, Any] | None = accelerate) -> Run:
            return run(network(accelerate, short), [flow(bytes="10 MB")], timeout="60 s")

        goodput.append(undisturbed(made).flows["goodput"][0])
    alone, split = goodput
    assert split == pytest.approx(alone, rel=0.02)


def test_its_death_loses_what_it_held_in_both_engines(run: Callable[..., Run]) -> None:
    """It was acknowledged to the sender. Connections opened later pass, and the run does not hang."""
    slow = {"rate": "5 Mbit/s", "delay": "20 ms", "queue": "30 packets"}
    flows = [flow(), flow(name="later", start="4 s", bytes="200 kB")]
    for engine in ("sim", "kernel"):
        done = run(network({"kill_at": "3 s"}, slow), flows, engine=engine, duration="20 s")
        rows = {row["flow"]: row for row in done.flows.to_dicts()}
        assert rows["later"]["complete"], engine
        assert not rows["f"]["complete"], engine
        assert set(done.legs["flow"]) == {"f"}, engine
        last = done.legs.filter(pl.col("time") == pl.col("time").max())
        assert last["time"][0] >= 3e9, engine
        exposed = last["exposed"].max()
        acked = done.sockets.filter(pl.col("flow") == "f")["bytes_acked"].max()
        lost = acked - rows["f"]["bytes_received"]
        # Packets on their way arrive before the reset: 30 packets in the queue, and the path's 25 kB.
        assert 0 < lost <= exposed, engine
        assert exposed - lost < 300_000, engine


def test_limits_act_in_both_engines(run: Callable[..., Run]) -> None:
    short = {"rate": "20 Mbit/s", "delay": "5 ms"}
    flows = [flow(bytes="2 MB"), flow(name="second", start="300 ms", bytes="200 kB")]
    for engine in ("sim", "kernel"):
        done = run(network({"connections": 1}, short), flows, engine=engine, timeout="30 s")
        assert done.flows["complete"].all(), engine
        assert set(done.legs["flow"]) == {"f"}, engine
        reset = {"connections": 1, "when_full": "reset"}
        done = run(network(reset, short), flows, engine=engine, timeout="30 s")
        assert dict(done.flows.select("flow", "complete").rows()) == {"f": True, "second": False}, engine


def test_without_transparency_the_result_is_the_same_in_both_engines(run: Callable[..., Run]) -> None:
    short = {"rate": "20 Mbit/s", "delay": "5 ms"}
    for engine in ("sim", "kernel"):
        done = run(
            network({"transparent": False}, short), [flow(bytes="1 MB")], engine=engine, timeout="30 s"
        )
        assert done.flows["complete"].all(), engine
        assert set(done.legs["flow"]) == {"f"}, engine


def test_the_buffers_bound_what_it_holds(run: Callable[..., Run]) -> None:
    buffers = {"towards_client": {"receive_buffer": "200 kB"}, "towards_server": {"send_buffer": "200 kB"}}
    slow = {"rate": "1 Mbit/s", "delay": "10 ms"}
    for engine in ("sim", "kernel"):
        done = run(network(buffers, slow), [flow()], engine=engine, duration="5 s")
        maximum = done.legs.select(pl.col("exposed").max()).item()
        # Twice each buffer, as Linux grants it, and a pipe of 256 KiB.
        assert 200_000 < maximum < 800_000 + (256 << 10), engine


def test_requests_echoes_and_datagrams_pass(run: Callable[..., Run]) -> None:
    flows = [
        flow(name="ask", kind="request", request="400 B", response="20 kB", count=20),
        flow(name="echo", kind="echo", sizes=[1000], iterations=20),
        flow(name="udp", kind="udp", rate="1 Mbit/s", duration="1 s"),
        flow(name="ping", kind="ping", count=5),
    ]
    for engine in ("sim", "kernel"):
        done = run(network({}, {"rate": "20 Mbit/s", "delay": "5 ms"}), flows, engine=engine, timeout="30 s")
        rows = {row["flow"]: row for row in done.flows.to_dicts()}
        assert rows["ask"]["bytes_received"] == 20 * 20_400
        assert rows["echo"]["complete"]
        assert done.pings["lost"].sum() == 0
        assert set(done.legs["flow"]) == {"ask", "echo"}


def test_rules_choose_the_same_connections_in_both_engines(run: Callable[..., Run]) -> None:
    flows = [
        flow(name="web", port=443, streams=2, bytes="100 kB"),
        flow(name="other", port=8080, bytes="100 kB"),
        flow(name="away", to="second", port=443, bytes="100 kB"),
    ]
    accelerate = {"ports": [443], "hosts": ["server"]}
    short = {"rate": "100 Mbit/s", "delay": "1 ms"}
    joined = network(accelerate, short)
    joined["nodes"].append("second")
    joined["links"].append({"ends": ["gateway", "second"], **short})
    for engine in ("sim", "kernel"):
        done = run(joined, flows, engine=engine, timeout="30 s")
        assert done.flows["complete"].all(), engine
        rows = done.flows.select("flow", "stream", "to_port").rows()
        assert set(rows) == {("web", 0, 443), ("web", 1, 444), ("other", 0, 8080), ("away", 0, 443)}
        assert set(done.legs.select("flow", "stream").rows()) == {("web", 0)}, engine


def test_each_of_two_accelerators_splits_the_connection_in_both_engines(run: Callable[..., Run]) -> None:
    routers: list[dict[str, Any]] = [
        {"name": name, "kind": "router", "accelerate": {}} for name in ("near", "far")
    ]
    fast = {"rate": "100 Mbit/s", "delay": "1 ms"}
    lossy = {"rate": "50 Mbit/s", "delay": "10 ms", "forward": {"loss": {"every": "200 packets"}}}
    links = [
        {"ends": ["client", "near"], **fast},
        {"ends": ["near", "far"], **lossy},
        {"ends": ["far", "server"], **fast},
    ]
    two = {"nodes": ["client", *routers, "server"], "links": links}
    for engine in ("sim", "kernel"):
        done = run(two, [flow(bytes="4 MB")], engine=engine, timeout="60 s")
        (row,) = done.flows.to_dicts()
        assert row["complete"], engine
        assert row["bytes_received"] == 4_000_000
        last = done.legs.sort("time").group_by("node", "leg").last()
        legs = {(leg["node"], leg["leg"]): leg["retransmits"] for leg in last.to_dicts()}
        assert set(legs) == {(node, leg) for node in ("near", "far") for leg in ("client", "server")}
        lost = row["losses_true"]
        if engine == "sim":
            assert legs["near", "server"] == lost, "each loss is repaired once, by the router before it"
            assert row["retransmits"] == legs["far", "server"] == 0
            continue
        links = done.manifest.facts["emulator"]["links"]
        counted = {
            (name, way): link[way]["lost"] for name, link in links.items() for way in ("forward", "backward")
        }
        carried = links["near-far"]["forward"]["packets_in"]
        assert counted.pop(("near-far", "forward")) == carried // 200 == lost
        assert set(counted.values()) == {0}
        assert not any(link[way]["dropped"] for link in links.values() for way in ("forward", "backward"))
        # A retransmission on another leg repairs nothing: a busy host may send tail loss probes.
        assert legs["near", "server"] >= lost
