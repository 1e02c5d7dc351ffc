"""The limit of a flow, and the prediction of the laws for its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from tcplab.analysis.laws import Path
from tcplab.analysis.leg_summaries import slower_leg
from tcplab.plan.paths import base_rtt, bottlenecks, mean_rate_of, settings
from tcplab.plan.types import Plan

# A flow is limited by what it spent this share of its busy time on.
_MOSTLY = 0.5
# Or, where nothing else is to be seen, on this much.
_OFTEN = 0.1
_FILLED = 0.95
_FULL = 0.85
# Of a send buffer, which counts the memory of whole packets (skb truesize), payload is this much or more.
_PAYLOAD_OF_BUFFER = 0.63


@dataclass(frozen=True)
class Windows:
    """Bytes that one stream of a flow had in flight, and that its ends allow; None where not known."""

    used: float | None
    """Goodput times RTT."""
    send_buffer: float | None
    receive_window: float | None


def limited_by(metrics: Mapping[str, float | None], windows: Windows, utilization: float | None) -> str:
    """The limit of a TCP flow: by the socket's own account, else by the bytes in flight.

    The first of these that is true:

    - the receive window or the send buffer, where the socket waited for it most of its busy time;
    - the link, where it was filled;
    - the buffer or window that the bytes in flight filled;
    - loss where any segment was retransmitted, or marks where more segments were marked;
    - the window or buffer that it waited for a tenth of its time (BBR rarely fills either);
    - else the flow's length: its first slow start was not over.
    """
    if (metrics.get("rwnd_limited") or 0.0) > _MOSTLY:
        return "receive window"
    if (metrics.get("sndbuf_limited") or 0.0) > _MOSTLY:
        return "send buffer"
    if (utilization or 0.0) >= _FILLED:
        return "link"
    used = windows.used or 0.0
    if windows.receive_window and used >= _FULL * windows.receive_window:
        return "receive window"
    if windows.send_buffer and used >= _FULL * _PAYLOAD_OF_BUFFER * windows.send_buffer:
        return "send buffer"
    retransmits, marked = metrics.get("retransmits") or 0.0, metrics.get("marked") or 0.0
    if retransmits or marked:
        return "marks" if marked > retransmits else "loss"
    waited = {"receive window": metrics.get("rwnd_limited"), "send buffer": metrics.get("sndbuf_limited")}
    longest = max(waited, key=lambda name: waited[name] or 0.0)
    return longest if (waited[longest] or 0.0) > _OFTEN else "slow start"


def split_limit(limit: str, utilization: float | None, legs: pl.DataFrame) -> str:
    """The limit of a flow that an accelerator splits, from that of its sender and figures of the legs.

    Where the sender waits for the accelerator's receive window, the other leg is the slower one. Its link
    where that is filled. Else the receive window of its far end, where that is full most of the time; else
    its losses where it has any; else the leg itself.
    """
    if limit != "receive window":
        return limit
    if (utilization or 0.0) >= _FULL:
        return "link"
    slower = slower_leg(legs)
    if slower is None:
        return limit
    own = legs.filter(leg=slower)
    of_leg = f"the leg towards the {slower}"
    if (own["window_filled"].drop_nulls() > _MOSTLY).any():
        return f"receive window on {of_leg}"
    return f"loss on {of_leg}" if own["retransmits"].sum() > 0 else of_leg


def path_of(plan: Plan, flow: str) -> Path | None:
    """The path of a flow of the plan, as the laws need it; None without a rate or a route."""
    planned = next((f for f in plan["flows"] if f["name"] == flow), None)
    if planned is None:
        return None
    rtt = base_rtt(plan, planned)
    hops = bottlenecks(plan, planned)
    rate = mean_rate_of(plan, planned, hops[0]) if hops else None
    if rtt is None or rate is None:
        return None
    kept = 1.0
    for hop in hops:
        loss = settings(plan, hop).get("loss")
        chance = (loss.get("model") or {}).get("chance") if loss else None
        kept *= 1 - float((chance or {}).get("rate") or 0) / 1e9
    sender = planned.get("sender") or {}
    return Path(rate, max(rtt / 1e9, 1e-6), 1 - kept, int(sender.get("mss") or 1460))
