"""Echoes drawn: round-trip time by message size, first round trips, distributions, and capacity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcplab.analysis.echo.statistics import Echoes, SizeStatistics
from tcplab.figures.model import Band, Figure, Line, Panel
from tcplab.figures.palette import style

# Sizes that a figure of few lines shows.
_FEW = 4
# First round trips of each connection that are drawn.
_FIRST = 20
_POINTS = 300
_MS = 1e6


def by_size(tests: Sequence[Echoes], title: str) -> Figure:
    """Mean round-trip time against message size with its bounds, a curve per test; and payload per second."""
    rtt, bands, rate = [], [], []
    for number, test in enumerate(tests):
        look = style(number)
        x = np.array([one.size for one in test.sizes], dtype=np.float64)
        mean = np.array([one.mean for one in test.sizes]) / _MS
        rtt.append(Line(test.label, x, mean, look))
        low, high = np.array([_bounds(one) for one in test.sizes]).T
        # A mean can have a lower bound below zero, which a logarithmic axis cannot show.
        low = np.maximum(low, mean / 10)
        bands.append(Band(test.label, x, low, high, look, f"{test.label}, bounds"))
        rate.append(Line(test.label, x, np.array([one.throughput for one in test.sizes]) / 1e6, look))
    ticks = _ticks(tests)
    panels = (
        Panel(
            "Round-trip time",
            "ms",
            tuple(rtt),
            bands=tuple(bands),
            x_title="Message size (B)",
            log="xy",
            ticks=ticks,
            zero=False,
        ),
        Panel(
            "Payload one way",
            "Mbit/s",
            tuple(rate),
            x_title="Message size (B)",
            log="xy",
            ticks=ticks,
            zero=False,
        ),
    )
    return Figure("echo-by-size", title, "", panels, columns=2, notes=(_bounds_note(tests),))


def first_trips(tests: Sequence[Echoes], title: str) -> Figure:
    """The first round trips of each connection at some sizes, the clients' mean and the range over them."""
    panels = []
    for size in _some_sizes(tests):
        lines, bands = [], []
        for number, test in enumerate(tests):
            rows = [one.rtts[:_FIRST] for one in test.of_size(size) if len(one.rtts) >= 2]
            if not rows:
                continue
            shortest = min(map(len, rows))
            values = np.array([row[:shortest] for row in rows]) / _MS
            x = np.arange(1, shortest + 1, dtype=np.float64)
            look = style(number)
            lines.append(Line(test.label, x, values.mean(axis=0), look))
            if len(rows) > 1:
                label = f"{test.label}, all clients"
                bands.append(Band(test.label, x, values.min(axis=0), values.max(axis=0), look, label))
        if lines:
            panels.append(
                Panel(
                    f"RTT of {size} B",
                    "ms",
                    tuple(lines),
                    bands=tuple(bands),
                    x_title="Round trip",
                    log="y",
                    zero=False,
                )
            )
    return Figure("echo-first", title, "", tuple(panels), columns=2)


def distributions(tests: Sequence[Echoes], title: str) -> Figure:
    """How the round trips at some sizes are distributed."""
    panels = []
    for size in _some_sizes(tests):
        lines = []
        for number, test in enumerate(tests):
            parts = [one.without(test.warmup).weighted() for one in test.of_size(size)]
            if not parts or not sum(len(values) for values, _ in parts):
                continue
            values = np.concatenate([value for value, _ in parts])
            weights = np.concatenate([weight for _, weight in parts])
            order = np.argsort(values)
            share = np.cumsum(weights[order]) / weights.sum()
            shown = np.unique(np.searchsorted(share, np.linspace(0, 1, _POINTS)).clip(0, len(share) - 1))
            x, y = values[order][shown] / _MS, share[shown]
            lines.append(Line(test.label, x, y, style(number)))
        if lines:
            panels.append(Panel(f"RTT of {size} B", "ms", tuple(lines), top=1.0))
    return Figure("echo-distributions", title, "", tuple(panels), columns=2)


def capacity(tests: Sequence[Echoes], title: str) -> Figure:
    """Round-trip time against the number of clients, a curve per size; empty for one number."""
    clients = sorted({test.clients for test in tests})
    if len(clients) < 2:
        return Figure("echo-capacity", title, "", ())
    rtt, rate = [], []
    for number, size in enumerate(_some_sizes(tests)):
        found = [
            (test.clients, one.mean / _MS, one.rate)
            for test in sorted(tests, key=lambda test: test.clients)
            if (one := test.at(size)) is not None
        ]
        x, mean, trips = (np.array(column, dtype=np.float64) for column in zip(*found, strict=True))
        rtt.append(Line(f"{size} B", x, mean, style(number)))
        rate.append(Line(f"{size} B", x, trips, style(number)))
    ticks = tuple((float(number), str(number)) for number in clients)
    panels = (
        Panel("Round-trip time", "ms", tuple(rtt), x_title="Clients", log="xy", ticks=ticks, zero=False),
        Panel("Round trips", "1/s", tuple(rate), x_title="Clients", log="xy", ticks=ticks, zero=False),
    )
    return Figure("echo-capacity", title, "", panels, columns=2)


def _bounds(one: SizeStatistics) -> tuple[float, float]:
    """The wider of the two pairs of bounds, ms."""
    low = one.low if np.isnan(one.batch_low) else min(one.low, one.batch_low)
    high = one.high if np.isnan(one.batch_high) else max(one.high, one.batch_high)
    return low / _MS, high / _MS


def _bounds_note(tests: Sequence[Echoes]) -> str:
    levels = sorted({test.level for test in tests})
    listed = ", ".join(f"{level:.4g}" for level in levels)
    return f"Bands: bounds of the mean at {listed}, by Student's t or by batch means, whichever are wider."


def _some_sizes(tests: Sequence[Echoes]) -> list[int]:
    """A few sizes that all tests have, from the smallest to the largest."""
    common = [one.size for one in tests[0].sizes if all(test.at(one.size) for test in tests)]
    if len(common) <= _FEW:
        return common
    places = np.linspace(0, len(common) - 1, _FEW).round().astype(int)
    wanted = [common[place] for place in places]
    # A message of about a segment is where the first step is.
    near = min(common, key=lambda size: abs(size - 1024))
    wanted[1] = near if near not in (wanted[0], *wanted[2:]) else wanted[1]
    return wanted


def _ticks(tests: Sequence[Echoes]) -> tuple[tuple[float, str], ...]:
    sizes = sorted({one.size for test in tests for one in test.sizes})
    step = max(1, -(-len(sizes) // 9))
    return tuple((float(size), _short(size)) for size in sizes[::step])


def _short(size: int) -> str:
    for unit, divisor in (("Mi", 1 << 20), ("Ki", 1 << 10)):
        if size >= divisor and size % divisor == 0:
            return f"{size // divisor} {unit}"
    return str(size)
