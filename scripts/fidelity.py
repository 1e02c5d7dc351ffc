#!/usr/bin/env python3
"""Run the same scenarios in the simulator and on the kernel, and put the figures into docs/fidelity.md.

What stands between the markers `<!-- NAME -->` and `<!-- /NAME -->` is replaced. All of it takes about 80
minutes of real time, `--only matrix` 15 of them; leave the machine alone meanwhile. `transfers`, `shares` and
`requests`, of a kernel in virtual time, do not need that.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import control_matrix
import lanes
import numpy as np
import polars as pl
import queueing
import situations
import virtual_time

import tcplab
from tcplab.results import Run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "fidelity.md"
# Payload of a full segment with timestamps, over its Ethernet frame without preamble and checksum.
SHARE = 1448 / 1514

# Frame of a ping with 56 bytes of payload.
PING = 98

Row = list[str]


@dataclass(frozen=True)
class Table:
    """A measured table."""

    columns: Row
    rows: Callable[[Path], Iterator[Row]]
    timed: bool = True
    """Whether this machine's time is in it."""

    def text(self, folder: Path) -> str:
        """As Markdown."""
        lines = [self.columns, ["---"] * len(self.columns)]
        for row in self.rows(folder):
            sys.stderr.write("  " + "  ".join(row) + "\n")
            lines.append(row)
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scenario(path: dict[str, Any], flows: list[dict[str, Any]], duration: float) -> dict[str, Any]:
    """One path, flows, and how long."""
    network = {"path": path}
    return {"tcplab": 1, "name": "fidelity", "network": network, "flows": flows, "duration": f"{duration} s"}


def run(what: dict[str, Any] | str, engine: str, folder: Path, **options: Any) -> Run:
    """One run in a directory of its own."""
    number = sum(1 for _ in folder.iterdir())
    return tcplab.run(what, engine=engine, output=folder / str(number), **options)


def goodput(run: Run, flow: str, after: float) -> float:
    """Mean of all repetitions after some seconds, bit/s."""
    rows = run.intervals.filter((pl.col("flow") == flow) & (pl.col("time") > after * 1e9))
    return float(rows["bytes_received"].sum()) * 8e9 / float(rows["duration"].sum())


def rtt(run: Run, flow: str, after: float) -> float:
    """Mean smoothed RTT after some seconds, ms."""
    rows = run.sockets.filter((pl.col("flow") == flow) & (pl.col("time") > after * 1e9))
    return float(np.mean(rows["srtt"].drop_nulls().to_numpy())) / 1e6


def queue(run: Run, link: str, after: float) -> float:
    """Mean bytes in a link's forward queue after some seconds, kB."""
    rows = run.queues.filter(
        (pl.col("link") == link) & (pl.col("direction") == "forward") & (pl.col("time") > after * 1e9)
    )
    return float(np.mean(rows["bytes"].to_numpy())) / 1e3


def difference(measured: float, expected: float) -> str:
    """In percent."""
    return f"{(measured / expected - 1) * 100:+.1f} %"


def overloaded(run: Run) -> str:
    """A mark where the machine was too slow."""
    return " (overloaded)" if any(each.overload for each in run.manifests.values()) else ""


def controls(folder: Path) -> Iterator[Row]:
    """The four controls, where the kernel has them."""
    what = str(ROOT / "scenarios" / "four-controls.yaml")
    settings = {"flows.bbr2.cc": "bbr1"}
    sim, kernel = (run(what, engine, folder, set=settings, repeat=3) for engine in ("sim", "kernel"))
    for flow in ("reno", "cubic", "bbr1"):
        rates = [goodput(one, flow, 5) for one in (sim, kernel)]
        rtts = [rtt(one, flow, 5) for one in (sim, kernel)]
        queues = [queue(one, f"path-{flow}", 5) for one in (sim, kernel)]
        yield [
            flow + overloaded(kernel),
            *(f"{one / 1e6:.2f}" for one in rates),
            difference(rates[1], rates[0]),
            *(f"{one:.1f}" for one in rtts),
            difference(rtts[1], rtts[0]),
            *(f"{one:.1f}" for one in queues),
        ]


# Rate in Mbit/s, RTT in ms, seconds to steady state, seconds measured, queue where not the default one.
PATHS: tuple[tuple[int, int, int, int, str | None], ...] = (
    (10, 1, 2, 4, None),
    (10, 10, 3, 5, None),
    (10, 50, 5, 20, None),
    (10, 150, 10, 15, None),
    (10, 550, 20, 25, None),
    (100, 1, 2, 4, None),
    (100, 10, 3, 5, None),
    (100, 50, 6, 8, None),
    (100, 150, 15, 15, None),
    (100, 550, 40, 20, None),
    (1000, 1, 2, 4, None),
    # The default holds 83 packets, less than two super-packets of a host that segments late.
    (1000, 1, 2, 4, "2 BDP"),
    (1000, 10, 3, 5, None),
    (1000, 50, 8, 8, None),
    (1000, 150, 30, 10, None),
    (1000, 550, 70, 15, None),
)


def paths(folder: Path) -> Iterator[Row]:
    """CUBIC alone on paths with the default queue, and pings on the idle path."""
    for rate, delay, warm, measured, limit in PATHS:
        path = {"rate": f"{rate} Mbit/s", "rtt": f"{delay} ms"} | ({"queue": limit} if limit else {})
        bulk = {"name": "bulk", "kind": "tcp", "cc": "cubic"}
        # Two bandwidth-delay products are in flight when the queue is full, and Linux counts the memory of
        # its packets, up to twice their payload, on both sides.
        hosts = {"send_buffer_max": "1 GB", "receive_buffer_max": "1 GB"}
        loaded = scenario({**path, "left": hosts, "right": hosts}, [bulk], warm + measured)
        sim, kernel = (run(loaded, engine, folder) for engine in ("sim", "kernel"))
        ping = {"name": "ping", "kind": "ping", "interval": "10 ms"}
        # A thousand: one stall of a virtual machine delays at most one or two of them.
        idle = scenario(path, [ping], 10 + delay / 1e3)
        pings = run(idle, "kernel", folder)
        off = pings.pings["rtt"].drop_nulls().to_numpy() / 1e6 - delay - 2 * PING * 8 / rate / 1e3
        best = rate * 1e6 * SHARE
        rates = [goodput(one, "bulk", warm) for one in (sim, kernel)]
        yield [
            f"{rate} Mbit/s, {delay} ms" + (f", queue {limit}" if limit else "") + overloaded(kernel),
            *(f"{one / 1e6:.2f}" for one in rates),
            *(f"{one / best * 100:.1f} %" for one in rates),
            f"{np.mean(off):.3f}",
            f"{np.percentile(off, 99):.3f}",
        ]


def datagrams(folder: Path) -> Iterator[Row]:
    """Datagrams at a rate through an ample link."""
    for rate in (20, 100, 500):
        flow = {"name": "udp", "kind": "udp", "rate": f"{rate} Mbit/s", "duration": "5 s"}
        done = run(scenario({"rate": "1 Gbit/s", "rtt": "10 ms"}, [flow], 5.2), "kernel", folder)
        row = done.flows.row(0, named=True)
        sent = row["bytes_sent"] * 8 / 5
        lost = (row["bytes_sent"] - row["bytes_received"]) // 1472
        jitter = float(np.mean(done.intervals["jitter"].drop_nulls().to_numpy())) / 1e3
        yield [f"{rate} Mbit/s" + overloaded(done), difference(sent, rate * 1e6), str(lost), f"{jitter:.1f}"]


IMPAIRMENTS: tuple[tuple[str, dict[str, Any], float, str], ...] = (
    ("loss 1 %", {"loss": "1 %"}, 0.01, "lost"),
    ("loss 5 %, correlation 25 %", {"loss": {"rate": "5 %", "correlation": "25 %"}}, 0.05, "lost"),
    ("corrupt 2 %", {"corrupt": "2 %"}, 0.02, "lost"),
    ("duplicate 5 %", {"duplicate": "5 %"}, 0.05, "duplicates"),
    # By one and a half of the distance between two: each overtakes one, unless that overtakes too.
    ("reorder 2 % by 900 µs", {"reorder": {"rate": "2 %", "by": "900 us"}}, 0.02 * 0.98, "out_of_order"),
)


def impairments(folder: Path) -> Iterator[Row]:
    """The datagrams of 16,666 that arrive, counted at the receiver."""
    # One in 600 µs.
    flow = {"name": "udp", "kind": "udp", "rate": "4 Mbit/s", "payload": "300 B", "duration": "10 s"}
    for name, settings, share, column in IMPAIRMENTS:
        path = {"rate": "1 Gbit/s", "rtt": "20 ms", **settings}
        counts = []
        for engine in ("sim", "kernel"):
            done = run(scenario(path, [flow], 10.2), engine, folder)
            sent = int(done.flows["segments_sent"][0])
            received = int(done.flows["bytes_received"][0]) // 300
            counted = sent - received if column == "lost" else int(done.intervals[column].sum())
            counts.append((sent, counted))
        sigma = (share * (1 - share) / counts[1][0]) ** 0.5
        yield [
            name,
            *(f"{counted / sent * 100:.2f} %" for sent, counted in counts),
            f"± {1.96 * sigma * 100:.2f} %",
        ]


def echoes(folder: Path) -> Iterator[Row]:
    """Echoes over 100 Mbit/s, and over an emulated link that does nothing."""
    what = str(ROOT / "scenarios" / "echo-100mbit.yaml")
    settings = {"flows.echo.busy_poll": "off"}
    nothing = {"network.path.rate": "unlimited", "network.path.rtt": "2 us"}
    sim, kernel, machine = (
        run(what, engine, folder, set=settings | more)
        for engine, more in (("sim", {}), ("kernel", {}), ("kernel", nothing))
    )
    medians = [
        dict(one.echoes.group_by("size").agg(pl.col("rtt").median() / 1e3).rows())
        for one in (sim, kernel, machine)
    ]
    for size in sorted(medians[0]):
        took = [times[size] for times in medians]
        yield [
            f"{size}" + overloaded(kernel),
            *(f"{one:.0f}" for one in took),
            f"{took[1] - took[0]:.0f}",
        ]


TABLES = {
    "controls": Table(
        [
            *("control", "sim Mbit/s", "kernel Mbit/s", "", "sim RTT ms", "kernel RTT ms", ""),
            *("sim queue kB", "kernel queue kB"),
        ],
        controls,
    ),
    "paths": Table(
        [
            *("path", "sim Mbit/s", "kernel Mbit/s", "sim of best", "kernel of best"),
            *("ping off by, mean ms", "p99 ms"),
        ],
        paths,
    ),
    "echoes": Table(["bytes", "sim us", "kernel us", "empty link us", "kernel less sim us"], echoes),
    "queueing": Table(queueing.COLUMNS, lambda folder: queueing.rows(folder, run), timed=False),
    "poisson": Table(queueing.KERNEL_COLUMNS, lambda folder: queueing.kernel_rows(folder, run, overloaded)),
    "datagrams": Table(["rate asked", "rate off by", "datagrams lost", "jitter us"], datagrams),
    "matrix": Table(
        control_matrix.COLUMNS,
        lambda folder: control_matrix.rows(folder, run, ROOT / "runs" / "fidelity-matrix.json"),
    ),
    **{
        name: Table(
            lanes.COLUMNS,
            lambda folder, groups=groups: lanes.rows(
                groups, folder, run, ROOT / "runs" / "fidelity-lanes.json"
            ),
        )
        for name, groups in (
            ("every-control", situations.CONTROL_GROUPS),
            ("modes", situations.MODE_GROUPS),
            ("buffers", situations.BUFFER_GROUPS),
        )
    },
    "impairments": Table(["asked", "sim", "kernel", "95 % of samples within"], impairments),
    "transfers": Table(virtual_time.TRANSFERS_COLUMNS, virtual_time.transfers, timed=False),
    "shares": Table(virtual_time.SHARES_COLUMNS, virtual_time.shares, timed=False),
    "requests": Table(virtual_time.REQUESTS_COLUMNS, virtual_time.requests, timed=False),
}


def main() -> None:
    """Measure the tables named on the command line, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument("--only", action="append", choices=list(TABLES), help="the same, one at a time")
    given = parser.parse_args()
    asked = [*given.tables, *(given.only or [])] or list(TABLES)
    for name in asked:
        sys.stderr.write(f"{name}\n")
        with tempfile.TemporaryDirectory(prefix="tcplab-fidelity-") as folder:
            measured = TABLES[name].text(Path(folder))
        said = f"{measured}\n\nLinux {platform.release()}, {_cpu()}." if TABLES[name].timed else measured
        page = PAGE.read_text(encoding="utf-8")
        first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if first not in page:
            # A table that has no place on the page yet.
            sys.stdout.write(said + "\n")
            continue
        before, _, rest = page.partition(first)
        _, _, after = rest.partition(last)
        PAGE.write_text(f"{before}{first}{said}\n{last}{after}", encoding="utf-8")


def _cpu() -> str:
    from tcplab.results.host import describe_host

    host = describe_host()
    return f"{host.cores} CPUs ({host.cpu})"


if __name__ == "__main__":
    main()
