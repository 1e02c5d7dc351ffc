"""Runs on the kernel: settings take effect, labs do not meet, and what goes wrong is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import tcplab
from tcplab.analysis.outages import outages
from tcplab.captures.summary import summarise
from tcplab.results import Run, load

PATH = {"rate": "50 Mbit/s", "rtt": "10 ms"}
TREE = {
    "nodes": ["a", "b", {"name": "s", "kind": "switch"}, {"name": "r", "kind": "router"}, "c"],
    "links": [
        {"ends": ["a", "s"], "delay": "1 ms"},
        {"ends": ["b", "s"]},
        {"ends": ["s", "r"]},
        {"ends": ["r", "c"], "rate": "20 Mbit/s", "delay": "5 ms"},
    ],
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make programs more urgent")
def test_a_run_that_other_programs_disturbed_says_so(run: Callable[..., Run], tmp_path: Path) -> None:
    # More than there are CPUs, and more urgent, so that whatever a flow does it has to wait. They begin when
    # it runs, and end by themselves: what brings the network up and down would wait, too.
    busy = "import os, time; os.nice(-15); end = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    others: list[subprocess.Popen[bytes]] = []

    def disturb() -> None:
        deadline = time.monotonic() + 60
        while not any(tmp_path.glob("results-0/run-1/intervals.*.arrows")) and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(2 * len(os.sched_getaffinity(0))):
            others.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", busy]))

    disturber = threading.Thread(target=disturb)
    disturber.start()
    flow = {"name": "f", "kind": "tcp", "cc": "cubic", "streams": 4}
    done = run({"path": {"rate": "1 Gbit/s", "rtt": "10 ms"}}, [flow], duration="4 s")
    disturber.join()
    for other in others:
        other.wait()
    said = [*done.manifest.warnings, done.manifest.overload or ""]
    worst = [node["waiting"]["worst"] for node in done.manifest.facts["nodes"].values()]
    assert max(one["share"] for one in worst if one) > 0.25
    assert any("held up" in one for one in said), said


def test_switches_and_routers_carry_flows_between_all_hosts(run: Callable[..., Run]) -> None:
    flows = [
        {"name": "ac", "kind": "tcp", "from": "a", "to": "c"},
        {"name": "ab", "kind": "ping", "from": "a", "to": "b"},
        {"name": "cb", "kind": "udp", "rate": "1 Mbit/s", "bytes": "100 kB", "from": "c", "to": "b"},
    ]
    done = run(TREE, flows, duration="2 s")
    received = dict(done.flows.select("flow", "bytes_received").rows())
    assert received["ac"] > 0
    assert 100_000 <= received["cb"] == done.flows.filter(flow="cb")["bytes_sent"][0]
    assert done.pings.filter(pl.col("rtt") > 2_000_000).height >= 10


def test_no_packet_but_the_scenarios_own_crosses_a_link(run: Callable[..., Run]) -> None:
    flow = {"name": "p", "kind": "ping", "interval": "100 ms", "count": 10, "from": "a", "to": "c"}
    done = run(TREE, [flow], duration="1.5 s", sample={"packets": "on"})
    forward = done.manifest.facts["emulator"]["links"]["a-s"]["forward"]["packets_in"]
    assert forward == done.pings.height
    assert done.manifest.facts["emulator"]["links"]["b-s"]["forward"]["packets_in"] == 0


def test_settings_of_hosts_are_in_force(run: Callable[..., Run]) -> None:
    hosts = {
        "sack": "off",
        "tso": "off",
        "gso": "off",
        "gro": "on",
        "sysctls": {"net.ipv4.tcp_reordering": 7},
    }
    done = run({"path": {**PATH, "left": hosts}}, [{"name": "f", "kind": "tcp"}], duration="0.5 s")
    manifest = done.manifest
    assert manifest.facts["node_sysctls"]["left"]["net.ipv4.tcp_sack"] == "0"
    assert manifest.facts["node_sysctls"]["right"]["net.ipv4.tcp_sack"] == "1"
    assert manifest.facts["node_sysctls"]["left"]["net.ipv4.tcp_reordering"] == "7"
    assert manifest.offloads["left.eth0"] == ["gro"]
    assert manifest.offloads["right.eth0"] == ["tso", "gso"]


def test_the_initial_window_is_the_one_asked_for(run: Callable[..., Run]) -> None:
    # The connection is established after 0.9 s, and nothing is acknowledged before 1.8 s.
    def first(window: int) -> int:
        path = {**PATH, "rtt": "900 ms", "left": {"initial_window": f"{window} packets"}}
        done = run({"path": path}, [{"name": "f", "kind": "tcp"}], duration="1.7 s")
        # A busy machine may end the run later.
        begun = done.sockets.filter(pl.col("bytes_acked") < 1000)
        return int(begun["cwnd"].drop_nulls()[-1])

    assert (first(4), first(20)) == (4, 20)


def test_settings_of_sockets_are_in_force(run: Callable[..., Run]) -> None:
    flows = [
        {"name": "plain", "kind": "tcp", "cc": "cubic"},
        {"name": "set", "kind": "tcp", "cc": "cubic", "mss": "1000 B", "receive_buffer": "64 kB"},
    ]
    done = run({"path": {**PATH, "left": {"pacing": "on"}}}, flows, duration="1 s")
    last = {row["flow"]: row for row in done.sockets.iter_rows(named=True)}
    # Timestamps take 12 bytes of a segment.
    assert (last["plain"]["mss"], last["set"]["mss"]) == (1448, 988)
    assert last["set"]["rwnd"] < 66_000 < last["plain"]["rwnd"]
    assert last["plain"]["pacing_rate"] > 0


def test_retransmission_timeouts_are_events_of_the_failure_that_caused_them(
    run: Callable[..., Run], undisturbed: Callable[[Callable[[], Run]], Run]
) -> None:
    """The events, from samples, are as many as the kernel counted until the flow's end (since Linux 6.7)."""
    failure = {"1 s": {"loss": "100 %"}, "3 s": {"loss": "0 %"}}
    network, flows = {"path": {**PATH, "at": failure}}, [{"name": "bulk", "kind": "tcp", "cc": "cubic"}]
    result = undisturbed(lambda: run(network, flows, sample={"sockets": "20 ms"}, duration="6 s"))
    (counted,) = result.flows["rtos"]
    events = result.tables["events"].filter(pl.col("event") == "rto")
    (felt,) = outages(result)
    assert felt.undone is None
    if counted is None:
        assert (len(events), felt.rtos) == (0, None)
        return
    # The first after 200 ms or more, each later one twice as long after the one before: three or four in 2 s.
    assert counted >= 1
    assert len(events) == counted
    # The outage goes on beyond the link's return, until the next timeout.
    assert felt.restored is not None
    until = max(3_000_000_000, felt.at + felt.restored + felt.resolution)
    assert felt.rtos == events.filter(pl.col("time").is_between(1_000_000_000, until)).height
    assert felt.rtos >= 1


def test_a_flow_that_ends_by_bytes_ends_the_run(run: Callable[..., Run]) -> None:
    began = time.monotonic()
    done = run({"path": PATH}, [{"name": "f", "kind": "tcp", "bytes": "1 MB"}], timeout="120 s")
    assert done.flows["bytes_received"].to_list() == [1_000_000]
    assert done.flows["complete"].to_list() == [True]
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("gso", ["on", "off"])
def test_datagrams_that_leave_at_once_are_one_message_unless_segmentation_is_off(
    run: Callable[..., Run], gso: str
) -> None:
    network = {"nodes": [{"name": "a", "gso": gso}, "b"], "links": [{"ends": ["a", "b"]}]}
    flow = {"name": "u", "kind": "udp", "rate": "1 Gbit/s", "payload": "1000 B", "from": "a", "to": "b"}
    # So few that they fit the receiver's buffer. It may read them late, with all processors busy.
    done = run(
        network, [{**flow, "duration": "20 ms"}], duration="3 s", capture={"what": "headers", "at": "host"}
    )
    if any(node["dropped"] for node in done.manifest.facts["nodes"].values()):
        pytest.skip(str(done.manifest.overload))
    sent = done.flows["segments_sent"][0]
    assert done.flows["bytes_received"][0] == 1000 * sent
    (seen,) = done.manifest.facts["nodes"]["a"]["captures"].values()
    packets = seen["packets"] + seen["drops"]
    assert packets == sent if gso == "off" else packets < sent / 2


def test_requests_are_answered_over_the_path(run: Callable[..., Run]) -> None:
    flow = {"name": "q", "kind": "request", "request": "100 B", "response": "1 kB", "count": 20}
    done = run({"path": PATH}, [flow], duration="2 s")
    assert done.echoes.height == 20
    assert done.echoes["rtt"].to_numpy().min() > 10_000_000


def test_iperf3_makes_a_flow(run: Callable[..., Run]) -> None:
    flow = {"name": "f", "kind": "tcp", "generator": "iperf3", "duration": "2 s"}
    done = run({"path": PATH}, [flow], duration="4 s")
    reported = done.flows["bytes_received"][0]
    assert reported == done.intervals["bytes_received"].sum()
    if late := [warning for warning in done.warnings if "iperf3 began" in warning]:
        pytest.skip(late[0])
    link = done.queues.filter(direction="forward")
    assert 100_000 < reported < link["bytes_out"].max()


@pytest.mark.parametrize(("rtt", "duration"), [(200, 2), (600, 4)])
def test_iperf3_that_goes_on_after_the_run_is_named_and_cut_there(
    rtt: int, duration: int, run: Callable[..., Run]
) -> None:
    flow = {"name": "f", "kind": "tcp", "generator": "iperf3"}
    # It connects twice before it sends.
    done = run({"path": {**PATH, "rtt": f"{rtt} ms"}}, [flow], duration=f"{duration} s")
    assert any("f: iperf3 began" in warning for warning in done.warnings)
    (row,) = done.flows.iter_rows(named=True)
    assert 0 < row["end"] <= duration * 1_000_000_000
    assert (done.intervals["time"] <= duration * 1_000_000_000).all()
    counted = done.intervals.select(pl.col("bytes_sent", "bytes_received").sum()).row(0)
    assert counted == (row["bytes_sent"], row["bytes_received"])
    # Both ends count from when the data connection was made, after some round trips.
    assert (done.intervals["time"] - done.intervals["duration"] > 2 * rtt * 1_000_000).all()


def test_queues_are_sampled_as_simulated_and_count_the_waits_of_packets(run: Callable[..., Run]) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": "30 packets"}
    sample = {"packets": True, "queues": "10 ms"}
    done = run({"path": path}, [{"name": "f", "kind": "tcp"}], duration="1.005 s", sample=sample)
    rows = done.queues.filter(direction="forward")
    # After each interval, and at the end.
    assert rows["time"].to_list() == [*range(10_000_000, 1_005_000_000, 10_000_000), 1_005_000_000]
    packets = done.packets.filter(direction="forward").sort("time", maintain_order=True)
    entered, departed = (packets.filter(event=event) for event in ("enqueue", "depart"))
    # A byte takes 800 ns. Packets still waiting or being sent have not departed.
    stayed = departed["time"] - entered["time"].head(len(departed))
    assert rows["packets_out"][-1] - len(departed) in (0, 1)
    assert rows["waited"][-1] == pytest.approx((stayed - 800 * departed["len"]).sum(), rel=0.01)


def test_captures_are_made_at_the_host_and_on_the_wire(run: Callable[..., Run]) -> None:
    flow = {"name": "f", "kind": "tcp", "bytes": "200 kB"}
    for at in ("host", "wire"):
        done = run({"path": PATH}, [flow], duration="2 s", capture={"what": "headers", "at": at})
        made = sorted(path.name for path in done.path.glob("run-1/*.pcapng"))
        assert made == ["left-path.pcapng", "right-path.pcapng"]
        assert not list(done.path.glob("run-1/*.arrows"))


def test_every_stream_has_the_ports_of_its_packets(run: Callable[..., Run]) -> None:
    flows = [
        {"name": "bulk", "kind": "tcp", "bytes": "100 kB", "streams": 2},
        {"name": "ask", "kind": "request", "request": "10 B", "response": "100 kB", "count": 1},
        {"name": "echo", "kind": "echo", "sizes": [100], "iterations": 2, "clients": 1},
        {"name": "noise", "kind": "udp", "rate": "1 Mbit/s"},
        {"name": "idle", "kind": "ping"},
    ]
    done = run({"path": PATH}, flows, duration="1 s", capture="headers")
    captured = summarise(done.path / "run-1" / "left-path.pcapng").flows
    ends = [[half.port for half in flow.halves] for flow in captured]
    for row in done.flows.to_dicts():
        ports = [row["from_port"], row["to_port"]]
        if row["kind"] == "ping":
            assert ports == [None, None]
        else:
            assert ends.count(ports) == 1, (row["flow"], row["stream"], ports, ends)


def test_two_labs_at_once_do_not_meet(tmp_path: Path) -> None:
    results: dict[str, Run] = {}

    def one(name: str, rate: int) -> None:
        scenario = {
            "tcplab": 1,
            "name": name,
            "network": {"path": {"rate": f"{rate} Mbit/s", "rtt": "10 ms"}},
            "flows": [{"name": "f", "kind": "tcp", "cc": "cubic"}],
            "duration": "3 s",
        }
        results[name] = tcplab.run(scenario, engine="kernel", output=tmp_path / name)

    threads = [threading.Thread(target=one, args=pair) for pair in (("slow", 5), ("fast", 20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    received = {name: done.flows["bytes_received"][0] for name, done in results.items()}
    # A packet that reaches one was carried by its own link, which carries all it can and nobody else's.
    for name, done in results.items():
        carried = done.manifest.facts["emulator"]["links"]["path"]["forward"]
        full = (received[name] - 1448) / 1448
        assert full < carried["packets_in"] < 1.2 * full + 100, name
    assert received["slow"] * 8 / 3 < 5e6
    assert received["fast"] > 1.5 * received["slow"]


def test_a_second_run_knows_nothing_of_the_first(run: Callable[..., Run]) -> None:
    # Linux keeps what a connection has learnt of a path with the route, and begins the next with it.
    flow = {"name": "f", "kind": "tcp", "cc": "cubic"}
    # A socket is looked at long before the first acknowledgement changes what it began with.
    path = {"path": {"rate": "5 Mbit/s", "rtt": "150 ms", "queue": "20 packets"}}
    first, second = (run(path, [flow], duration="1.5 s") for _ in range(2))
    assert first.sockets["ssthresh"].drop_nulls().len() > 0, "it has left slow start"
    for row in (first.sockets.row(0, named=True), second.sockets.row(0, named=True)):
        assert (row["cwnd"], row["ssthresh"]) == (10, None)


SCENARIO = """\
tcplab: 1
name: long
network:
  path: {rate: 10 Mbit/s, rtt: 10 ms}
flows:
  - {name: f, kind: tcp}
duration: 60 s
"""


def command(folder: Path, scenario: str = SCENARIO) -> subprocess.Popen[str]:
    (folder / "long.yaml").write_text(scenario, encoding="utf-8")
    words = [sys.executable, "-m", "tcplab", "run", "long.yaml", "--engine", "kernel", "--output", "out"]
    return subprocess.Popen(
        words,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def wait_for_rows(folder: Path) -> None:
    """Wait until a table on disk has grown: it begins with its columns, rows come after them."""
    path, deadline = folder / "out" / "run-1" / "intervals.right.arrows", time.monotonic() + 60
    begun = 0
    while time.monotonic() < deadline:
        size = path.stat().st_size if path.exists() else 0
        if begun and size > begun:
            return
        begun = begun or size
        time.sleep(0.05)


def test_a_host_with_cpus_runs_on_those_alone(
    tmp_path: Path, descendants: Callable[[int], dict[int, str]]
) -> None:
    usable = sorted(os.sched_getaffinity(0))
    process = command(tmp_path, SCENARIO.replace("rtt: 10 ms", f"rtt: 10 ms, left: {{cpus: {usable[-1]}}}"))
    wait_for_rows(tmp_path)
    agents = [pid for pid, line in descendants(process.pid).items() if " node " in line]
    # The thread that only waits for signals was there before the agent knew its CPUs.
    at_work = [
        [int(task.parent.name) for task in Path(f"/proc/{pid}/task").glob("*/comm") if traffic(task, pid)]
        for pid in agents
    ]
    cpus = [sorted({tuple(sorted(os.sched_getaffinity(task))) for task in tasks}) for tasks in at_work]
    process.kill()
    process.communicate(timeout=60)
    wanted: list[list[tuple[int, ...]]] = [[(usable[-1],)], [tuple(usable)]]
    assert sorted(cpus) == sorted(wanted)


def traffic(task: Path, process: int) -> bool:
    """Whether a thread serves the flow `f`, or is the process's first."""
    return task.parent.name == str(process) or task.read_text(encoding="ascii").startswith("f")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_keeps_what_was_recorded(tmp_path: Path, ending: signal.Signals) -> None:
    process = command(tmp_path)
    wait_for_rows(tmp_path)
    # All processes of the group get it, as from a terminal or timeout(1).
    os.killpg(process.pid, ending)
    # It ends by itself after a minute.
    _, said = process.communicate(timeout=50)
    assert process.returncode == 130, said
    run = load(tmp_path / "out")
    assert run.status == "interrupted"
    assert run.flows.height == 1
    assert run.intervals["bytes_received"].sum() > 0
    assert not list(tmp_path.glob("out/run-1/*.arrows"))


@pytest.mark.parametrize(("role", "called"), [(" node ", "the process of"), (" emu", "the emulator process")])
def test_the_death_of_a_process_is_one_clear_message(
    tmp_path: Path, descendants: Callable[[int], dict[int, str]], role: str, called: str
) -> None:
    process = command(tmp_path)
    wait_for_rows(tmp_path)
    agent = next(pid for pid, line in descendants(process.pid).items() if role in line)
    os.kill(agent, signal.SIGKILL)
    _, said = process.communicate(timeout=50)
    assert process.returncode == 4
    assert called in said
    assert "has died" in said
    assert "dmesg" in said
    assert "Traceback" not in said
    run = load(tmp_path / "out")
    assert run.status == "failed"
    assert run.intervals.height > 0
