"""Repetitions on the running kernel: flows start at the phases that the manifest lists."""

from __future__ import annotations

from collections.abc import Callable

from tcplab.results import Run


def test_flows_start_at_their_phases(run: Callable[..., Run]) -> None:
    flows = [
        {"name": "a", "kind": "tcp"},
        {"name": "b", "kind": "udp", "rate": "1 Mbit/s", "start": "100 ms"},
    ]
    done = run({"path": {"rate": "10 Mbit/s", "rtt": "80 ms"}}, flows, duration="1 s", repeat=2)
    first, second = (done.manifests[number].phases for number in (1, 2))
    assert first == {}
    assert all(0 <= second[name] < 80_000_000 for name in ("a", "b"))
    assert done.flows.select("repetition", "flow", "start").rows() == [
        (1, "a", 0),
        (1, "b", 100_000_000),
        (2, "a", second["a"]),
        (2, "b", 100_000_000 + second["b"]),
    ]
