"""Routing protocols of a run on the kernel: awaited before traffic, and what is kept of them.

The run directory gets `routing/NODE.conf`, the configuration as run, and `routing/NODE.DAEMON.log`. What
changes in adjacencies and sessions is reported by these logs; the `routes` table is from the kernel itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.engine.base import Progress
from tcplab.plan.types import Plan
from tcplab.testbed.errors import TestbedError
from tcplab.testbed.layout import Layout
from tcplab.testbed.testbed import Testbed

_RUN = "run/frr"
_FOLDER = "routing"
_LINE = re.compile(
    r"(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d+) (?P<daemon>\w+): (?:\[[^]]*\])* ?(?P<said>.*)"
)
# Version 2 writes `on eth1:10.0.1.1: `, version 3 `on 10.0.1.2%eth1: `.
_OSPF = re.compile(
    r"AdjChg: Nbr (?P<id>[^,( ]+).* on (?:\S+%)?(?P<interface>[^:% ]+)(?::\S+)?: (?P<change>.*)"
)
_BGP = re.compile(r"%ADJCHANGE: neighbor (?P<id>[^ (]+)\S* in vrf \S+ (?P<change>.*)")


def routers(plan: Plan) -> list[str]:
    """The nodes that run routing protocols."""
    return [node["name"] for node in plan["nodes"] if node.get("routing")]


def converge(plan: Plan, bed: Testbed, run_dir: Path, progress: Callable[[Progress], None]) -> dict[str, Any]:
    """Start the protocols and wait until the ends of every flow reach each other.

    Returns facts for the manifest; raises TestbedError where they do not in time.
    """
    began = time.monotonic()
    configurations = bed.route(plan)
    folder = run_dir / _FOLDER
    folder.mkdir(exist_ok=True)
    for node, text in configurations.items():
        (folder / f"{node}.conf").write_text(text, encoding="utf-8")
    started = time.monotonic()

    def meanwhile() -> None:
        # Ctrl-C is looked for here.
        progress(Progress(0, plan["duration"]))
        expect_all(bed)

    hint = f"see {_FOLDER}/*.conf and *.log in the run directory, or set `wait: {{timeout: ...}}`"
    converged = bed.await_routes(plan, hint, meanwhile)
    return {"routing": {"daemons_started": started - began, "converged": converged}}


def expect_all(bed: Testbed) -> None:
    """Raise TestbedError where a daemon of a router has ended."""
    ended = bed.ended()
    if ended:
        raise TestbedError(
            f"FRR has ended in {', '.join(ended)}", f"see {_FOLDER}/NODE.DAEMON.log in the run directory"
        )


def keep_logs(plan: Plan, bed: Testbed, run_dir: Path) -> None:
    """Copy what the daemons have said; before the nodes are gone."""
    folder = run_dir / _FOLDER
    for node in routers(plan):
        if node not in bed.pids or not folder.is_dir():
            continue
        for log in Path(f"/proc/{bed.pids[node]}/root/{_RUN}").glob("*.log"):
            (folder / f"{node}.{log.name}").write_bytes(log.read_bytes())


def events(run_dir: Path, layout: Layout, start: int, like: pl.DataFrame) -> pl.DataFrame:
    """Changes of adjacencies and sessions, in the columns of `like`.

    `start` is the run's zero of time, ns since 1970.
    """
    rows = [row for log in sorted((run_dir / _FOLDER).glob("*.log")) for row in _read(log, layout, start)]
    schema = {"time": pl.Int64(), "link": pl.String(), "event": pl.String(), "detail": pl.String()}
    found = pl.DataFrame(rows, schema=schema, orient="row").filter(pl.col("time") >= 0)
    columns = [
        pl.col(name) if name in found.columns else pl.lit(None, kind).alias(name)
        for name, kind in like.schema.items()
    ]
    return found.select(columns).cast(like.schema)


def _read(log: Path, layout: Layout, start: int) -> Iterator[tuple[int, str | None, str, str]]:
    node = log.name.split(".")[0]
    own = [wire for wire in layout.wires if any(end.node == node for end in wire.ends)]
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        said = match["said"]
        for event, pattern in (("adjacency", _OSPF), ("session", _BGP)):
            change = pattern.search(said)
            if change is None:
                continue
            link = next((wire.name for wire in own if _is_at(wire.ends, node, change)), None)
            detail = f"{node} {match['daemon']} neighbour {change['id']}: {change['change']}"
            yield _nanoseconds(match["time"]) - start, link, event, detail


def _is_at(ends: Any, node: str, change: re.Match[str]) -> bool:
    """Whether a change is of a link: by the interface at the node, or by the neighbour's address."""
    interface = change.groupdict().get("interface")
    if interface:
        return any(end.node == node and end.name == interface for end in ends)
    return any(change["id"] in (end.ip(4), end.ip(6)) for end in ends if end.node != node)


def _nanoseconds(text: str) -> int:
    """Since 1970; FRR writes local time."""
    whole, _, fraction = text.partition(".")
    seconds = int(datetime.strptime(whole, "%Y/%m/%d %H:%M:%S").astimezone().timestamp())
    return seconds * 1_000_000_000 + int(fraction.ljust(9, "0"))
