"""`tcplab calc`: what theory says of a path."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli.failure import Code, CommandError, guarded
from tcplab.cli.options import Json

if TYPE_CHECKING:
    from tcplab.analysis.laws.answer import Line

EXAMPLE = "tcplab calc --rate 100M --rtt 550ms --loss 1e-5 --window 64K --streams 4"

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
# `100M` as iperf3 has it, and the units of scenarios; never a bare number. Case does not matter.
_RATES = {
    prefix + unit: scale
    for prefix, scale in _PREFIXES.items()
    for unit in ("", "bit", "bit/s", "bps")
    if prefix + unit
}
_BYTES_PER_SECOND = re.compile(r"([KkMmGgTt]?)(?:B|[Bb]ytes?)(?:ps|/s)")
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
# As iperf3 has it, whose users write `-w 64K`: K is 1024; so is Ki. As scenarios and the answer: kB is 1000.
_SIZES = {"b": 1.0} | {
    prefix + unit: base**power
    for power, prefix in enumerate("kmg", start=1)
    for base, units in ((1024.0, ("", "i", "ib")), (1000.0, ("b",)))
    for unit in units
}
_QUANTITY = re.compile(r"\s*([0-9.]+(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)\s*")


@guarded
def calc(
    rate: Annotated[str, typer.Option(metavar="RATE", help="Rate of the bottleneck: 100M, 1 Gbit/s.")],
    rtt: Annotated[str, typer.Option(metavar="TIME", help="Round-trip time: 550ms.")],
    loss: Annotated[str, typer.Option(metavar="PROBABILITY", help="Random loss: 1e-5, 0.1 %.")] = "0",
    mss: Annotated[
        int,
        typer.Option(min=100, max=65495, help="Maximum segment size in bytes; timestamps take 12 of them."),
    ] = 1460,
    window: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Window of each stream: 64K (64 KiB), 64 kB. [default: no limit]"),
    ] = None,
    streams: Annotated[int, typer.Option(min=1, max=100_000, help="Parallel streams.")] = 1,
    json: Json = False,
) -> None:
    """Compute the limits of TCP on a path: window, loss and recovery.

    Prints the window that the path needs, the throughput by window and loss, and the time to fill the path
    and to recover from a loss.
    """
    from tcplab.analysis.laws import Path
    from tcplab.analysis.laws.answer import answer
    from tcplab.cli.output import say, say_json, table

    path = Path(
        _rate(rate),
        _positive("--rtt", rtt, _TIMES, "10ms or 10 ms"),
        _loss(loss),
        mss,
    )
    size = None if window is None else _positive("--window", window, _SIZES, "64K or 65536 B")
    lines = answer(path, window=size, streams=streams)
    if json:
        say_json({line.key: {"value": line.value, "unit": line.unit} for line in lines})
        return
    table(
        ["figure", "value", "formula", "source"],
        [[line.label, _text(line), line.formula, line.source] for line in lines],
        right=["value"],
    )
    say()
    for sentence in _reading(lines, streams):
        say(sentence)


def _rate(text: str) -> float:
    value, unit = _split("--rate", text, "100M or 100 Mbit/s")
    # Of a unit only this letter's case matters: 10 MBps are eight times 10 Mbps.
    if bytes_unit := _BYTES_PER_SECOND.fullmatch(unit):
        from tcplab.quantities import rate_text

        bits = rate_text(8 * value * _PREFIXES[bytes_unit.group(1).lower()])
        raise CommandError(f"--rate {text}: a rate is in bits per second; write {bits}", Code.INPUT)
    return _positive("--rate", text, _RATES, "100M or 100 Mbit/s")


def _loss(text: str) -> float:
    value, unit = _split("--loss", text, "1e-5")
    share = value / 100 if unit == "%" else value
    if unit not in ("", "%") or not 0 <= share < 1:
        raise CommandError(f"--loss {text}: a share from 0 to below 1, such as 1e-5 or 0.1 %", Code.INPUT)
    return share


def _positive(option: str, text: str, units: dict[str, float], example: str) -> float:
    value, unit = _split(option, text, example)
    if not unit:
        raise CommandError(f"{option} {text}: the number has no unit; write {example}", Code.INPUT)
    known = units.get(unit.lower())
    if known is None:
        raise CommandError(f"{option} {text}: not understood; write {example}", Code.INPUT)
    if not 0 < value * known < 1e18:
        reason = "is too large" if value else "must be more than zero"
        raise CommandError(f"{option} {text}: {reason}", Code.INPUT)
    return value * known


def _split(option: str, text: str, example: str) -> tuple[float, str]:
    found = _QUANTITY.fullmatch(text)
    try:
        if found is not None:
            return float(found.group(1)), found.group(2)
    except ValueError:
        pass
    raise CommandError(f"{option} {text}: not understood; write {example}", Code.INPUT)


def _text(line: Line) -> str:
    from tcplab.quantities import bytes_text, rate_text, time_text

    if not math.isfinite(line.value):
        return "no limit"
    match line.unit:
        case "bit/s":
            return rate_text(float(f"{line.value:.4g}"))
        case "s":
            return time_text(float(f"{line.value * 1e9:.4g}"))
        case "B":
            return bytes_text(float(f"{line.value:.4g}"))
        case _:
            return f"{line.value:,.0f}" if line.value >= 100 else f"{line.value:.3g}"


def _reading(lines: list[Line], streams: int) -> list[str]:
    """The limit of the flows, by the lowest of the laws."""
    by_key = {line.key: line for line in lines}
    link = by_key["link"].value
    said = []
    who = "one stream" if streams == 1 else f"{streams} streams"
    for control, law in (("Reno", "pftk"), ("CUBIC", "cubic")):
        limits = {"the link": link}
        if law in by_key:
            limits["loss"] = by_key[law].value
        if "window" in by_key:
            limits["the window"] = by_key["window"].value
        cause = min(limits, key=lambda name: limits[name])
        share = limits[cause] / link
        said.append(f"{control}, {who}: limited by {cause}, {100 * share:.1f} % of what the link allows.")
    return said
