"""Reading a scenario: text, overrides, structure, sense; all mistakes are reported together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from . import overrides, structure
from .check import check
from .document import Document, Entry, Mark, Node, Path, Source, read
from .errors import ScenarioError, ScenarioErrors
from .layout import Layout
from .model import Scenario
from .quantity import show
from .repair import Repair
from .structure import Mistake

# What else is wrong with a scenario; at the paths that were refused before something else stands in.
Check = Callable[[Scenario, Iterable[Path]], Iterable[ScenarioError]]
# Each round leaves out what was refused; more rounds than this find nothing new.
_ROUNDS = 12


def load(source: str | File, sets: Sequence[str] = (), checks: Sequence[Check] = ()) -> Scenario:
    """The scenario in a file (a path) or a YAML text (a str with a line break), with overrides applied.

    Files that it names are relative to the scenario's directory, or to the working directory for a text.
    `checks` find mistakes that only other parts of the program know, for the same report.
    Raises `ScenarioErrors` with every mistake found.
    """
    if isinstance(source, str) and "\n" in source:
        return _scenario(read(source, "<text>"), File(), sets, checks)
    file = File(source)
    try:
        with file.open("rb") as stream:
            text = stream.read((1 << 20) + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ScenarioErrors(
            [ScenarioError(str(source), 0, 0, "", "", f"cannot be read: {reason}")]
        ) from None
    except ValueError as error:
        raise ScenarioErrors([ScenarioError(str(source), 0, 0, "", "", f"cannot be read: {error}")]) from None
    return _scenario(read(text, str(source)), file.parent, sets, checks)


def from_data(
    data: Mapping[str, Any],
    base: File | None = None,
    sets: Sequence[str] = (),
    checks: Sequence[Check] = (),
) -> Scenario:
    """The scenario in Python data of the same shape; named files are relative to `base`.

    Raises `ScenarioErrors`, whose errors have no line.
    """
    nothing = Mark(Source.of("scenario", ""), 0, 0)
    return _scenario(Document(_node(dict(data), nothing)), base or File(), sets, checks)


def _node(data: Any, mark: Mark) -> Node:
    if isinstance(data, Mapping):
        return Node(mark, {str(key): Entry(mark, _node(value, mark)) for key, value in data.items()})
    if isinstance(data, list | tuple):
        return Node(mark, [_node(value, mark) for value in data])
    return Node(mark, data, str(data))


def from_document(
    document: Document, base: File, sets: Sequence[str] = (), checks: Sequence[Check] = ()
) -> Scenario:
    """The scenario of a text that is read already; the files it names are relative to `base`.

    Raises `ScenarioErrors`.
    """
    return _scenario(document, base, sets, checks)


_A_STUDY = "this is a study, not a scenario: `tcplab study FILE` runs it, `tcplab check FILE` checks it"


def _scenario(document: Document, base: File, sets: Sequence[str], checks: Sequence[Check]) -> Scenario:
    if "study" in (document.root.value if isinstance(document.root.value, dict) else ()):
        raise ScenarioErrors([document.error(("study",), _A_STUDY, at_key=True)])
    document, found = overrides.apply(document, list(sets))
    empty = _empty(document.root, ())
    repair = Repair(document)
    scenario: Scenario | None = None
    for turn in range(_ROUNDS):
        try:
            scenario = Scenario.model_validate(repair.document.root.plain())
            mistakes = []
        except ValidationError as error:
            mistakes = structure.errors(error, repair.document)
        if turn == 0 and empty:
            mistakes = _with_empty(mistakes, empty, document)
        if not mistakes:
            break
        found += [mistake.error for mistake in mistakes if not repair.caused(mistake.path)]
        scenario = None
        if not repair.apply([mistake.path for mistake in mistakes]):
            break
    if scenario is not None:
        scenario.read_from(repair.document, base)
        found += check(Layout(scenario), repair.refused)
        found += [error for more in checks for error in more(scenario, repair.refused)]
    if found or scenario is None:
        raise ScenarioErrors(found)
    return scenario


def _with_empty(mistakes: list[Mistake], empty: list[Path], document: Document) -> list[Mistake]:
    """The mistakes, where a key without a value is one of its own unless the key is unknown anyway."""
    unknown = {mistake.path for mistake in mistakes if mistake.unknown_key}
    told = [mistake for mistake in mistakes if mistake.path not in empty or mistake.unknown_key]
    for path in empty:
        if path not in unknown:
            told.append(Mistake(path, document.error(path, f"{show(path[-1])} has no value", at_key=True)))
    return told


def _empty(node: Node, path: Path) -> list[Path]:
    """Keys and items without a value."""
    if isinstance(node.value, dict):
        return [p for key, entry in node.value.items() for p in _empty(entry.value, (*path, key))]
    if isinstance(node.value, list):
        return [p for index, item in enumerate(node.value) for p in _empty(item, (*path, index))]
    return [path] if node.value is None and path else []
