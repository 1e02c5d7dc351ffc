"""flent's data format (version 3), so that flent can plot a run beside its own.

The run appears as flent's test `tcp_nup`: a series `TCP upload::N` per bulk TCP flow with their sum and
average, Mbit/s. `Ping (ms) ICMP` holds the pings of the run, or the smoothed RTT of the first TCP flow where
nothing pinged. Each bulk flow, of UDP too, is also there under its own name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow
from tcplab.results.export.documents import number, write_documents
from tcplab.results.run import Run

_VERSION = 3

Array = NDArray[np.float64]


def write(run: Run, target: Path) -> list[Path]:
    """Write a document per repetition; see `tcplab.results.export.export` for their names."""
    return write_documents({f"run-{n}": document(run, n) for n in run.repetitions}, target)


def document(run: Run, repetition: int) -> dict[str, Any]:
    """One repetition in flent's format."""
    flows = [flow for flow in run.plan.get("flows", ()) if kind_of(flow).bulk]
    sample = run.plan.get("sample")
    step = ((sample.get("flows") if sample else None) or 200_000_000) / 1e9
    length = run.plan.get("duration", 0) / 1e9
    x: Array = np.arange(1, max(1, round(length / step)) + 1, dtype=np.float64) * step
    started = _started(run, repetition)
    goodput = {flow["name"]: _goodput(run, repetition, flow["name"]) for flow in flows}
    ping = _ping(run, repetition, [flow["name"] for flow in flows])
    results: dict[str, list[float | None]] = {}
    raw: dict[str, list[dict[str, float]]] = {}
    on_grid = {name: _sampled(x, *series) for name, series in goodput.items()}
    uploads = [flow["name"] for flow in flows if kind_of(flow).bulk_tcp]
    labels = {f"TCP upload::{number}": name for number, name in enumerate(uploads, start=1)}
    for label, name in (labels | {name: name for name in goodput}).items():
        results[label] = _numbers(on_grid[name])
        raw[label] = _raw(goodput[name], started)
    if uploads:
        known = np.stack([on_grid[name] for name in uploads])
        active = np.isfinite(known).any(axis=0)
        total = np.where(active, np.nansum(known, axis=0), np.nan)
        results["TCP upload sum"] = _numbers(total)
        results["TCP upload avg"] = _numbers(total / np.maximum(np.isfinite(known).sum(axis=0), 1))
    results["Ping (ms) ICMP"] = _numbers(_sampled(x, *ping))
    raw["Ping (ms) ICMP"] = _raw(ping, started)
    return {
        "version": _VERSION,
        "metadata": _metadata(run, repetition, flows, step, length, started),
        "x_values": [float(value) for value in x],
        "results": results,
        "raw_values": raw,
    }


def _metadata(
    run: Run, repetition: int, flows: list[Flow], step: float, length: float, started: datetime
) -> dict[str, Any]:
    manifest = run.manifests[repetition]
    hosts = list(dict.fromkeys(flow["to"] for flow in flows))
    time = started.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    kernel = (manifest.host.kernel or "").split()
    return {
        "NAME": "tcp_nup",
        "TITLE": run.name if len(run.repetitions) == 1 else f"{run.name}, repetition {repetition}",
        "NOTE": f"tcplab {manifest.tcplab}, engine {manifest.engine}, seed {manifest.seed}",
        "TIME": time,
        "T0": time,
        "HOST": hosts[0] if hosts else "",
        "HOSTS": hosts,
        "LOCAL_HOST": flows[0]["from"] if flows else "",
        "LENGTH": length,
        "TOTAL_LENGTH": length,
        "STEP_SIZE": step,
        "TEST_PARAMETERS": {"upload_streams": str(sum(kind_of(flow).bulk_tcp for flow in flows))},
        "IP_VERSION": flows[0].get("ip", 4) if flows else 4,
        "FLENT_VERSION": "",
        "DATA_FILENAME": f"{run.name}-{repetition}.flent.gz",
        "KERNEL_NAME": kernel[0] if kernel else "",
        "KERNEL_RELEASE": kernel[1] if len(kernel) > 1 else "",
    }


def _started(run: Run, repetition: int) -> datetime:
    text = run.manifests[repetition].started
    return datetime.fromisoformat(text).astimezone(UTC) if text else datetime.fromtimestamp(0, UTC)


def _goodput(run: Run, repetition: int, flow: str) -> tuple[Array, Array]:
    rows = (
        run.tables.of(repetition, "intervals")
        .filter(pl.col("flow") == flow, pl.col("goodput").is_not_null())
        .group_by("time")
        .agg(pl.col("goodput").sum())
        .sort("time")
    )
    return rows["time"].to_numpy() / 1e9, rows["goodput"].to_numpy() / 1e6


def _ping(run: Run, repetition: int, flows: list[str]) -> tuple[Array, Array]:
    rows = run.tables.of(repetition, "pings").filter(pl.col("rtt").is_not_null()).select("time", "rtt")
    if not len(rows) and flows:
        sockets = run.tables.of(repetition, "sockets").filter(pl.col("srtt").is_not_null())
        rows = (
            sockets.filter(pl.col("flow") == flows[0])
            .group_by("time")
            .agg(pl.col("srtt").mean().alias("rtt"))
        )
    rows = rows.sort("time")
    return rows["time"].to_numpy() / 1e9, rows["rtt"].to_numpy() / 1e6


def _sampled(x: Array, time: Array, value: Array) -> Array:
    """The series at flent's common times: linear between samples, NaN outside them."""
    if not len(time):
        return np.full(len(x), np.nan)
    slack = 1e-6
    inside = (x >= time[0] - slack) & (x <= time[-1] + slack)
    return np.where(inside, np.interp(x, time, value), np.nan)


def _numbers(values: Array) -> list[float | None]:
    return [number(value) for value in values]


def _raw(series: tuple[Array, Array], started: datetime) -> list[dict[str, float]]:
    begin = started.timestamp()
    return [
        {"t": begin + float(t), "val": float(value)}
        for t, value in zip(*series, strict=True)
        if np.isfinite(value)
    ]
