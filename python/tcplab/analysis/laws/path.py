"""A path and a sender's segments, as the laws need them."""

from __future__ import annotations

from dataclasses import dataclass

# Ethernet 14, IPv4 20, TCP 20 with 12 of timestamps.
HEADERS = 66
# Those of them that the MSS option does not count: options are taken from the segment's payload.
_MSS_TO_PAYLOAD = 12


@dataclass(frozen=True)
class Path:
    """A path; rates in bit/s, times in seconds, sizes in bytes."""

    rate: float
    """Of the bottleneck, in Ethernet frames, bit/s; infinite: no limit."""
    rtt: float
    """Base round-trip time, s."""
    loss: float = 0.0
    """Share of the packets that are lost at random."""
    mss: int = 1460
    """Maximum segment size, bytes: with timestamps a segment carries 12 less."""

    @property
    def payload(self) -> int:
        """Payload of a full segment, bytes."""
        return self.mss - _MSS_TO_PAYLOAD

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product, bytes."""
        return self.rate * self.rtt / 8

    @property
    def pipe(self) -> float:
        """Segments in flight that fill the path without a queue."""
        return self.bdp / (self.payload + HEADERS)
