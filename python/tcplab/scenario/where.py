"""Where in its file a part of a scenario stands."""

from __future__ import annotations

from . import quantity
from .document import Document, Node, Path
from .errors import ScenarioError
from .model import Scenario
from .quantity import QuantityError


class Where:
    """Locates paths of the model in the scenario's text, if there is one."""

    def __init__(self, scenario: Scenario) -> None:
        self.document = scenario.document

    def error(self, path: Path, message: str, suggestion: str = "", *, at_key: bool = False) -> ScenarioError:
        """A mistake at `path`."""
        if self.document is None:
            dotted = ".".join(str(step) for step in path)
            return ScenarioError("scenario", 0, 0, dotted, "", message, suggestion)
        return self.document.error(written(self.document, path), message, suggestion, at_key=at_key)


def written(document: Document, path: Path) -> Path:
    """The path as the text has it, where short forms and parsed keys differ from the model.

    A step that the text does not have is left out if the next one is there (`cc.params.beta` is written
    `cc.beta`), and a time in ns finds the key that says it (`20 s`).
    """
    found: Path = ()
    for index, step in enumerate(path):
        node = document.node(found)
        if document.node((*found, step)) is not None:
            found = (*found, step)
        elif isinstance(step, int) and node is not None and isinstance(node.value, dict):
            key = _time_key(node, step)
            if key is None:
                return found
            found = (*found, key)
        elif index + 1 < len(path) and document.node((*found, path[index + 1])) is not None:
            continue
        else:
            return (*found, step) if index + 1 == len(path) and _holds_keys(node) else found
    return found


def _holds_keys(node: Node | None) -> bool:
    return node is not None and isinstance(node.value, dict)


def _time_key(node: Node, time: int) -> str | None:
    for key in node.value:
        try:
            if quantity.time(key) == time:
                return str(key)
        except QuantityError:
            continue
    return None
