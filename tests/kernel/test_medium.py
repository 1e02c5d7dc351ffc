"""Links that share a medium take turns on the kernel engine as in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tcplab.results import Run

Json = dict[str, Any]
# Makes a run again if it says that the machine disturbed it.
Undisturbed = Callable[[Callable[[], Run]], Run]
RATES = {"near": "150 Mbit/s", "far": "12 Mbit/s"}


def wifi() -> Json:
    links = [{"ends": ["ap", node], "medium": "air", "rate": rate} for node, rate in RATES.items()]
    media = [{"name": "air", "aggregation": {"frames": 1}}]
    return {"nodes": ["ap", *RATES], "media": media, "links": links}


def flood(source: str, target: str) -> Json:
    """Datagrams that come faster than the medium takes them, so that something always waits."""
    settings = {"kind": "udp", "rate": "100 Mbit/s", "payload": "1400 B"}
    return {"name": f"{source}-{target}", "from": source, "to": target, **settings}


def sent(done: Run, direction: str) -> dict[str, float]:
    """Bytes that left the queues between the first and the last second of a run, by the node."""
    inner = pl.col("time").is_between(1e9, float(done.queues["time"].max()) - 1e9)  # type: ignore[arg-type]
    rows = done.queues.filter(inner, direction=direction).sort("time")
    out = {node: rows.filter(link=f"ap-{node}")["bytes_out"] for node in RATES}
    return {node: float(bytes_out[-1] - bytes_out[0]) for node, bytes_out in out.items()}


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_stations_share_it_as_in_the_simulator(
    run: Callable[..., Run], undisturbed: Undisturbed, direction: str
) -> None:
    down = direction == "forward"
    flows = [flood("ap", node) if down else flood(node, "ap") for node in RATES]
    kernel = sent(undisturbed(lambda: run(wifi(), flows, duration="6 s", engine="kernel")), direction)
    sim = sent(run(wifi(), flows, duration="6 s", engine="sim"), direction)
    assert kernel == pytest.approx(sim, rel=0.1)
    assert kernel["near"] == pytest.approx(kernel["far"], rel=0.1), "as many frames for each station"
