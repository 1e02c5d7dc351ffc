"""Pages over HTTP on the real stack: the requests and bytes of the simulator, and a server for any client."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run
from tcplab.testbed.agent import agent_command

ASKED = ["page", "object", "size", "offset", "bytes"]


def network(**more: Any) -> dict[str, Any]:
    return {"path": {"rate": "20 Mbit/s", "rtt": "20 ms", **more}}


def web(**more: Any) -> dict[str, Any]:
    return {
        "name": "web",
        "kind": "http",
        "from": "right",
        "to": "left",
        "sizes": ["1 kB", "20 kB", "100 kB"],
        **more,
    }


@pytest.mark.parametrize("ip", [4, 6])
def test_both_engines_ask_for_the_same_and_count_the_same_bytes(ip: int, run: Callable[..., Run]) -> None:
    flow = web(page=5, count=4, connections=3, ranges=2, think="20 ms", objects=50, ip=ip)
    runs = {
        engine: run(network(loss={"every": "100 packets"}), [flow], engine=engine, timeout="60 s", seed=7)
        for engine in ("sim", "kernel")
    }
    asked = {engine: done.fetches.select(ASKED).sort(ASKED).rows() for engine, done in runs.items()}
    assert len(asked["sim"]) == 4 * 5 * 2
    assert asked["kernel"] == asked["sim"]
    for done in runs.values():
        assert done.flows["complete"].all()
        assert (done.fetches["first_byte"] <= done.fetches["duration"]).all()
        assert (done.fetches["first_byte"] >= 20_000_000).all(), "a round trip"
    received = {engine: done.flows["bytes_received"].sum() for engine, done in runs.items()}
    assert received["kernel"] == received["sim"]
    sent = {engine: done.flows["bytes_sent"].sum() for engine, done in runs.items()}
    assert sent["kernel"] == sent["sim"]


def test_the_next_page_waits_for_all_objects_and_the_pause(run: Callable[..., Run]) -> None:
    done = run(network(), [web(page=4, count=5, think="100 ms")], timeout="60 s")
    pages = done.fetches.group_by("page").agg(
        pl.col("time").min().alias("begin"), (pl.col("time") + pl.col("duration")).max().alias("end")
    )
    pages = pages.sort("page")
    assert pages.height == 5
    assert ((pages["begin"][1:] - pages["end"][:-1]) >= 100_000_000).all()


@pytest.mark.parametrize("think", ["0 s", "30 ms"])
def test_the_connections_used_last_are_used_next(think: str, run: Callable[..., Run]) -> None:
    flow = web(page=2, connections=4, count=12, think=think)
    used = {
        engine: run(network(), [flow], engine=engine, timeout="60 s").fetches["stream"].n_unique()
        for engine in ("sim", "kernel")
    }
    assert used == {"sim": 2, "kernel": 2}


def test_a_flow_without_a_number_of_pages_is_complete_when_its_time_is_over(run: Callable[..., Run]) -> None:
    done = run(network(), [web(duration="2 s")], duration="3 s")
    assert done.flows["complete"].all()
    assert (done.fetches["time"] < 2_000_000_000).all()
    intervals = done.intervals.select(pl.col("bytes_received").sum()).item()
    assert intervals == done.flows["bytes_received"].sum()


class Server:
    """The server of an http flow in a network namespace of its own, until it is stopped."""

    def __init__(self, web: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            agent_command("node", "--new-net"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._next("hello")
        flow = {"name": "w", "from": "a", "to": "b", "start": 0, "streams": 1, "kind": "http"}
        flow |= {"cc": {"name": "cubic"}, "web": web, "sender": {}, "receiver": {}}
        asked = {"do": "flow", "role": "server", "address": "127.0.0.1", "flow": flow}
        self.ask(do="configure", node="b", dir=None)
        port = self.ask(**asked)["ports"][0]
        self.ask(do="start", at=time.monotonic_ns(), duration=120_000_000_000)
        self.at = f"http://127.0.0.1:{port}"

    def ask(self, **command: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self._next("ok")

    def _next(self, name: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            assert event["event"] != "error", event
            if event["event"] == name:
                return event
        raise AssertionError(f"the agent ended before {name}")

    def client(self, *words: str) -> bytes:
        """The output of a program in the same namespace."""
        enter = ["nsenter", "-t", str(self.process.pid), "-n"]
        return subprocess.run([*enter, *words], capture_output=True, timeout=120, check=False).stdout

    def curl(self, *words: str) -> str:
        return self.client("curl", "--silent", "--max-time", "60", *words).decode()

    def status(self, *words: str) -> str:
        return self.curl("--output", "/dev/null", "--write-out", "%{http_code}", *words)


@pytest.fixture
def server() -> Iterator[Server]:
    web = {"objects": 30, "sizes": [1, 1000, 300_000], "popularity": "zipf", "page": 1, "ranges": 1}
    one = Server({**web, "think": 0, "count": None, "max_age": 60_000_000_000})
    yield one
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.wait(60)


def size(server: Server, number: int) -> int:
    head = server.curl("--head", f"{server.at}/{number}").lower()
    assert head.startswith("http/1.1 200 ok")
    assert "cache-control: max-age=60\r\n" in head
    return int(head.partition("content-length: ")[2].split()[0])


def test_ranges_that_curl_fetches_are_parts_of_the_object(server: Server) -> None:
    large = next(number for number in range(30) if size(server, number) == 300_000)
    url = f"{server.at}/{large}"
    whole = server.client("curl", "--silent", "--max-time", "60", url)
    assert len(whole) == 300_000
    ranges = ("0-99999", "100000-100000", "100001-")
    parts = [server.client("curl", "--silent", "--max-time", "60", "--range", one, url) for one in ranges]
    assert b"".join(parts) == whole
    assert server.client("wget", "--quiet", "--timeout=60", "--output-document=-", url) == whole


def test_curl_gets_the_status_that_the_rfcs_ask_for(server: Server) -> None:
    url = f"{server.at}/3"
    assert server.status(url) == "200"
    assert server.status("--http1.0", url) == "200"
    assert server.status("--range", "400000-", url) == "416"
    assert server.status(f"{server.at}/30") == "404"
    assert server.status("--request", "DELETE", url) == "405"
    assert server.status("--data", "some body", url) == "405"
    assert server.status("--header", "Host:", url) == "400"
    assert server.status("--header", "X: " + "x" * 20_000, url) == "431"
    tag = server.curl("--head", "--output", "/dev/null", "--write-out", "%header{etag}", url)
    assert server.status("--header", f"If-None-Match: {tag}", url) == "304"


def test_a_second_request_opens_no_connection(server: Server) -> None:
    url = f"{server.at}/3"
    out = ("--output", "/dev/null", "--output", "/dev/null")
    assert server.curl("--write-out", "%{num_connects}", *out, url, url) == "10"
