"""How fast 64 clients of one `tcplab serve` are together over veth, beside iperf3 with 64 streams.

At first the service sends to each at a limited rate, 10 Gbit/s in sum; then it receives as much as there is.

`python -m tests.remote.crowd_rate [CLIENTS]`, as root.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl

from .hosts import obstacle, wait_for
from .test_serve import Served, memory

_SECONDS = 5


def main() -> None:
    """Print the sums, and why the machine may have set them."""
    if (reason := obstacle()) is not None:
        sys.exit(reason)
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    with tempfile.TemporaryDirectory() as where:
        served = Served(Path(where))
        served.hosts.up()
        try:
            rate = round(10_000 / clients)
            limited = _clients(served, clients, rate)
            sys.stdout.write(f"{clients} clients at {rate} Mbit/s each: {limited:.1f} Gbit/s\n")
            ours = _clients(served, clients)
            theirs = _iperf3(served, clients)
            sys.stdout.write(
                f"{clients} clients of one service {ours:.1f} Gbit/s, iperf3 with {clients} streams"
                f" {theirs:.1f} Gbit/s, ratio {ours / theirs:.2f}\n"
            )
        finally:
            served.hosts.down()


def _clients(served: Served, clients: int, rate: int | None = None) -> float:
    """Gbit/s that arrive while all send: the service, at `rate` Mbit/s to each, or else its clients."""
    options = () if rate is None else ("--max-rate", f"{rate} Mbit/s")
    served.start("--max-clients", str(clients), "--max-streams", str(clients), *options)
    try:
        names = [f"h{number}" for number in range(clients)]
        scenario = {
            "tcplab": 1,
            "name": "crowd",
            "network": {
                "nodes": ["left", *names],
                "links": [{"ends": ["left", name], "rate": "unlimited"} for name in names],
            },
            "flows": [
                {"name": name, "kind": "tcp", "cc": "cubic"}
                | ({"from": "left", "to": name} if rate is None else {"from": name, "to": "left"})
                for name in names
            ],
            "sample": {"sockets": "1 s", "flows": "500 ms"},
            "duration": f"{_SECONDS} s",
        }
        folder = served.hosts.us.folder
        (folder / "crowd.yaml").write_text(json.dumps(scenario))
        at = [word for name in names for word in ("--at", f"{name}={served.url}")]
        done = served.client(
            "run", "/run/keep/crowd.yaml", "--engine", "remote", "--at", "left=local:", *at,
            "--output", "/run/keep/crowd", "--no-report",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        run = (folder / "crowd").rename(folder / f"crowd-{rate}") / "run-1"
        # While all send: the first and the last interval of a stream may be shorter.
        rows = pl.read_parquet(run / "intervals.parquet").filter(
            pl.col("time").is_between(1_000_000_000, (_SECONDS - 1) * 1_000_000_000, closed="right")
        )
        held_up = [
            one for one in json.loads((run / "manifest.json").read_text())["warnings"] if "held up" in one
        ]
        flows = pl.read_parquet(run / "flows.parquet")
        slowest = flows["goodput"].min() / 1e6  # type: ignore[operator]
        resident = memory(served.events("listening")[0]["pid"]) / 1e3
        sys.stdout.write(
            f"memory of the service {resident:.1f} MB, slowest client {slowest:.0f} Mbit/s,"
            f" threads that waited too long for a CPU: {len(held_up)}\n"
        )
        return float(rows["bytes_received"].sum()) * 8 / (_SECONDS - 2) / 1e9
    finally:
        served.stop()


def _iperf3(served: Served, streams: int) -> float:
    """Gbit/s."""
    server, us = served.server, served.hosts.us
    process = server.start("iperf3", "-s", "-1")
    wait_for(lambda: server.run("ss", "-ltnH", "sport = :5201").stdout)
    done = us.run(
        "iperf3", "-c", server.address, "-t", str(_SECONDS), "-P", str(streams), "-C", "cubic", "-J"
    )
    process.wait(10)
    received: float = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    return received / 1e9


if __name__ == "__main__":
    main()
