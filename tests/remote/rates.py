"""How fast flows between real hosts are, beside iperf3 and sockperf between the same hosts, by turns.

`python -m tests.remote.rates [REPETITIONS]`, as root.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path

from .hosts import Host, Hosts, obstacle, wait_for
from .running import Run

_SECONDS = 3
_ports = itertools.count(5201)
_SIZE = 64


def main() -> None:
    """Print medians and their ratios."""
    if (reason := obstacle()) is not None:
        sys.exit(reason)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where) / "hosts"
        folder.mkdir()
        hosts = Hosts(
            folder,
            left=Host("left", "10.77.0.2", folder / "left"),
            right=Host("right", "10.77.0.3", folder / "right"),
        )
        try:
            hosts.up()
            pairs = [(_bulk(hosts), _iperf3(hosts)) for _ in range(repetitions)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            _say("bulk, remote engine", ours, "iperf3", theirs, "Gbit/s")
            pairs = [(_echo(hosts), _sockperf(hosts)) for _ in range(repetitions)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            _say(f"echo of {_SIZE} B, remote engine", ours, "sockperf", theirs, "µs")
        finally:
            hosts.down()


def _say(what: str, ours: float, other: str, theirs: float, unit: str) -> None:
    sys.stdout.write(
        f"{what:<30} {ours:.1f} {unit}, {other} {theirs:.1f} {unit}, ratio {ours / theirs:.2f}\n"
    )


def _run(hosts: Hosts, flow: dict[str, object]) -> Run:
    scenario = {
        "tcplab": 1,
        "name": "rates",
        "network": {"path": {"rate": "1 Gbit/s", "rtt": "1 ms"}},
        "flows": [flow],
        "duration": f"{_SECONDS} s",
    }
    run = Run(hosts, json.dumps(scenario))
    code, said = run.end()
    assert code == 0, said
    return run


def _bulk(hosts: Hosts) -> float:
    """Gbit/s."""
    flows = _run(hosts, {"name": "f", "kind": "tcp", "cc": "cubic"}).table("flows")
    return float(flows["goodput"][0]) / 1e9


def _iperf3(hosts: Hosts) -> float:
    """Gbit/s."""
    left, right, port = hosts.all["left"], hosts.all["right"], str(next(_ports))
    server = right.start("iperf3", "-s", "-1", "-p", port)
    wait_for(lambda: right.run("ss", "-ltnH", f"sport = :{port}").stdout)
    done = left.run("iperf3", "-c", right.address, "-p", port, "-t", str(_SECONDS), "-C", "cubic", "-J")
    server.wait(10)
    received: float = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    return received / 1e9


def _echo(hosts: Hosts) -> float:
    """Median round trip, µs."""
    flow = {"name": "e", "kind": "echo", "sizes": f"{_SIZE} B", "iterations": 20_000, "nagle": "off"}
    rows = _run(hosts, flow).table("echoes")
    times, counts = rows["rtt"].to_numpy(), rows["count"].to_numpy()
    order = times.argsort()
    place = counts[order].cumsum().searchsorted(counts.sum() / 2)
    return float(times[order][place]) / 1e3


def _sockperf(hosts: Hosts) -> float:
    """Median round trip, µs."""
    left, right, port = hosts.all["left"], hosts.all["right"], str(next(_ports))
    server = right.start("sockperf", "server", "--tcp", "-i", right.address, "-p", port)
    wait_for(lambda: right.run("ss", "-ltnH", f"sport = :{port}").stdout)
    done = left.run(
        "sockperf", "ping-pong", "--tcp", "-i", right.address, "-p", port, "-m", str(_SIZE),
        "-t", str(_SECONDS), "--full-rtt",
    )  # fmt: skip
    server.terminate()
    server.wait(10)
    found = re.search(r"percentile 50.000 = +([0-9.]+)", done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


if __name__ == "__main__":
    main()
