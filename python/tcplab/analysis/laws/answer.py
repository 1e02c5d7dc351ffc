"""Everything the laws say of one path, each figure with its formula and source: what `tcplab calc` prints."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcplab.analysis.laws.path import Path
from tcplab.analysis.laws.recovery import INITIAL_WINDOW, cubic_recovery, reno_recovery, slow_start_time
from tcplab.analysis.laws.throughput import cubic_response, link_limit, mathis, pftk, window_limit


@dataclass(frozen=True)
class Line:
    """One figure."""

    key: str
    """Its name for machines."""
    label: str
    value: float
    unit: str
    """bit/s, s, B, segments, or streams."""
    formula: str
    source: str


def answer(path: Path, *, window: float | None = None, streams: int = 1) -> list[Line]:
    """Predict `streams` flows with a window of so many bytes each (None: unlimited)."""
    link = link_limit(path)
    lines = [
        Line("bdp", "bandwidth-delay product", path.bdp, "B", "rate · RTT / 8", "RFC 7323, section 1.1"),
        Line("pipe", "segments that fill the path", path.pipe, "segments", "BDP / frame", "RFC 2488"),
        Line(
            "window_needed",
            "window needed per stream",
            link * path.rtt / 8 / streams,
            "B",
            "goodput · RTT / 8 / streams",
            "RFC 7323, section 1.1",
        ),
        Line(
            "link",
            "goodput the link allows",
            link,
            "bit/s",
            f"rate · {path.payload} / {path.payload + 66}",
            "Ethernet 14 + IPv4 20 + TCP 32",
        ),
    ]
    laws = [("link", link)]
    if window is not None:
        laws.append(("window", streams * window_limit(path, window)))
        lines.append(
            Line("window", "window limit", laws[-1][1], "bit/s", "window · 8 / RTT · streams", "RFC 7323")
        )
    if path.loss > 0:
        found = (
            ("mathis", "Reno under this loss", mathis(path), "MSS/RTT · sqrt(1.5 / p)", "Mathis et al. 1997"),
            (
                "pftk",
                "Reno, with its timeouts",
                pftk(path),
                "MSS / (RTT·sqrt(2p/3) + RTO·min(1, 3·sqrt(3p/8))·p·(1+32p²))",
                "Padhye et al. 1998, eq. 30",
            ),
            (
                "cubic",
                "CUBIC under this loss",
                cubic_response(path),
                "max(1.054 · (RTT/p)^0.75, sqrt(1.5/p)) · MSS / RTT",
                "RFC 9438, section 5.1",
            ),
        )
        for key, label, value, formula, source in found:
            laws.append((key, streams * value))
            lines.append(Line(key, label, streams * value, "bit/s", f"{formula} · streams", source))
    # The window of each stream when it is stopped: by its limit, or where all together fill the path.
    each = min(path.pipe / streams, math.inf if window is None else window / path.payload)
    lines += [
        Line("flight", "W: window of each stream", each, "segments", _flight(window, streams), "ratio"),
        Line(
            "slow_start",
            "time to reach W",
            slow_start_time(path, each),
            "s",
            f"log2(W / {INITIAL_WINDOW}) · RTT",
            "RFC 5681, section 3.1; RFC 6928",
        ),
        Line(
            "reno_recovery", "Reno, after one loss", reno_recovery(path, each), "s", "W/2 · RTT", "RFC 5681"
        ),
        Line(
            "cubic_recovery",
            "CUBIC, after one loss",
            cubic_recovery(path, each),
            "s",
            "cbrt(0.3·W / 0.4), at most W·1.7/3 · RTT",
            "RFC 9438, sections 4.2 and 4.3",
        ),
    ]
    for key, label, single in (
        ("window_streams", "streams to fill it with this window", window and window_limit(path, window)),
        ("reno_streams", "streams to fill it with Reno", pftk(path)),
        ("cubic_streams", "streams to fill it with CUBIC", cubic_response(path)),
    ):
        if single and math.isfinite(single) and math.isfinite(link):
            count = float(math.ceil(link / single))
            lines.append(Line(key, label, count, "streams", "goodput of the link / that of one", "ratio"))
    return lines


def _flight(window: float | None, streams: int) -> str:
    shared = "segments that fill the path" + (" / streams" if streams > 1 else "")
    return shared if window is None else f"min({shared}, window / MSS)"
