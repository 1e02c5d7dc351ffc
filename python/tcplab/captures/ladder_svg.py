"""The flow graph as SVG, for papers and pages."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from tcplab.captures.ladder import Ladder, Rung

_LEFT, _SPAN, _MIN_RIGHT = 96, 420, 60
# Room that a letter of a note takes at most, px.
_LETTER = 5.6
# And of an address.
_BOLD = 6.6
_ROW, _TOP, _BOTTOM = 24, 58, 22
_FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Colors:
    """Those of a graph."""

    paper: str
    ink: str
    faint: str
    again: str


LIGHT = Colors(paper="#ffffff", ink="#222222", faint="#6b6b6b", again="#c04f00")
DARK = Colors(paper="#191e26", ink="#e4e8ee", faint="#9aa5b4", again="#ff9a52")


def svg(ladder: Ladder, colors: Colors = LIGHT) -> str:
    """The graph: time on the left, an arrow per packet, remarks on the right."""
    rows = len(ladder.rungs) + (1 if ladder.left_out else 0)
    longest = max((len(rung.note.strip()) for rung in ladder.rungs), default=0)
    right = max(_MIN_RIGHT, round(20 + _LETTER * longest))
    width, height = _LEFT + _SPAN + right, _TOP + rows * _ROW + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="11" fill="{colors.ink}">',
        f'<rect width="{width}" height="{height}" fill="{colors.paper}"/>',
        _heads(ladder, width, colors),
    ]
    end = height - _BOTTOM + 6
    for x in (_LEFT, _LEFT + _SPAN):
        parts.append(f'<line x1="{x}" y1="{_TOP - 14}" x2="{x}" y2="{end}" stroke="{colors.faint}"/>')
    row = 0
    for place, rung in enumerate(ladder.rungs):
        if ladder.left_out and place == ladder.break_at:
            y = _TOP + row * _ROW + _ROW / 2
            parts.append(
                f'<text x="{_LEFT + _SPAN / 2}" y="{y}" text-anchor="middle" fill="{colors.faint}" '
                f'font-style="italic">{ladder.left_out} packets left out</text>'
            )
            row += 1
        parts.append(_rung(rung, _TOP + row * _ROW + _ROW / 2, colors))
        row += 1
    parts.append("</svg>\n")
    return "\n".join(parts)


def _heads(ladder: Ladder, width: int, colors: Colors) -> str:
    names = [half.endpoint for half in ladder.flow.halves]
    left, right = map(escape, names)
    # Above the lines of the two hosts, as far as long addresses leave room.
    halves = [_BOLD * len(name) / 2 + 6 for name in names]
    left_x, right_x = max(_LEFT, halves[0]), min(_LEFT + _SPAN, width - halves[1])
    y = _TOP - 22
    return (
        f'<text x="{_LEFT - 10}" y="{y + 18}" text-anchor="end" fill="{colors.faint}">time (s)</text>\n'
        f'<text x="{left_x:g}" y="{y}" text-anchor="middle" font-weight="bold">{left}</text>\n'
        f'<text x="{right_x:g}" y="{y}" text-anchor="middle" font-weight="bold">{right}</text>'
    )


def _rung(rung: Rung, y: float, colors: Colors) -> str:
    color = colors.again if rung.again else colors.ink
    start, end = (_LEFT + _SPAN, _LEFT) if rung.backward else (_LEFT, _LEFT + _SPAN)
    back = 7 if end < start else -7
    note = escape(rung.note.strip())
    aside = (
        f'<text x="{_LEFT + _SPAN + 10}" y="{y + 4:g}" fill="{colors.again if rung.again else colors.faint}" '
        f'font-size="10">{note}</text>'
        if note
        else ""
    )
    return (
        f'<text x="{_LEFT - 10}" y="{y + 4:g}" text-anchor="end" fill="{colors.faint}" font-size="10">'
        f"{rung.time / 1e9:.6f}</text>"
        f'<line x1="{start}" y1="{y:g}" x2="{end + back * 0.7:g}" y2="{y:g}" stroke="{color}"/>'
        f'<path d="M{end},{y:g} l{back},-3.5 v7 z" fill="{color}"/>'
        f'<text x="{_LEFT + _SPAN / 2:g}" y="{y - 4:g}" text-anchor="middle" fill="{color}">'
        f"{escape(rung.words)}</text>{aside}"
    )
