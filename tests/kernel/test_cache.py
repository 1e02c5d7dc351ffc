"""The HTTP cache in both engines: the same hits and misses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tcplab.results import Run

ASKED = ["page", "object", "offset", "cache"]


def network(**cache: Any) -> dict[str, Any]:
    nodes = ["client", {"name": "gateway", "kind": "router", "cache": cache}, "server"]
    links = [
        {"ends": ["client", "gateway"], "rate": "100 Mbit/s", "delay": "1 ms"},
        {"ends": ["gateway", "server"], "rate": "20 Mbit/s", "delay": "20 ms"},
    ]
    return {"nodes": nodes, "links": links}


def web(**more: Any) -> dict[str, Any]:
    common = {"name": "web", "kind": "http", "from": "client", "to": "server", "connections": 1}
    return {**common, "sizes": ["1 kB", "20 kB", "100 kB"], "objects": 40, **more}


@pytest.mark.parametrize(
    ("ip", "size", "more"),
    [
        (4, "10 MB", {"page": 10, "count": 6}),
        # Too small for all: what was used least recently goes.
        (6, "300 kB", {"page": 10, "count": 12}),
        (4, "10 MB", {"page": 10, "count": 6, "ranges": 2}),
        (4, "10 MB", {"page": 10, "count": 4, "max_age": "0 s"}),
    ],
)
def test_both_engines_hit_and_miss_the_same(
    ip: int, size: str, more: dict[str, Any], run: Callable[..., Run]
) -> None:
    runs = {
        engine: run(network(size=size), [web(ip=ip, **more)], engine=engine, timeout="60 s", seed=3)
        for engine in ("sim", "kernel")
    }
    answers = {engine: done.fetches.sort("time").select(ASKED).rows() for engine, done in runs.items()}
    assert answers["kernel"] == answers["sim"]
    outcomes = set(runs["kernel"].fetches["cache"])
    stored = "revalidated" if "max_age" in more else "hit"
    assert outcomes == ({"miss"} if "ranges" in more else {"miss", stored})
    for done in runs.values():
        assert done.flows["complete"].all()
        rows = done.fetches.to_dicts()
        assert all(row["first_byte"] >= 40_000_000 for row in rows if row["cache"] != "hit"), "a round trip"
        assert set(done.legs["leg"]) == {"client", "server"}
        assert done.legs["exposed"].sum() == 0


def test_what_one_connection_stored_answers_the_others(run: Callable[..., Run]) -> None:
    flow = web(connections=3, page=6, count=6, objects=12, think="200 ms")
    runs = {
        engine: run(network(), [flow], engine=engine, timeout="60 s", seed=3) for engine in ("sim", "kernel")
    }
    for engine, done in runs.items():
        rows = done.fetches.to_dicts()
        pages: dict[int, set[int]] = {}
        for row in rows:
            pages.setdefault(row["page"], set()).add(row["object"])
        stored = {page: set().union(*(pages[one] for one in pages if one < page)) for page in pages}
        known = [row["cache"] for row in rows if row["object"] in stored[row["page"]]]
        assert len(known) > 10
        assert set(known) == {"hit"}, engine


def test_beside_an_accelerator_each_has_its_own_flows(run: Callable[..., Run]) -> None:
    both = network()
    both["nodes"][1]["accelerate"] = {"towards_server": {"cc": "reno"}}
    bulk = {"name": "bulk", "kind": "tcp", "from": "client", "to": "server", "bytes": "1 MB"}
    done = run(both, [web(page=5, count=4), bulk], timeout="60 s")
    assert done.flows["complete"].all()
    assert set(done.fetches["cache"]) == {"hit", "miss"}
    facts = done.manifest.facts["nodes"]["gateway"]
    assert (facts["accelerator"]["accepted"], facts["cache"]["accepted"]) == (1, 1)
