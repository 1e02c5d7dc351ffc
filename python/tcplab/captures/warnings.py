"""Warnings: parts of a capture that could not be read, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tcplab.quantities import plural

_COUNTS = (
    ("dropped_at_capture", "packet", "missed by the program that captured"),
    ("without_interface", "packet", "of an interface the capture does not describe, left out"),
    ("without_time", "packet", "without a time, given that of the packet before"),
    ("back_in_time", "packet", "with a time before that of the packet before"),
    ("not_ip", "packet", "other than IP (ARP, say), not in any flow"),
    ("other_protocol", "packet", "of IP protocols other than TCP and UDP, not in any flow"),
    ("header_cut", "packet", "too short to hold their headers, not in any flow"),
    ("malformed", "packet", "whose headers contradict themselves, not in any flow"),
    ("link_type", "packet", "of a link type that is not known, not in any flow"),
    ("fragments_incomplete", "IP fragment", "of incomplete datagrams, not in any flow"),
    ("options_cut", "TCP header", "whose options the snap length cut off: no RTT or SACK from those"),
    ("blocks_skipped", "block", "of kinds that hold no packets, skipped"),
)


def remarks(facts: Mapping[str, Any]) -> Iterator[str]:
    """Notes on the capture for readers of the figures; empty if it was read whole."""
    ending = facts.get("ending")
    if ending is not None and ending != "complete":
        yield f"the capture is {ending}; what was read before counts"
    for key, noun, what in _COUNTS:
        if facts.get(key):
            yield f"{plural(facts[key], noun)} {what}"
