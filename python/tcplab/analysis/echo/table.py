"""The table of the published study, and what it lacked; as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcplab.analysis.echo.statistics import Echoes, SizeStatistics

# Rows as published: media, desvio padrao, limite inferior, limite superior.
LABELS = {
    "en": ("mean", "sd", "lower", "upper"),
    "pt": ("MED", "DVP", "LOW", "UPP"),
}
_MS = 1e6

Value = Callable[[SizeStatistics], float]
_STUDY: tuple[Value, ...] = (
    lambda one: one.mean / _MS,
    lambda one: one.deviation / _MS,
    lambda one: one.low / _MS,
    lambda one: one.high / _MS,
)
_FURTHER: tuple[tuple[str, Value], ...] = (
    ("median", lambda one: one.median / _MS),
    ("p90", lambda one: one.p90 / _MS),
    ("p99", lambda one: one.p99 / _MS),
    ("p99.9", lambda one: one.p999 / _MS),
    ("max", lambda one: one.maximum / _MS),
    ("first", lambda one: one.first / _MS),
    ("lower, batch means", lambda one: one.batch_low / _MS),
    ("upper, batch means", lambda one: one.batch_high / _MS),
)


@dataclass(frozen=True)
class Table:
    """A heading, sizes as columns, labelled rows of texts."""

    heading: str
    sizes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def lines(self, width: int) -> list[str]:
        """The table as text; wider ones continue below."""
        label = max(len(self.heading), *(len(name) for name, _ in self.rows))
        cells = [
            max(map(len, column)) for column in zip(self.sizes, *(row for _, row in self.rows), strict=True)
        ]
        lines: list[str] = []
        start = 0
        while start < len(cells):
            end, used = start, label
            while end < len(cells) and (end == start or used + 2 + cells[end] <= width):
                used += 2 + cells[end]
                end += 1
            if lines:
                lines.append("")
            for name, row in ((self.heading, self.sizes), *self.rows):
                texts = (text.rjust(cells[start + at]) for at, text in enumerate(row[start:end]))
                lines.append("  ".join((name.ljust(label), *texts)))
            start = end
        return lines


def heading(echoes: Echoes) -> str:
    """`TCP/CLIENTS/ITERATIONS`, as published."""
    return f"TCP/{echoes.clients}/{echoes.iterations}"


def tables(echoes: Echoes, labels: str = "en") -> list[Table]:
    """The study's table, in ms under the sizes; what it lacked; and the means of each client."""
    sizes = tuple(str(one.size) for one in echoes.sizes)
    study = _rows(LABELS[labels], _STUDY, echoes.sizes)
    if echoes.warmup:
        names = [f"{name}, all" for name in LABELS[labels]]
        study += _rows(names, _STUDY, echoes.whole)
    further = _rows([name for name, _ in _FURTHER], [value for _, value in _FURTHER], echoes.sizes)
    further += [
        ("round trips/s", tuple(f"{one.rate:.0f}" for one in echoes.sizes)),
        ("Mbit/s", tuple(f"{one.throughput / 1e6:.4g}" for one in echoes.sizes)),
    ]
    found = [Table(heading(echoes), sizes, tuple(study)), Table("ms", sizes, tuple(further))]
    if echoes.clients > 1:
        found.append(Table("mean, ms", sizes, tuple(_clients(echoes))))
    return found


def _rows(
    names: Sequence[str], values: Sequence[Value], sizes: Sequence[SizeStatistics]
) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (name, tuple(_text(value(one)) for one in sizes)) for name, value in zip(names, values, strict=True)
    ]


def _clients(echoes: Echoes) -> list[tuple[str, tuple[str, ...]]]:
    means = {(one.client, one.size): one.without(echoes.warmup) for one in echoes.series}
    clients = {one.client: one.repetition for one in echoes.series}
    several = len(set(clients.values())) > 1
    rows = []
    for client, repetition in sorted(clients.items()):
        found = [means.get((client, one.size)) for one in echoes.sizes]
        texts = (
            _text(one.total / one.count / _MS) if one is not None and one.count else "-" for one in found
        )
        name = f"client {client}, repetition {repetition}" if several else f"client {client}"
        rows.append((name, tuple(texts)))
    return rows


def _text(ms: float) -> str:
    return "-" if math.isnan(ms) else f"{ms:.4f}"


def csv_text(echoes: Echoes, labels: str = "en") -> str:
    """The tables as CSV: heading and sizes, then a row for each statistic. Times in ms, exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([heading(echoes), *(one.size for one in echoes.sizes)])
    for name, value in zip(LABELS[labels], _STUDY, strict=True):
        writer.writerow([name, *(_exact(value(one)) for one in echoes.sizes)])
    if echoes.warmup:
        for name, value in zip(LABELS[labels], _STUDY, strict=True):
            writer.writerow([f"{name}, all", *(_exact(value(one)) for one in echoes.whole)])
    for name, value in _FURTHER:
        writer.writerow([name, *(_exact(value(one)) for one in echoes.sizes)])
    writer.writerow(["round trips", *(one.count for one in echoes.sizes)])
    writer.writerow(["round trips/s", *(_exact(one.rate) for one in echoes.sizes)])
    writer.writerow(["bit/s", *(_exact(one.throughput) for one in echoes.sizes)])
    return text.getvalue()


def _exact(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.9g}"


def document(echoes: Echoes) -> dict[str, Any]:
    """Everything, for machines: times in ns, rates in 1/s and bit/s, histograms as [ns, count]."""
    return {
        "heading": heading(echoes),
        "clients": echoes.clients,
        "iterations": echoes.iterations,
        "warmup": echoes.warmup,
        "confidence": echoes.level,
        "sizes": [one.to_json() for one in echoes.sizes],
        "with_warmup": [one.to_json() for one in echoes.whole] if echoes.warmup else None,
        "series": [
            {
                "client": one.client,
                "size": one.size,
                "count": one.count,
                "first": one.rtts[: max(100, echoes.warmup)].tolist(),
                "histogram": _histogram(one),
            }
            for one in echoes.series
        ],
    }


def _histogram(series: Any) -> list[tuple[float, int]]:
    """Every round trip, as value and count in ascending order."""
    import numpy as np

    values, weights = series.weighted()
    distinct, place = np.unique(values, return_inverse=True)
    counts = np.bincount(place, weights, minlength=len(distinct))
    return [(float(value), int(count)) for value, count in zip(distinct, counts, strict=True)]
