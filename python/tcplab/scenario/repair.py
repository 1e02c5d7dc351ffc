"""A document with what was refused left out, so that the rest of it can still be checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .document import Document, Entry, Node, Path

# What stands in for a refused value that may not be missing. Nothing is concluded from it.
_STAND_INS: dict[str, str | int | list[str]] = {
    "tcplab": 1,
    "name": "unnamed",
    "rate": "1 Gbit/s",
    "rtt": "1 s",
    "limit": "1000 packets",
    "amount": "1 ns",
    "p": "1 %",
    "r": "1 %",
    "on": "1 s",
    "off": "1 s",
    "request": "1 kB",
    "response": "1 kB",
    "ends": ["unnamed", "unnamed"],
}


def related(one: Path, other: Path) -> bool:
    """Whether one path lies at, above or below the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


class Repair:
    """Takes refused parts out of a document and remembers where."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.refused: list[Path] = []

    def caused(self, path: Path) -> bool:
        """Whether a mistake at `path` only follows from what was left out."""
        return any(related(path, other) for other in self.refused)

    def apply(self, paths: Iterable[Path]) -> bool:
        """Leave out what stands at `paths`; false if nothing would remain or nothing changes."""
        changed = False
        # From the end, so that the numbers of list items not yet visited stay valid.
        for path in sorted(set(paths), key=_order, reverse=True):
            if not path:
                return False
            again = path in self.refused
            root = _edited(self.document.root, path, stand_in=not again)
            changed = changed or root is not self.document.root
            self.document = Document(root)
            if isinstance(path[-1], int):
                self._renumber(path[:-1], path[-1])
            elif not again:
                self.refused.append(path)
        return changed

    def _renumber(self, items: Path, gone: int) -> None:
        """List items behind the one that is gone move up; `*` stands for one that is no more."""
        depth = len(items)
        moved: list[Path] = [(*items, "*")]
        for path in self.refused:
            if path[:depth] == items and len(path) > depth and isinstance(path[depth], int):
                number = int(path[depth])
                if number == gone:
                    continue
                path = (*items, number - (number > gone), *path[depth + 1 :])
            moved.append(path)
        self.refused = moved


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in path)


def _edited(node: Node, path: Path, *, stand_in: bool) -> Node:
    """A copy of the node without what stands at `path`, or with its stand-in."""
    step, rest = path[0], path[1:]
    if isinstance(node.value, dict) and isinstance(step, str):
        entries = dict(node.value)
        entry = entries.get(step)
        if rest and entry is not None:
            entries[step] = replace(entry, value=_edited(entry.value, rest, stand_in=stand_in))
        elif not rest and stand_in and step in _STAND_INS:
            mark = entry.value.mark if entry else node.mark
            entries[step] = Entry(entry.key if entry else mark, _stand_in(_STAND_INS[step], node))
        elif not rest and entry is not None:
            del entries[step]
        else:
            return node
        return replace(node, value=entries)
    if isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
        items = list(node.value)
        if rest:
            items[step] = _edited(items[step], rest, stand_in=stand_in)
        else:
            del items[step]
        return replace(node, value=items)
    return node


def _stand_in(value: str | int | list[str], around: Node) -> Node:
    if isinstance(value, list):
        return Node(around.mark, [_stand_in(item, around) for item in value])
    return Node(around.mark, value, str(value))
