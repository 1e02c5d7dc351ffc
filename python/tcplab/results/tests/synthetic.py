"""Result directories made by arithmetic: sawtooth windows over a bottleneck, no engine needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcplab.results import RunWriter, create_result_dir, run_dir_of

MS = 1_000_000
SECOND = 1_000_000_000


def direction(rate: int | None = 10_000_000, delay: int = 50 * MS, limit: Any = None) -> Any:
    return {
        "rate": rate,
        "queue": {"kind": "droptail", "limit": limit},
        "delay": delay,
        "jitter": None,
        "reorder": None,
        "loss": None,
        "corrupt": None,
        "duplicate": None,
        "up": True,
        "trace": None,
        "changes": [],
    }


def host(name: str, routes: dict[str, str]) -> Any:
    return {"name": name, "kind": "host", "tcp": {}, "routes": routes, "sysctls": {}, "cpus": []}


def plan(
    flows: dict[str, str], *, shared: bool = False, seconds: int = 20, omit: Any = None, streams: int = 1
) -> Any:
    """Flow name to control; each on a path of its own unless `shared`."""
    pairs = [("client", "server")] if shared else [(f"{name}-a", f"{name}-b") for name in flows]
    links = ["path"] if shared else [f"{name}-path" for name in flows]
    nodes = [
        node
        for (a, b), link in zip(pairs, links, strict=True)
        for node in (host(a, {b: link}), host(b, {a: link}))
    ]
    made: Any = {
        "name": "synthetic",
        "seed": 1,
        "duration": seconds * SECOND,
        "nodes": nodes,
        "links": [
            {
                "name": link,
                "ends": list(pair),
                "addresses": ["10.0.0.1/24", "10.0.0.2/24"],
                "mtu": 1500,
                "forward": direction(limit={"time": 50 * MS}),
                "backward": direction(),
            }
            for pair, link in zip(pairs, links, strict=True)
        ],
        "flows": [
            {
                "name": name,
                "from": pairs[0 if shared else i][0],
                "to": pairs[0 if shared else i][1],
                "start": 0,
                "stop": seconds * SECOND,
                "streams": streams,
                "kind": "tcp",
                "cc": {"name": cc, "params": {}},
                "bytes": None,
                "pattern": None,
                "sender": {},
                "receiver": {},
            }
            for i, (name, cc) in enumerate(flows.items())
        ],
        "sample": {"sockets": 10 * MS, "queues": 10 * MS, "flows": 100 * MS, "hosts": None, "packets": False},
        "capture": None,
    }
    if omit is not None:
        made["omit"] = omit
    return made


def write_run(run_dir: Path, plan: Any, repetition: int = 1, engine: str = "sim") -> None:
    """One repetition: every table a simulator would write, with noise that depends on the repetition."""
    rng = np.random.default_rng(repetition)
    writer = RunWriter(run_dir, plan, engine=engine, repetition=repetition)
    duration = plan["duration"]
    sockets, intervals, flows, events = [], [], [], []
    shares = len(plan["flows"]) if len(plan["links"]) == 1 else 1
    queue_of: dict[str, np.ndarray[Any, Any]] = {}
    t = np.arange(10 * MS, duration + 1, 10 * MS)
    for number, flow in enumerate(plan["flows"]):
        period = (2 + 0.5 * number) * SECOND
        saw = ((t + number * 700 * MS) % period) / period
        start_up = np.minimum(1.0, t / (1.5 * SECOND))
        peak = 125 / shares
        cwnd = np.maximum(2, start_up * peak * (0.5 + 0.5 * saw) + rng.normal(0, 0.5, len(t)))
        queue = np.maximum(0, cwnd - 83 / shares)
        link = plan["links"][0 if shares > 1 else number]["name"]
        queue_of[link] = queue_of.get(link, 0) + queue
        rate = 9.56e6 / shares * np.minimum(1, cwnd / (83 / shares))
        for stream in range(flow["streams"]):
            part = flow["streams"]
            srtt = (100 + queue * shares * 1.21) * MS + rng.normal(0, 0.2, len(t)) * MS
            sockets.append(
                pl.DataFrame(
                    {
                        "time": t,
                        "flow": [flow["name"]] * len(t),
                        "stream": [stream] * len(t),
                        "node": [flow["from"]] * len(t),
                        "state": np.where(saw < 0.05, "recovery", "open"),
                        "cwnd": (cwnd / part).astype(np.int64),
                        "ssthresh": np.full(len(t), int(peak / 2)),
                        "srtt": srtt.astype(np.int64),
                        "mss": np.full(len(t), 1448),
                        "phase": np.where(t < 1.5 * SECOND, "slow_start", "congestion_avoidance"),
                    }
                )
            )
            per = rate.reshape(-1, 10).mean(axis=1) * (1 + rng.normal(0, 0.01, len(t) // 10)) / part
            received = (per * 0.1 / 8).astype(np.int64)
            intervals.append(
                pl.DataFrame(
                    {
                        "time": t[9::10],
                        "duration": [100 * MS] * len(per),
                        "flow": [flow["name"]] * len(per),
                        "stream": [stream] * len(per),
                        "bytes_received": received,
                        "bytes_sent": received,
                        "goodput": received * 80.0,
                        "retransmits": (saw[9::10] < 0.05).astype(np.int64),
                    }
                )
            )
            flows.append(
                {
                    "flow": flow["name"],
                    "stream": stream,
                    "from": flow["from"],
                    "to": flow["to"],
                    "kind": flow["kind"],
                    "cc": flow["cc"]["name"],
                    "start": 0,
                    "end": duration,
                    "bytes_sent": int(received.sum()),
                    "bytes_received": int(received.sum()),
                    "goodput": float(received.sum() * 8e9 / duration),
                    "segments_sent": int(received.sum() // 1448),
                    "retransmits": int((saw[9::10] < 0.05).sum()),
                    "rtos": 0,
                    "complete": True,
                }
            )
        events += [
            {"time": int(now), "flow": flow["name"], "stream": 0, "link": None, "event": "rto", "detail": ""}
            for now in t[np.flatnonzero(np.diff(saw) < 0)][:1]
        ]
    queues = [
        pl.DataFrame(
            {
                "time": t,
                "link": [link] * len(t),
                "direction": ["forward"] * len(t),
                "packets": queue.astype(np.int64),
                "bytes": queue.astype(np.int64) * 1514,
                "sojourn": (queue * 1.21 * MS).astype(np.int64),
                "packets_out": np.arange(1, len(t) + 1) * 8,
                "waited": np.cumsum(queue * 8 * 1.21 * MS).astype(np.int64),
                "drops": np.cumsum(queue > queue.max() * 0.99),
                "marks": np.zeros(len(t), dtype=np.int64),
                "lost": np.zeros(len(t), dtype=np.int64),
                "bytes_out": (t / SECOND * 1.2e6).astype(np.int64),
                "capacity_used": (t / SECOND * 1.2e6).astype(np.int64),
            }
        )
        for link, queue in queue_of.items()
    ]
    writer.write_table("sockets", pl.concat(sockets))
    writer.write_table("intervals", pl.concat(intervals))
    writer.write_table("flows", pl.DataFrame(flows))
    writer.write_table("queues", pl.concat(queues))
    writer.write_table("events", pl.DataFrame(events))
    writer.finish("done", wall_duration=0.2, facts={"events_processed": 12345})


def write_result(path: Path, plan: Any, repetitions: int = 1, engine: str = "sim") -> Path:
    """A result directory with its repetitions."""
    create_result_dir(path, "tcplab: 1\nname: synthetic\n")
    for repetition in range(1, repetitions + 1):
        write_run(run_dir_of(path, repetition), {**plan, "seed": repetition}, repetition, engine)
    return path
