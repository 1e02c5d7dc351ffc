"""Panels that are worked out of a window's samples, by the same functions as the report's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcplab.server import samples as windows
from tcplab.server.samples import Hop, Samples

Array = NDArray[np.float64]
Made = tuple[dict[str, Any], Array, Array]
"""The name of a series, its abscissae (s, or the unit of its panel), its values."""

_MAX_CLASSES = 8
# The page scales seconds and bits per second itself.
_BASE = {"ms": (1e-3, "s"), "us": (1e-6, "s"), "ns": (1e-9, "s"), "Mbit/s": (1e6, "bit/s")}


@dataclass(frozen=True)
class Derived:
    """A panel and what makes its series."""

    unit: str
    """Empty where the series have units of their own, or none."""
    make: Callable[[Samples, int, int], Iterator[Made]]
    """Of samples, between two times, ns."""
    across: str = "time"
    """`time`, or the unit of the abscissa of another abscissa."""


def jain(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """Jain's index of the flows that share a bottleneck, over the second before each sample."""
    for hop, flows in windows.bottlenecks(samples).items():
        units = samples.sharing(flows)
        if len(units) < 2:
            continue
        times, rates = samples.recent_goodput(units)
        values = windows.jain_over_time(rates)
        if np.isfinite(values).any():
            # Several streams of one flow are its own.
            owner = {"flow": flows[0], "stream": 0} if len(flows) == 1 else {}
            yield {**_way(hop), **owner, "unit": ""}, times / 1e9, values


def control_gauges(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """The figures that controls publish, for each flow the first stream's."""
    for flow in samples.flow_names:
        rows = samples.gauges(flow)
        controls = samples.streams(flow)["cc"].drop_nulls()
        control = str(controls[0]) if len(controls) else ""
        parts = rows.partition_by("name", "unit", as_dict=True, maintain_order=True)
        for (name, unit), part in parts.items():
            series = samples.gauge(part)
            scale, shown = _scale(str(unit))
            about = {"label": f"{flow} {name}", "flow": flow, "stream": 0, "figure": name, "group": control}
            yield {**about, "unit": shown}, series.time / 1e9, series.value * scale


def queue_gauges(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """State of queue disciplines where something waited."""
    for hop in _waited_in(samples):
        for unit, figures in samples.queue_gauges(hop).items():
            scale, shown = _scale(unit)
            for name, series in figures.items():
                about = {**_way(hop), "label": name, "figure": name, "group": _named(hop), "unit": shown}
                yield about, series.time / 1e9, series.value * scale


def class_delays(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """How long classes of a queue wait, of disciplines with few classes."""
    for hop in _waited_in(samples):
        delays = samples.class_delays(hop)
        if len(delays) > _MAX_CLASSES:
            continue
        for name, series in delays.items():
            about = {**_way(hop), "label": name, "figure": name, "group": _named(hop), "unit": "s"}
            yield about, series.time / 1e9, series.value / 1e9


def rtt_distribution(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """Share of each flow's RTT samples in the window at or below each value."""
    for flow in samples.flow_names:
        values, weights = samples.round_trips(flow, start, end)
        x, y = windows.empirical_cdf(values / 1e9, weights=weights)
        if len(x):
            yield {"label": flow, "flow": flow, "stream": 0, "unit": ""}, x, y


def sojourn_distribution(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """Share of the packets in the window that waited no longer than each value, by sample period."""
    for hop in _waited_in(samples):
        waits = samples.waits(hop, start, end)
        x, y = windows.empirical_cdf(waits.mean / 1e9, weights=waits.packets)
        if len(x):
            yield {**_way(hop), "unit": ""}, x, y


def echo(samples: Samples, start: int, end: int) -> Iterator[Made]:
    """Mean round-trip time of each echo flow's messages by their size, over the whole run."""
    for flow, echoes in windows.echoes_of(samples.run):
        sizes = np.array([one.size for one in echoes.sizes], dtype=np.float64)
        means = np.array([one.mean for one in echoes.sizes]) / 1e9
        about = {"label": flow["name"], "flow": flow["name"], "stream": 0, "unit": "s", "log": True}
        yield about, sizes, means


DERIVED: dict[str, Derived] = {
    "jain": Derived("", jain),
    "control": Derived("", control_gauges),
    "discipline": Derived("", queue_gauges),
    "classes": Derived("s", class_delays),
    "rtt-cdf": Derived("", rtt_distribution, across="s"),
    "sojourn-cdf": Derived("", sojourn_distribution, across="s"),
    "echo": Derived("s", echo, across="B"),
}


def _scale(unit: str) -> tuple[float, str]:
    return _BASE.get(unit, (1.0, unit))


def _waited_in(samples: Samples) -> list[Hop]:
    return [hop for hop in samples.hops() if samples.queue(hop).value.any()]


def _named(hop: Hop) -> str:
    return hop.link if hop.direction == "forward" else f"{hop.link} back"


def _way(hop: Hop) -> dict[str, Any]:
    return {"label": _named(hop), "link": hop.link, "direction": hop.direction}
