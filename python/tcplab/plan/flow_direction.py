"""Which way the payload of a plan's flow goes."""

from __future__ import annotations

from tcplab.plan.kinds import kind_of
from tcplab.plan.types import Flow


def goes_both_ways(flow: Flow) -> bool:
    """Whether both of a flow's nodes send payload, so that its figures are those of both together."""
    return kind_of(flow).both_ways


def data_ends(flow: Flow) -> tuple[str, str]:
    """The nodes that send and receive most of a flow's payload: swapped when responses outweigh requests."""
    source, target = flow["from"], flow["to"]
    if kind_of(flow).mostly_back and flow.get("response", 1) > flow.get("request", 0):
        source, target = target, source
    return source, target
