"""A YAML text as plain data that remembers where each value stood.

Values are built from the parser's events, so that every key and value keeps its line and column, and so
that what a hostile file can cost is bounded: size, depth and number of values are limited, aliases
count with all they contain, and only the scalars of YAML 1.2's core schema exist (no tags).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from .errors import ScenarioError, ScenarioErrors
from .quantity import show

MAX_BYTES = 1 << 20
MAX_DEPTH = 24
MAX_VALUES = 100_000

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the scenario."""


@dataclass(frozen=True, eq=False)
class Source:
    """A text and what it is called in messages."""

    name: str
    text: str
    lines: list[str] = field(default_factory=list)

    def line(self, number: int) -> str:
        """Line `number`, counted from 1, or an empty text."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @staticmethod
    def of(name: str, text: str) -> Source:
        """A source with its lines split as YAML splits them."""
        return Source(name, text, re.split(r"\r\n|[\r\n\x85\u2028\u2029]", text))


@dataclass(frozen=True)
class Mark:
    """A stretch of a source; line and column count from 1."""

    source: Source
    line: int
    column: int
    width: int = 1

    def error(self, path: str, value: str, message: str, suggestion: str = "") -> ScenarioError:
        """A mistake found here."""
        line = self.source.line(self.line)
        return ScenarioError(
            self.source.name, self.line, self.column, path, value, message, suggestion, line, self.width
        )


@dataclass(frozen=True)
class Entry:
    """A key's place and its value."""

    key: Mark
    value: Node


@dataclass(frozen=True)
class Node:
    """A scalar (str, int, float, bool or None), a list of nodes, or a mapping of entries."""

    mark: Mark
    value: Any
    written: str = ""
    """A scalar as written."""

    def plain(self) -> Any:
        """The value without positions."""
        if isinstance(self.value, dict):
            return {key: entry.value.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def count(self) -> int:
        """How many values it holds, itself included."""
        if isinstance(self.value, dict):
            children = [entry.value for entry in self.value.values()]
        else:
            children = self.value if isinstance(self.value, list) else []
        counts: list[int] = [child.count() for child in children]
        return 1 + sum(counts)


@dataclass(frozen=True)
class Document:
    """A scenario's text, read."""

    root: Node

    def node(self, path: Path) -> Node | None:
        """The value at `path`, if it is there."""
        node = self.root
        for step in path:
            child = _child(node, step)
            if child is None:
                return None
            node = child
        return node

    def known(self, path: Path) -> Path:
        """The longest beginning of `path` that exists."""
        node = self.root
        for depth, step in enumerate(path):
            child = _child(node, step)
            if child is None:
                return path[:depth]
            node = child
        return path

    def value_mark(self, path: Path) -> Mark:
        """Where the value at `path` stands, or the nearest value around it."""
        node = self.node(self.known(path))
        return (node or self.root).mark

    def key_mark(self, path: Path) -> Mark:
        """Where the key of `path` stands; for a list item, the item."""
        path = self.known(path)
        if not path:
            return self.root.mark
        parent = self.node(path[:-1])
        if parent is not None and isinstance(parent.value, dict):
            mark: Mark = parent.value[path[-1]].key
            return mark
        return self.value_mark(path)

    def dotted(self, path: Path) -> str:
        """The path as a person writes it: list items by their name where they have one."""
        parts: list[str] = []
        for depth, step in enumerate(path):
            if isinstance(step, int):
                node = self.node(path[: depth + 1])
                parts.append(item_name(node) or str(step) if node else str(step))
            else:
                parts.append(step)
        return ".".join(parts)

    def error(self, path: Path, message: str, suggestion: str = "", *, at_key: bool = False) -> ScenarioError:
        """A mistake at `path`: at its value, or at its key where it concerns a whole mapping or list."""
        node = self.node(path)
        whole = node is not None and isinstance(node.value, dict | list)
        mark = self.key_mark(path) if at_key or whole else self.value_mark(path)
        return mark.error(self.dotted(path), node.written if node else "", message, suggestion)


def item_name(node: Node) -> str | None:
    """The name of a list item: its `name`, or itself when it is a text."""
    if isinstance(node.value, str):
        return node.value
    if isinstance(node.value, dict) and "name" in node.value:
        name = node.value["name"].value.value
        return name if isinstance(name, str) and name else None
    return None


def declares_scenario(text: bytes) -> bool:
    """Whether a file says that it is a scenario, by its key `tcplab`; messages quote no other file."""
    return re.search(rb"""^[\s{]*["']?tcplab["']?\s*:""", text, re.MULTILINE) is not None


def read(text: str | bytes, name: str) -> Document:
    """The document of a YAML text called `name`; raises `ScenarioErrors`."""
    if len(text) > MAX_BYTES:
        message = f"the file has {len(text)} bytes; a scenario has at most {MAX_BYTES}"
        raise ScenarioErrors([ScenarioError(name, 0, 0, "", "", message)])
    if isinstance(text, bytes):
        text = _decoded(text, name)
    source = Source.of(name, text)
    builder = _Builder(source)
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    try:
        root = builder.document(yaml.parse(text))
    except MarkedYAMLError as error:
        raise ScenarioErrors([*builder.errors, _syntax_error(source, error)]) from None
    except (YAMLError, ValueError, RecursionError) as error:
        # The reader refuses control characters without a line; the scanner overflows on odd numbers.
        message = str(error).splitlines()[0] if str(error) else "cannot be read"
        raise ScenarioErrors([*builder.errors, _position_error(source, error, message)]) from None
    except _TooMuch:
        raise ScenarioErrors(builder.errors) from None
    if builder.errors:
        raise ScenarioErrors(builder.errors)
    return Document(root)


def _decoded(text: bytes, name: str) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        message = f"byte {text[error.start]:#04x} is not UTF-8"
        raise ScenarioErrors([ScenarioError(name, line, column, "", "", message)]) from None


class _TooMuch(Exception):  # noqa: N818 - a signal: the error itself is in the builder
    """The text is larger than allowed once read; reading stops."""


class _Builder:
    """Builds nodes from events."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.errors: list[ScenarioError] = []
        self.anchors: dict[str, Node] = {}
        self.values = 0

    def document(self, events: Iterator[Event]) -> Node:
        """The first document; a second one is an error."""
        root: Node | None = None
        for event in events:
            if isinstance(event, StreamEndEvent):
                break
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    self._refuse(self._mark(event), "a second document; a scenario file holds one")
                    raise _TooMuch
                root = self._node(next(events), events, 0)
        if root is None:
            self._refuse(Mark(self.source, 1, 1), "the file is empty", "tcplab: 1")
            raise _TooMuch
        return root

    def _node(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        self.values += 1
        mark = self._mark(event)
        if self.values > MAX_VALUES:
            self._stop(mark, f"more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            self._stop(mark, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, AliasEvent):
            return self._alias(event, mark)
        tag = getattr(event, "tag", None)
        if tag is not None and str(tag) not in ("", "!"):
            shown = str(tag).replace("tag:yaml.org,2002:", "!!")
            self._refuse(mark, f"the tag {show(shown)} has no meaning here")
        if isinstance(event, ScalarEvent):
            node = _scalar(event, mark)
        elif isinstance(event, SequenceStartEvent):
            node = Node(mark, self._sequence(events, depth))
        elif isinstance(event, MappingStartEvent):
            node = Node(mark, self._mapping(events, depth))
        else:
            self._stop(mark, "cannot be read")
        anchor = getattr(event, "anchor", None)
        if anchor:
            self.anchors[str(anchor)] = node
        return node

    def _alias(self, event: AliasEvent, mark: Mark) -> Node:
        node = self.anchors.get(str(event.anchor))
        if node is None:
            self._refuse(mark, f"the anchor `{event.anchor}` is not defined above")
            return Node(mark, None)
        self.values += node.count()
        if self.values > MAX_VALUES:
            self._stop(mark, f"more than {MAX_VALUES} values once aliases are replaced")
        return node

    def _sequence(self, events: Iterator[Event], depth: int) -> list[Node]:
        items: list[Node] = []
        for event in events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._node(event, events, depth + 1))
        return items

    def _mapping(self, events: Iterator[Event], depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[Node] = []
        for event in events:
            if isinstance(event, MappingEndEvent):
                break
            key = self._node(event, events, depth + 1)
            value = self._node(next(events), events, depth + 1)
            if isinstance(key.value, dict | list):
                self._refuse(key.mark, "a key must be a word or a quantity")
                continue
            # Keys stay as written: `at: {20: ...}` must be told that 20 has no unit.
            name = key.written
            if name == "<<" and isinstance(value.value, dict | list):
                merged += value.value if isinstance(value.value, list) else [value]
            elif name in entries:
                line = entries[name].key.line
                self._refuse(
                    key.mark, f"the key {show(name)} stands here a second time (first in line {line})"
                )
            else:
                entries[name] = Entry(key.mark, value)
        for node in merged:
            if isinstance(node.value, dict):
                entries = {**{k: v for k, v in node.value.items() if k not in entries}, **entries}
            else:
                self._refuse(node.mark, "only mappings can be merged with `<<`")
        return entries

    def _mark(self, event: Event) -> Mark:
        start, end = event.start_mark, event.end_mark
        scalar = isinstance(event, ScalarEvent | AliasEvent)
        width = end.column - start.column if scalar and end.line == start.line else 1
        return Mark(self.source, start.line + 1, start.column + 1, max(1, width))

    def _refuse(self, mark: Mark, message: str, suggestion: str = "") -> None:
        self.errors.append(mark.error("", "", message, suggestion))

    def _stop(self, mark: Mark, message: str) -> None:
        self._refuse(mark, message)
        raise _TooMuch


_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _scalar(event: ScalarEvent, mark: Mark) -> Node:
    """A scalar by YAML 1.2's core schema (section 10.3.2)."""
    text = str(event.value)
    if event.style is not None:
        return Node(mark, text, text)
    if text in _WORDS:
        return Node(mark, _WORDS[text], text)
    # Python refuses to convert integers of thousands of digits; such a text is no number here either.
    if len(text) <= 40:
        if _INT.fullmatch(text):
            return Node(mark, int(text), text)
        if _OCTAL.fullmatch(text):
            return Node(mark, int(text[2:], 8), text)
        if _HEX.fullmatch(text):
            return Node(mark, int(text[2:], 16), text)
        if _FLOAT.fullmatch(text):
            return Node(mark, float(text), text)
    return Node(mark, text, text)


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node.value, dict) and isinstance(step, str):
        entry = node.value.get(step)
        return entry.value if entry else None
    if isinstance(node.value, list) and isinstance(step, int) and 0 <= step < len(node.value):
        item: Node = node.value[step]
        return item
    return None


def _syntax_error(source: Source, error: MarkedYAMLError) -> ScenarioError:
    place = error.problem_mark or error.context_mark
    problem = " ".join(str(error.problem).split()) if error.problem else "cannot be read"
    message = f"not YAML: {problem}"
    if "'\\t'" in problem:
        message = "a tab cannot indent in YAML; use spaces"
    elif error.context:
        context = " ".join(str(error.context).split())
        begun = error.context_mark
        elsewhere = begun is not None and (place is None or begun.line != place.line)
        where = f" that begins in line {begun.line + 1}, column {begun.column + 1}" if elsewhere else ""
        message += f" ({context}{where})"
    if place is None:
        return Mark(source, 1, 1).error("", "", message)
    return Mark(source, place.line + 1, place.column + 1).error("", "", message)


def _position_error(source: Source, error: Exception, message: str) -> ScenarioError:
    position = getattr(error, "position", None)
    if not isinstance(position, int):
        return ScenarioError(source.name, 0, 0, "", "", f"not YAML: {message}")
    before = source.text[:position]
    line = before.count("\n") + 1
    return Mark(source, line, position - before.rfind("\n")).error("", "", f"not YAML: {message}")
