"""`--set PATH=VALUE`: settings changed from the command line.

A path is keys joined by dots. An item of a list is named by its `name` or its number from 0, a link also
by its ends (`a-b`). The value is read as YAML, so that it is written as in the file.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from .document import Document, Entry, Mark, Node, Path, Source, item_name, read
from .errors import ScenarioError, ScenarioErrors
from .quantity import show

# The key that a short form gives, so that `--set flows.bulk.cc.beta=0.8` works on `cc: cubic`.
_SHORT_FORMS = {
    "queue": "limit",
    "loss": "rate",
    "corrupt": "rate",
    "duplicate": "rate",
    "reorder": "rate",
    "jitter": "amount",
    "cc": "name",
    "capture": "what",
}


def apply(document: Document, sets: list[str]) -> tuple[Document, list[ScenarioError]]:
    """The document with each override in its place, and those that could not be placed."""
    errors: list[ScenarioError] = []
    root = document.root
    for text in sets:
        try:
            root = _apply_one(root, text)
        except ScenarioErrors as refused:
            errors += refused.errors
    return Document(root), errors


@dataclass(frozen=True)
class _Override:
    source: Source
    keys: list[tuple[str, Mark]]
    value: Node

    def error(self, depth: int, message: str, suggestion: str = "") -> ScenarioErrors:
        dotted = ".".join(key for key, _ in self.keys[: depth + 1])
        key, mark = self.keys[depth]
        return ScenarioErrors([mark.error(dotted, key, message, suggestion)])


def _apply_one(root: Node, text: str) -> Node:
    override = _parse(text)
    return _replaced(root, override, 0, ())


def _parse(text: str) -> _Override:
    source = Source.of("--set", text)
    path, equals, value = text.partition("=")
    if not equals:
        mark = Mark(source, 1, 1, max(1, len(text)))
        raise ScenarioErrors([mark.error("", text, f"{show(text)} has no `=`", f"{text}=VALUE")])
    keys: list[tuple[str, Mark]] = []
    column = 1
    for key in path.split("."):
        keys.append((key.strip(), Mark(source, 1, column, max(1, len(key)))))
        if not key.strip():
            raise ScenarioErrors([keys[-1][1].error(path, "", "a key is missing in the path")])
        column += len(key) + 1
    if not value.strip():
        mark = Mark(source, 1, len(text))
        raise ScenarioErrors([mark.error(path, "", f"{show(text)} has no value")])
    try:
        node = read(value, "--set").root
    except ScenarioErrors as refused:
        moved = [_moved(error, source, len(path) + 1) for error in refused.errors]
        raise ScenarioErrors(moved) from None
    return _Override(source, keys, _moved_node(node, source, len(path) + 1))


def _moved(error: ScenarioError, source: Source, by: int) -> ScenarioError:
    column = error.column + by if error.line <= 1 else error.column
    return replace(error, line=1, column=column, source=source.line(1))


def _moved_node(node: Node, source: Source, by: int) -> Node:
    """The node as it stands in the whole override, not in its value alone."""

    def moved(mark: Mark) -> Mark:
        return Mark(source, mark.line, mark.column + (by if mark.line == 1 else 0), mark.width)

    value = node.value
    if isinstance(value, dict):
        value = {
            key: Entry(moved(entry.key), _moved_node(entry.value, source, by)) for key, entry in value.items()
        }
    elif isinstance(value, list):
        value = [_moved_node(item, source, by) for item in value]
    return Node(moved(node.mark), value, node.written)


def _replaced(node: Node, override: _Override, depth: int, path: Path) -> Node:
    """A copy of the node with the override below it; anchored nodes are shared and so never changed."""
    if depth == len(override.keys):
        return override.value
    key, mark = override.keys[depth]
    if isinstance(node.value, list):
        index = _item(node, override, depth, path)
        items = list(node.value)
        items[index] = _replaced(items[index], override, depth + 1, (*path, index))
        return replace(node, value=items)
    if isinstance(node.value, dict):
        entries = dict(node.value)
        old = entries.get(key)
        below = old.value if old else Node(mark, {})
        if not isinstance(below.value, dict | list) and depth + 1 < len(override.keys):
            below = _long_form(key, below)
        place = mark if old is None or depth + 1 == len(override.keys) else old.key
        entries[key] = Entry(place, _replaced(below, override, depth + 1, (*path, key)))
        return replace(node, value=entries)
    raise override.error(
        depth, f"{show(override.keys[depth - 1][0])} is a value, with no {show(key)} below it"
    )


def _long_form(key: str, node: Node) -> Node:
    """A short form written out; anything else stays as it is."""
    if key not in _SHORT_FORMS or node.value is None:
        return node
    return Node(node.mark, {_SHORT_FORMS[key]: Entry(node.mark, node)})


def _item(node: Node, override: _Override, depth: int, path: Path) -> int:
    key = override.keys[depth][0]
    names = [_names(item, path) for item in node.value]
    for index, known in enumerate(names):
        if key in known:
            return index
    if key.isascii() and key.isdigit() and int(key[:9]) < len(node.value):
        return int(key[:9])
    every = [name for known in names for name in known]
    near = next(iter(difflib.get_close_matches(key, every, n=1, cutoff=0.4)), every[0] if every else "")
    what = str(path[-1]).removesuffix("s") if path else "item"
    raise override.error(depth, f"there is no {what} {show(key)}", near)


def _names(item: Node, path: Path) -> list[str]:
    name = item_name(item)
    if name is not None:
        return [name]
    if path[-1:] == ("links",) and isinstance(item.value, dict) and "ends" in item.value:
        ends = item.value["ends"].value.value
        if isinstance(ends, list):
            return ["-".join(str(end.value) for end in ends)]
    return []
