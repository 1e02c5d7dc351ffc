"""The JSON that `iperf3 -J` prints at a sender, for scripts that read it.

One document per TCP or UDP flow and repetition. What the run cannot know (host CPU in a simulator, cookies,
socket buffers) is zero or empty, as iperf3 has no null.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from tcplab.plan.kinds import kind_of
from tcplab.plan.paths import data_path
from tcplab.plan.types import Flow, Plan
from tcplab.results.errors import ResultsError
from tcplab.results.export.documents import write_documents
from tcplab.results.run import Run

_FIRST_SOCKET = 5
# Of results that don't know their ports.
_LOCAL_PORT, _PORT = 40_000, 5201


def write(run: Run, target: Path) -> list[Path]:
    """Write the documents; see `tcplab.results.export.export` for their names."""
    found = documents(run)
    if not found:
        raise ResultsError(run.path, "none of its flows is tcp or udp, and iperf3 has no others")
    return write_documents(found, target)


def documents(run: Run) -> dict[str, dict[str, Any]]:
    """A document per flow and repetition, by name."""
    found = {}
    for repetition in run.repetitions:
        for flow in run.plan.get("flows", ()):
            if kind_of(flow).bulk:
                suffix = f"-run-{repetition}" if len(run.repetitions) > 1 else ""
                found[flow["name"] + suffix] = document(run, flow, repetition)
    return found


def document(run: Run, flow: Flow, repetition: int) -> dict[str, Any]:
    """The JSON that iperf3 would have printed for one flow."""
    tables = {
        name: run.tables.of(repetition, name).filter(pl.col("flow") == flow["name"])
        for name in ("flows", "intervals", "sockets")
    }
    streams = tables["flows"].sort("stream").to_dicts()
    begin = min((row["start"] for row in streams), default=flow.get("start", 0))
    return {
        "start": _start(run, flow, repetition, streams, tables["sockets"], begin),
        "intervals": _intervals(run.plan, flow, tables["intervals"], tables["sockets"], begin),
        "end": _end(flow, streams, tables["intervals"], tables["sockets"]),
    }


def _start(
    run: Run,
    flow: Flow,
    repetition: int,
    streams: list[dict[str, Any]],
    sockets: pl.DataFrame,
    begin: int,
) -> dict[str, Any]:
    manifest = run.manifests[repetition]
    tcp = kind_of(flow).bulk_tcp
    started = datetime.fromisoformat(manifest.started) if manifest.started else datetime.fromtimestamp(0, UTC)
    started += timedelta(microseconds=begin // 1000)
    ends = (flow["from"], flow["to"])
    stop = flow.get("stop") or run.plan.get("duration", 0)
    size = flow.get("bytes") or 0
    rate = 0 if tcp else flow.get("rate", 0)
    ports = {row["stream"]: (row.get("from_port"), row.get("to_port")) for row in streams}
    ours = {stream: ports.get(stream, (None, None)) for stream in range(flow.get("streams", 1))}
    port = next((theirs for _, theirs in ours.values() if theirs), _PORT)
    start: dict[str, Any] = {
        "connected": [
            {
                "socket": _FIRST_SOCKET + 2 * stream,
                "local_host": ends[0],
                "local_port": local or _LOCAL_PORT + stream,
                "remote_host": ends[1],
                "remote_port": remote or port,
            }
            for stream, (local, remote) in ours.items()
        ],
        "version": f"tcplab {manifest.tcplab}",
        "system_info": manifest.host.kernel or "",
        "timestamp": {
            "time": started.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "timesecs": int(started.timestamp()),
        },
        "connecting_to": {"host": ends[1], "port": port},
        "cookie": manifest.plan_digest[:36],
        "target_bitrate": rate,
        "sock_bufsize": 0,
        "sndbuf_actual": 0,
        "rcvbuf_actual": 0,
        "test_start": {
            "protocol": "TCP" if tcp else "UDP",
            "num_streams": flow.get("streams", 1),
            "blksize": 131_072 if tcp else flow.get("payload", 0),
            "omit": 0,
            # iperf3 ends a test by one of the two; the other is 0.
            "duration": 0 if size else (stop - flow.get("start", 0)) / 1e9,
            "bytes": size,
            "blocks": 0,
            "reverse": 0,
            "tos": flow.get("dscp", 0) << 2,
            "target_bitrate": rate,
        },
    }
    if tcp:
        start["tcp_mss_default"] = _extreme(sockets["mss"], "max")
    return start


def _intervals(
    plan: Plan, flow: Flow, intervals: pl.DataFrame, sockets: pl.DataFrame, begin: int
) -> list[dict[str, Any]]:
    mtu = _path_mtu(plan, flow)
    # A receiver may have rows at times of its own.
    sent = intervals.filter(pl.col("bytes_sent").is_not_null())
    rows = (sent if len(sent) else intervals).sort("stream", "time")
    if len(sockets):
        # The socket as it stood at the end of the interval.
        latest = sockets.sort("time").select("time", "stream", "cwnd", "mss", "rwnd", "srtt", "rttvar")
        rows = rows.sort("time").join_asof(
            latest, on="time", by="stream", strategy="backward", check_sortedness=False
        )
    result = []
    for _, part in rows.sort("time", "stream").group_by("time", maintain_order=True):
        streams = [_stream_interval(flow, row, begin, mtu) for row in part.to_dicts()]
        result.append({"streams": streams, "sum": _sum(streams)})
    return result


def _path_mtu(plan: Plan, flow: Flow) -> int:
    """The smallest MTU of the links between both ends."""
    mtus = {link["name"]: link["mtu"] for link in plan.get("links", ())}
    return min((mtus[hop.link] for hop in data_path(plan, flow)), default=0)


def _stream_interval(flow: Flow, row: dict[str, Any], begin: int, mtu: int) -> dict[str, Any]:
    sent = row["bytes_sent"] if row["bytes_sent"] is not None else row["bytes_received"]
    seconds = row["duration"] / 1e9
    interval = {
        "socket": _FIRST_SOCKET + 2 * row["stream"],
        "start": (row["time"] - row["duration"] - begin) / 1e9,
        "end": (row["time"] - begin) / 1e9,
        "seconds": seconds,
        "bytes": sent,
        "bits_per_second": sent * 8 / seconds if seconds else 0.0,
    }
    if kind_of(flow).datagrams:
        interval |= {"packets": sent // max(flow.get("payload", 1), 1)}
    else:
        cwnd, mss = row.get("cwnd"), row.get("mss")
        interval |= {
            "retransmits": row["retransmits"] or 0,
            "snd_cwnd": cwnd * mss if cwnd is not None and mss is not None else 0,
            "snd_wnd": row.get("rwnd") or 0,
            "rtt": (row.get("srtt") or 0) // 1000,
            "rttvar": (row.get("rttvar") or 0) // 1000,
            "pmtu": mtu,
        }
    return interval | {"omitted": False, "sender": True}


def _sum(streams: list[dict[str, Any]]) -> dict[str, Any]:
    total = {key: streams[0][key] for key in ("start", "end", "seconds")}
    for key in ("bytes", "bits_per_second", "retransmits", "packets"):
        if key in streams[0]:
            total[key] = sum(stream[key] for stream in streams)
    return total | {"omitted": False, "sender": True}


def _end(
    flow: Flow, streams: list[dict[str, Any]], intervals: pl.DataFrame, sockets: pl.DataFrame
) -> dict[str, Any]:
    per_stream = _udp_end if kind_of(flow).datagrams else _tcp_end
    ends = [per_stream(row, *_of_stream(row["stream"], intervals, sockets)) for row in streams]
    end: dict[str, Any] = {"streams": ends}
    if ends and kind_of(flow).datagrams:
        sent = [one["udp"] for one in ends]
        end["sum"] = _udp_sum(sent)
        end["sum_sent"] = _udp_sum([one | {"jitter_ms": 0.0, "lost_packets": 0} for one in sent])
        received = [_udp_received(flow, row, one) for row, one in zip(streams, sent, strict=True)]
        end["sum_received"] = _udp_sum(received) | {"sender": False}
    elif ends:
        end["sum_sent"] = _tcp_sum([one["sender"] for one in ends])
        end["sum_received"] = _tcp_sum([one["receiver"] for one in ends])
    end["cpu_utilization_percent"] = _cpu(streams)
    if kind_of(flow).bulk_tcp and streams:
        cc = streams[0]["cc"] or ""
        end |= {"sender_tcp_congestion": cc, "receiver_tcp_congestion": cc}
    return end


def _of_stream(stream: int, *tables: pl.DataFrame) -> list[pl.DataFrame]:
    return [table.filter(pl.col("stream") == stream) for table in tables]


def _span(row: dict[str, Any], size: int) -> dict[str, Any]:
    seconds = max((row["end"] - row["start"]) / 1e9, 0.0)
    return {
        "socket": _FIRST_SOCKET + 2 * row["stream"],
        "start": 0,
        "end": seconds,
        "seconds": seconds,
        "bytes": size,
        "bits_per_second": size * 8 / seconds if seconds else 0.0,
    }


def _tcp_end(row: dict[str, Any], _intervals: pl.DataFrame, sockets: pl.DataFrame) -> dict[str, Any]:
    sender = _span(row, row["bytes_sent"] or 0) | {
        "retransmits": row["retransmits"] or 0,
        "max_snd_cwnd": _extreme(sockets["cwnd"] * sockets["mss"], "max"),
        "max_snd_wnd": _extreme(sockets["rwnd"], "max"),
        "max_rtt": _extreme(sockets["srtt"], "max") // 1000,
        "min_rtt": _extreme(sockets["srtt"], "min") // 1000,
        "mean_rtt": _extreme(sockets["srtt"], "mean") // 1000,
        "sender": True,
    }
    return {"sender": sender, "receiver": _span(row, row["bytes_received"] or 0) | {"sender": True}}


def _extreme(column: pl.Series, how: str) -> int:
    value = getattr(column, how)()
    return int(value) if value is not None else 0


def _udp_end(row: dict[str, Any], intervals: pl.DataFrame, _sockets: pl.DataFrame) -> dict[str, Any]:
    lost = int(intervals["lost"].sum()) if intervals["lost"].null_count() < len(intervals) else 0
    packets = row["segments_sent"] or 0
    jitter = intervals.sort("time")["jitter"].drop_nulls()
    udp = _span(row, row["bytes_sent"] or 0) | {
        "jitter_ms": float(jitter[-1]) / 1e6 if len(jitter) else 0.0,
        "lost_packets": lost,
        "packets": packets,
        "lost_percent": 100 * lost / packets if packets else 0.0,
        "out_of_order": int(intervals["out_of_order"].sum() or 0),
        "sender": True,
    }
    return {"udp": udp}


def _udp_received(flow: Flow, row: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """A stream as its receiver counts it: the datagrams that came, and those it found missing."""
    size = row["bytes_received"] or 0
    return sent | {"bytes": size, "packets": size // max(flow.get("payload", 1), 1) + sent["lost_packets"]}


def _tcp_sum(parts: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = max(part["seconds"] for part in parts)
    size = sum(part["bytes"] for part in parts)
    total = {
        "start": 0,
        "end": seconds,
        "seconds": seconds,
        "bytes": size,
        "bits_per_second": size * 8 / seconds if seconds else 0.0,
    }
    if "retransmits" in parts[0]:
        total["retransmits"] = sum(part["retransmits"] for part in parts)
    return total | {"sender": True}


def _udp_sum(parts: list[dict[str, Any]]) -> dict[str, Any]:
    lost, packets = sum(part["lost_packets"] for part in parts), sum(part["packets"] for part in parts)
    return _tcp_sum(parts) | {
        "jitter_ms": sum(part["jitter_ms"] for part in parts) / len(parts),
        "lost_packets": lost,
        "packets": packets,
        "lost_percent": 100 * lost / packets if packets else 0.0,
    }


def _cpu(streams: list[dict[str, Any]]) -> dict[str, float]:
    spent = {side: sum(row[f"cpu_{side}"] or 0.0 for row in streams) for side in ("sender", "receiver")}
    wall = max(((row["end"] - row["start"]) / 1e9 for row in streams), default=0.0)
    shares = {side: 100 * used / wall if wall > 0 else 0.0 for side, used in spent.items()}
    return {
        "host_total": shares["sender"],
        "host_user": 0.0,
        "host_system": 0.0,
        "remote_total": shares["receiver"],
        "remote_user": 0.0,
        "remote_system": 0.0,
    }
