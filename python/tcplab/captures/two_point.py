"""The captures of both ends of a path: one-way delays, and what was truly lost."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.captures.clocks import lead
from tcplab.captures.columns import GAP, time
from tcplab.captures.errors import refused
from tcplab.captures.flow import Spread
from tcplab.captures.listing import wrapped
from tcplab.quantities import plural

if TYPE_CHECKING:
    import polars as pl

    from tcplab.figures.model import Figure


@dataclass(frozen=True)
class DirectionSummary:
    """One direction of a flow, from the end that sends to the end that receives."""

    endpoint: str
    """Who sends."""
    sent: int
    arrived: int
    lost: int
    """With payload, SYN or FIN."""
    missed: int
    """Acknowledged, and not captured when they arrived."""
    lost_acks: int
    retransmissions: int
    needless: int
    """Retransmitted although the same had arrived."""
    unsent: int
    """Arrived, and never seen to be sent."""
    delay: Spread | None


@dataclass(frozen=True)
class MatchedCaptures:
    """Two captures, matched packet by packet."""

    paths: tuple[Path, Path]
    offset: int
    """How far the second clock was ahead of the first, ns."""
    skew: float
    """By how much it ran faster: 1e-6 is 1 ppm."""
    bound: int | None
    """The error of `offset`, and so of each one-way delay, at most, ns; None where nothing bounds it."""
    exchanged: bool
    """Its hosts exchanged the time during the run."""
    flows: tuple[tuple[tuple[int, int], tuple[DirectionSummary, DirectionSummary]], ...]
    """Its numbers in both captures, and what each side sent."""
    unpaired: tuple[int, int]
    same_clock: bool
    raw: dict[str, Any]

    @property
    def pairs(self) -> pl.DataFrame:
        """A row per packet that left one end: `delay` (ns) and `arrived` are null if it never came."""
        import polars as pl

        return pl.read_ipc(io.BytesIO(self.raw["pairs"]))


def match_ends(first: Path, second: Path, *, same_clock: bool | None = None) -> MatchedCaptures:
    """Match the captures of both ends. Raises CaptureError.

    Clocks are taken for the same when both captures lie in one run directory, unless `same_clock` says.
    Of a run between real hosts, their exchanges of the time are used.
    """
    from tcplab import _core

    same = _one_run(first, second) if same_clock is None else same_clock
    known = None if same or same_clock is not None else lead(first, second)
    for path in (first, second):
        _readable(path)
    try:
        raw = _core.match_ends(first, second, same, known)
    except (OSError, _core.CaptureError) as error:
        raise refused(first, error) from None
    flows = tuple(
        (
            (flow["numbers"][0], flow["numbers"][1]),
            (_direction(flow["halves"][0]), _direction(flow["halves"][1])),
        )
        for flow in raw["flows"]
    )
    one, two = raw["unpaired"]
    return MatchedCaptures(
        (first, second),
        raw["offset"],
        raw["skew"],
        raw["bound"],
        known is not None,
        flows,
        (one, two),
        same,
        raw,
    )


def _readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise refused(path, error) from None


def _one_run(first: Path, second: Path) -> bool:
    """The emulator and the simulator time all captures of a run by one clock; real hosts have their own."""
    manifest = first.parent / "manifest.json"
    if first.parent.resolve() != second.parent.resolve() or not manifest.is_file():
        return False
    try:
        return bool(json.loads(manifest.read_bytes()).get("engine") != "remote")
    except (OSError, ValueError, AttributeError):
        return True


def _direction(half: dict[str, Any]) -> DirectionSummary:
    delay = half["delay"]
    return DirectionSummary(**{**half, "delay": None if delay is None else Spread(**delay)})


_HEADS = (
    "#",
    "sent by",
    "sent",
    "arrived",
    "lost",
    "lost ACKs",
    "retransmitted",
    "needless",
    "min",
    "p50",
    "p95",
    "max",
)


def lines(ends: MatchedCaptures, width: int) -> Iterator[str]:
    """Results of two matched captures."""
    yield f"{plural(len(ends.flows), 'TCP flow')} in both captures"
    for path, alone in zip(ends.paths, ends.unpaired, strict=True):
        if alone:
            yield f"{plural(alone, 'TCP flow')} in {path.name} alone"
    if not ends.flows:
        return
    yield from wrapped("", clock_words(ends), width)
    yield ""
    rows = [
        (
            str(numbers[0]),
            way.endpoint,
            str(way.sent),
            str(way.arrived),
            str(way.lost),
            str(way.lost_acks),
            str(way.retransmissions),
            str(way.needless),
            *(time(None if way.delay is None else value) for value in _quantiles(way.delay)),
        )
        for numbers, ways in ends.flows
        for way in ways
    ]
    every = [way for _, ways in ends.flows for way in ways]
    yield from _table(rows, width)
    yield ""
    yield from wrapped(
        "",
        "lost: packets with data, SYN or FIN that did not arrive, super-packets counted by their segments; "
        "min to max: one-way delay",
        width,
    )
    for count, how in (
        (sum(way.missed for way in every), "the capture there missed: they were acknowledged"),
        (sum(way.unsent for way in every), "the other capture missed when they left"),
    ):
        if count:
            yield from wrapped("", f"note: {plural(count, 'packet')} arrived that {how}", width)


def _quantiles(delay: Spread | None) -> tuple[float, float, float, float]:
    return (0, 0, 0, 0) if delay is None else (delay.min, delay.p50, delay.p95, delay.max)


def clock_words(ends: MatchedCaptures) -> str:
    """The estimate of the offset between the two clocks."""
    if ends.same_clock:
        return "both timed by one clock: delays are as measured"
    ahead = "ahead of" if ends.offset >= 0 else "behind"
    source = (
        "as the hosts' exchanges of the time and the packets bound it"
        if ends.exchanged
        else "assuming equal minimum delays in both directions"
    )
    bound = "" if ends.bound is None else f"; one-way delays are within ± {time(ends.bound)}"
    return (
        f"clock of {ends.paths[1].name}: {time(abs(ends.offset))} {ahead} that of {ends.paths[0].name}, "
        f"running {ends.skew * 1e6:+.3g} ppm against it; both removed, {source}{bound}"
    )


_OPTIONAL = ("sent", "arrived", "needless", "max", "min", "lost ACKs")


def _table(rows: list[tuple[str, ...]], width: int) -> Iterator[str]:
    taken = [max(len(head), *(len(row[i]) for row in rows)) for i, head in enumerate(_HEADS)]
    shown = list(range(len(_HEADS)))
    for name in _OPTIONAL:
        if not width or sum(taken[i] + GAP for i in shown) - GAP <= width:
            break
        shown.remove(_HEADS.index(name))
    for row in (_HEADS, *rows):
        cells = (row[i].ljust(taken[i]) if _HEADS[i] == "sent by" else row[i].rjust(taken[i]) for i in shown)
        yield (" " * GAP).join(cells).rstrip()


def to_json(ends: MatchedCaptures) -> dict[str, Any]:
    """For a program."""
    rest = {key: value for key, value in ends.raw.items() if key != "pairs"}
    return {"first": str(ends.paths[0]), "second": str(ends.paths[1]), "same_clock": ends.same_clock, **rest}


def delay_figure(ends: MatchedCaptures) -> Figure:
    """One-way delay of every packet, each direction in its own panel, with what was lost."""
    import numpy as np

    from tcplab.figures.decimate import decimate
    from tcplab.figures.model import Figure, Panel, Points
    from tcplab.figures.palette import COLORS, style

    pairs = ends.pairs.sort("time")
    start = int(pairs["time"].min()) if len(pairs) else 0  # type: ignore[arg-type]
    panels = []
    for forward, title in ((True, "Delay, forward"), (False, "Delay, reverse")):
        points = []
        lost_x = []
        lowest = np.inf
        for place, (numbers, ways) in enumerate(ends.flows[:8]):
            mine = pairs.filter((pairs["flow"] == numbers[0]) & (pairs["forward"] == forward))
            came = mine.filter(mine["delay"].is_not_null())
            x, y = decimate((came["time"].to_numpy() - start) / 1e9, came["delay"].to_numpy() / 1e6)
            if len(x):
                lowest = min(lowest, float(y.min()))
                name = f"{numbers[0]}: {ways[0].endpoint} and {ways[1].endpoint}"
                points.append(Points(name, x, y, style(place).color, size=3.0))
            lost = mine.filter(mine["delay"].is_null())
            lost_x.append((lost["time"].to_numpy() - start) / 1e9)
        gone = np.concatenate(lost_x) if lost_x else np.empty(0)
        if len(gone) and np.isfinite(lowest):
            points.append(Points("lost", gone, np.full(len(gone), lowest), COLORS[1], "cross", 5.0))
        panels.append(Panel(title, "ms", points=tuple(points), height=1.4, zero=False))
    drawn = tuple(panel for panel in panels if panel.points)
    notes = (
        f"{clock_words(ends)[0].upper()}{clock_words(ends)[1:]}.",
        "Crosses at the bottom: lost packets, at the time they were sent.",
    )
    return Figure("delay", "One-way delay", "Time (s)", drawn, notes=notes)
