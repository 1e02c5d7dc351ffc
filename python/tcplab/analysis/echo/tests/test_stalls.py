"""Waits that TCP really makes are found in what they do to round trips: in Linux and in the simulator."""

import socket
import threading
import time
from pathlib import Path as FilePath

import numpy as np
import pytest

import tcplab
from tcplab.analysis.echo import Path, Series, Step, explain, statistics
from tcplab.present.echo import echo_flows


def simulated(out: FilePath, nagle: str = "on", **more: object) -> dict[str, Step]:
    """Explanations of messages that cross 100 Mbit/s and 1 ms, by kind."""
    path: dict[str, object] = {"rate": "100 Mbit/s", "rtt": "1 ms"}
    path |= {side: {"nagle": nagle} for side in ("left", "right")}
    flow: dict[str, object] = {"name": "e", "kind": "echo", "sizes": [100, 2000], "iterations": 30}
    for key, value in more.items():
        (path if key == "loss" else flow)[key] = value
    run = tcplab.run({"tcplab": 1, "name": "t", "network": {"path": path}, "flows": [flow]}, output=out)
    (test,) = echo_flows(run)
    return {step.kind: step for step in test.steps}


def test_nagle_does_not_wait_for_delayed_acks_in_a_window_that_holds_no_message(tmp_path: FilePath) -> None:
    # Segments are at most half the window (tcp_bound_to_half_wnd): two are under way, and the second is
    # acknowledged at once. Linux 6.18 does not wait here either.
    for size in ("2 kB", "3 kB"):
        assert "delayed ACK" not in simulated(tmp_path / size, receive_buffer=size)


def test_a_lost_message_waits_for_the_retransmission_timer(tmp_path: FilePath) -> None:
    found = simulated(tmp_path / "lost", loss={"packets": [12, 20]})
    assert found["timeout"].text.startswith("2 round trips (at 100 B) took about 200 ms longer")
    assert "delayed ACK" not in found


SIZE = 100
# A quarter of Linux's shortest delayed ACK, ns: a machine that takes so long for a message hides the waits.
LATE = 10e6


def through_loopback(messages: int, in_two: int, nodelay: bool) -> Series:
    """Round trips of messages between two sockets of this host; every `in_two`-th is written in two parts."""

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while message := peer.recv(SIZE, socket.MSG_WAITALL):
                peer.sendall(message)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        with socket.create_connection(listener.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
            rtts = []
            for number in range(messages):
                first = 1 if number % in_two == in_two - 1 else SIZE
                begin = time.perf_counter_ns()
                client.sendall(bytes(first))
                client.sendall(bytes(SIZE - first))
                client.recv(SIZE, socket.MSG_WAITALL)
                rtts.append(time.perf_counter_ns() - begin)
        server.join()
    return Series(0, SIZE, np.array(rtts, dtype=float))


def counted(series: Series) -> int:
    """Round trips that are said to have waited for a delayed ACK."""
    echoes = statistics([series], clients=1, iterations=len(series.rtts))
    found = [step.text for step in explain(echoes, Path()) if step.kind == "delayed ACK"]
    return int(found[0].split()[0]) if found else 0


def test_messages_written_in_two_parts_are_known_by_linuxs_delayed_acks() -> None:
    delayed, prompt = (through_loopback(200, 10, nodelay=nodelay) for nodelay in (False, True))
    whole = np.concatenate([np.delete(series.rtts, np.s_[9::10]) for series in (delayed, prompt)])
    if (late := np.mean(whole > LATE)) > 0.02:
        pytest.skip(f"{late:.0%} of the messages written at once took more than {LATE / 1e6:.0f} ms")
    # A connection acknowledges its first packets at once.
    assert counted(delayed) >= 15
    assert counted(prompt) <= 5
