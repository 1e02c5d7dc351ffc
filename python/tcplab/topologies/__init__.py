"""Topologies that other tools have written, as scenarios: MiniEdit's `.mn` and containerlab's `.clab.yml`.

What a scenario cannot say is named, not dropped in silence.
"""

from __future__ import annotations

from pathlib import Path

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
        return miniedit.read(text, path.stem)
    if path.suffixes[-2:] in ([".clab", ".yml"], [".clab", ".yaml"]):
        return containerlab.read(text)
    raise UnreadableError("the ending says neither MiniEdit (.mn) nor containerlab (.clab.yml)")
