"""Colours and line styles that colour-blind readers can tell apart.

The colours are those of Okabe and Ito (2008), without the yellow, which is too faint for a
line on white. A grey takes the place of black, so that the last one shows on a dark page too.
"""

from __future__ import annotations

from dataclasses import dataclass

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class Style:
    """How a line is drawn."""

    color: str
    dash: str = "solid"


def style(index: int) -> Style:
    """The style of the index-th flow: all colours first, then all colours dashed, and so on."""
    return Style(COLORS[index % len(COLORS)], DASHES[index // len(COLORS) % len(DASHES)])
