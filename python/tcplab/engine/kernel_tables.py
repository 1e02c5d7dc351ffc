"""The tables and captures of a run on the kernel, from what the agents have written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from tcplab.engine.kernel_events import changes
from tcplab.plan.flow_direction import data_ends
from tcplab.plan.types import Plan
from tcplab.results.schema import TABLES
from tcplab.results.streams import remove_streams
from tcplab.results.tables import read_table, write_table
from tcplab.testbed.layout import Layout


def write_tables(
    plan: Plan,
    run_dir: Path,
    losses: Mapping[tuple[str, int], int],
    more_events: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> None:
    """Join the agents' streams into the run's tables, and remove them.

    `more_events` makes events that no agent reports, in the columns of the frame it is given.
    """
    # No table is there yet, so each is read from its streams.
    frames = {name: read_table(run_dir, name) for name in TABLES}
    senders = pl.DataFrame(
        [(flow["name"], data_ends(flow)[0]) for flow in plan["flows"]],
        schema={"flow": pl.String(), "node": pl.String()},
        orient="row",
    )
    sending = frames["sockets"].join(senders, on=["flow", "node"], how="semi", maintain_order="left")
    flows = _flows(plan, frames["flows"], sending, losses)
    frames["flows"] = _with_probes(flows, frames["pings"])
    frames["intervals"] = _intervals(plan, frames["intervals"], flows)
    frames["hosts"] = _hosts(frames["hosts"])
    events = frames["events"]
    found = [events, changes(sending, events)]
    if more_events is not None:
        found.append(more_events(events))
    frames["events"] = pl.concat(found).sort("time", maintain_order=True)
    for name, frame in frames.items():
        write_table(run_dir, name, frame)
    remove_streams(run_dir)


def name_captures(run_dir: Path, layout: Layout) -> None:
    """Call the captures of hosts as those of links are called: by the link, not by the interface."""
    for wire in layout.wires:
        for end in wire.ends:
            made = run_dir / f"{end.node}.{end.name}.pcapng"
            if made.exists():
                made.rename(run_dir / f"{end.node}-{wire.name}.pcapng")


def _flows(
    plan: Plan, flows: pl.DataFrame, sockets: pl.DataFrame, losses: Mapping[tuple[str, int], int]
) -> pl.DataFrame:
    """Flows in the plan's order and by the plan's names, with what no single end knows."""
    order = {flow["name"]: number for number, flow in enumerate(plan["flows"])}
    controls = {flow["name"]: flow["cc"]["name"] for flow in plan["flows"] if flow.get("cc")}
    windows = _mean_windows(sockets)
    true = pl.DataFrame(
        [(flow, stream, count) for (flow, stream), count in losses.items()],
        schema={"flow": pl.String(), "stream": pl.Int64(), "_losses": pl.Int64()},
        orient="row",
    )
    return (
        flows.join(windows, on=["flow", "stream"], how="left")
        .join(true, on=["flow", "stream"], how="left")
        .with_columns(
            pl.col("_cwnd").alias("cwnd_mean"),
            pl.col("_losses").alias("losses_true"),
            pl.col("flow").replace_strict(controls, default=None, return_dtype=pl.String()).alias("cc"),
        )
        .sort(pl.col("flow").replace_strict(order, default=len(order), return_dtype=pl.Int64()), "stream")
        .select(flows.columns)
    )


def _intervals(plan: Plan, intervals: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """The intervals of each stream up to its end, and those in which more was counted.

    A server that waits for more goes on to the run's end: it does not know that its client is through.
    An end that was through before the other has counted nothing since. Those of iperf3 are not aligned.
    """
    stream = ["flow", "stream"]
    counts = ["bytes_received", "bytes_sent", "retransmits", "lost", "out_of_order", "duplicates"]
    aligned = [flow["name"] for flow in plan["flows"] if flow.get("generator", "native") == "native"]
    begin = pl.col("time") - pl.col("duration")
    counted = pl.any_horizontal(pl.col(counts).fill_null(0) != 0)

    def nothing(name: str) -> pl.Expr:
        known = pl.col("flow").is_in(aligned) & (pl.col(name).count().over(stream) > 0)
        return pl.when(known).then(pl.col(name).fill_null(0)).otherwise(pl.col(name)).alias(name)

    return (
        intervals.join(flows.select(*stream, "end"), on=stream, how="left", maintain_order="left")
        .with_columns(begin.filter(counted).max().over(stream).alias("_last"))
        .filter((begin < pl.col("end").fill_null(begin + 1)) | (begin <= pl.col("_last")).fill_null(False))
        .with_columns(map(nothing, [*counts, "goodput"]))
        .select(intervals.columns)
    )


def _mean_windows(sockets: pl.DataFrame) -> pl.DataFrame:
    """The mean window over time of each stream: a sample stands for the time since the one before.

    Connections of a stream that are sampled together, as a server of web traffic has, count alike.
    """
    stream = ["flow", "stream"]
    samples = sockets.group_by(*stream, "time").agg(pl.col("cwnd").mean()).sort("time")
    lasted = pl.col("time").diff().over(stream).fill_null(0)
    samples = samples.with_columns(lasted.alias("_lasted"))
    weighted = (pl.col("cwnd") * pl.col("_lasted")).sum() / pl.col("_lasted").sum()
    mean = pl.when(pl.col("_lasted").sum() > 0).then(weighted).otherwise(pl.col("cwnd").mean())
    return samples.group_by(stream).agg(mean.alias("_cwnd"))


def _with_probes(flows: pl.DataFrame, pings: pl.DataFrame) -> pl.DataFrame:
    """The round-trip times of pings, which their rows have; of TCP's samples the kernel keeps no list."""
    rtt = pl.col("rtt").sort()
    figures = {"rtt_mean": rtt.mean()} | {
        f"rtt_p{percent}": rtt.get((pl.len().cast(pl.Int64()) * percent + 99) // 100 - 1).cast(pl.Float64())
        for percent in (50, 95, 99)
    }
    measured = (
        pings.drop_nulls("rtt")
        .group_by("flow", "stream")
        .agg(figure.alias(f"_{name}") for name, figure in figures.items())
    )
    return (
        flows.join(measured, on=["flow", "stream"], how="left", maintain_order="left")
        .with_columns(pl.coalesce(f"_{name}", name).alias(name) for name in figures)
        .select(flows.columns)
    )


def _hosts(hosts: pl.DataFrame) -> pl.DataFrame:
    """The emulator belongs to no node, nor does the machine, which has all of them."""
    node = pl.when(pl.col("process") != "emulator").then(pl.col("node"))
    return hosts.with_columns(node.alias("node"))
