"""Topologies that other tools have written, as scenarios: MiniEdit's `.mn` and containerlab's `.clab.yml`.

What a scenario cannot say is named, not dropped in silence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tcplab.topologies import containerlab, miniedit
from tcplab.topologies.imported import Imported, UnreadableError

__all__ = ["Imported", "UnreadableError", "read", "read_text"]


def read(path: Path) -> Imported:
    """The scenario of a file, by the file's ending; raises OSError and UnreadableError."""
    return read_text(path.read_text(encoding="utf-8", errors="replace"), path.name)


def read_text(text: str, name: str) -> Imported:
    """The scenario of a text, by the ending of its file's name; raises UnreadableError."""
    path = Path(name)
    if path.suffix == ".mn":
        found = miniedit.read(text, path.stem)
    elif path.suffixes[-2:] in ([".clab", ".yml"], [".clab", ".yaml"]):
        found = containerlab.read(text)
    else:
        raise UnreadableError("the ending says neither MiniEdit (.mn) nor containerlab (.clab.yml)")
    if found.links and not any(_has_delay(link) for link in found.links):
        found.notes.append("no link has a delay: set `delay`, or round trips take next to no time")
    return found


def _has_delay(link: dict[str, Any]) -> bool:
    return any("delay" in settings for settings in (link, link.get("forward", {}), link.get("reverse", {})))
