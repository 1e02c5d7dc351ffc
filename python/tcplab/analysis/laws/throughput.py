"""Laws of a flow's steady goodput. All give bit/s of payload, and infinity where the law sets no limit."""

from __future__ import annotations

import math

from tcplab.analysis.laws.path import HEADERS, Path

# RFC 9438, section 4.6: the window's growth, segments per second cubed, and the share it falls to.
CUBIC_C = 0.4
CUBIC_BETA = 0.7
# RFC 6298, section 2.4, as Linux has it.
RTO_MIN = 0.2


def link_limit(path: Path) -> float:
    """The payload's share of the frames that the bottleneck carries."""
    return path.rate * path.payload / (path.payload + HEADERS)


def window_limit(path: Path, window: float) -> float:
    """A window of so many bytes a round trip (RFC 7323, section 1.1)."""
    return window * 8 / path.rtt if path.rtt > 0 else math.inf


def mathis(path: Path, *, acked: int = 1) -> float:
    """Reno under random loss: MSS/RTT · sqrt(3/2) / sqrt(p · b) (Mathis, Semke, Mahdavi, Ott 1997).

    `acked` (b) is how many segments an ACK covers where the window grows by ACKs; Linux counts bytes (RFC
    3465), which is b = 1.
    """
    if path.loss <= 0:
        return math.inf
    return path.payload * 8 / path.rtt * math.sqrt(1.5 / (acked * path.loss))


def pftk(path: Path, *, acked: int = 1, rto: float | None = None, window: float = math.inf) -> float:
    """Reno with timeouts: equation 30 of Padhye, Firoiu, Towsley, Kurose (SIGCOMM 1998).

    `rto` is the retransmission timeout, s (Linux's: 200 ms above the RTT when none); `window` the greatest
    window, bytes.
    """
    p, b, rtt = path.loss, acked, path.rtt
    limit = window_limit(path, window)
    if p <= 0:
        return limit
    timeout = rtt + RTO_MIN if rto is None else rto
    losing = min(1.0, 3 * math.sqrt(3 * b * p / 8))
    time = rtt * math.sqrt(2 * b * p / 3) + timeout * losing * p * (1 + 32 * p * p)
    return min(limit, path.payload * 8 / time)


def cubic_response(path: Path) -> float:
    """CUBIC under loss: the greater of its own region and of its Reno-friendly one (RFC 9438, section 5.1).

    Own region: W = (C (3 + β) / (4 (1 - β)))^¼ · (RTT / p)^¾ / RTT segments a round trip; Reno-friendly:
    what an AIMD of the same mean as Reno's gets.
    """
    p, rtt = path.loss, path.rtt
    if p <= 0:
        return math.inf
    own = (CUBIC_C * (3 + CUBIC_BETA) / (4 * (1 - CUBIC_BETA))) ** 0.25 * (rtt / p) ** 0.75
    friendly = math.sqrt(1.5 / p)
    return float(max(own, friendly) * path.payload * 8 / rtt)
