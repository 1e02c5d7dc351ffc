"""From a file, a text or Python data to a scenario and its plan; every mistake is reported at once."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .errors import ScenarioError, ScenarioErrors
from .plain_data import plain

if TYPE_CHECKING:
    from tcplab._core import Document
    from tcplab.plan.types import Plan

MAX_BYTES = 1 << 20
"""A scenario's file is no longer."""

Known = tuple[str, list[tuple[str, float, float, str]]]
"""A control's name in messages, and of each parameter its name, minimum, maximum, and its range in words."""


class Controls(Protocol):
    """The language's questions about congestion controls; `tcplab.testbed.known_controls` answers them."""

    def known(self, name: str, folder: Path) -> Known | str | bool | None:
        """Describe the control of this name, or in this C file of the scenario's folder.

        None: there is none; True: there is one; a text: why it is not one, after its name.
        """

    def names(self) -> list[str]:
        """The names to suggest."""


@dataclass(frozen=True)
class Scenario:
    """A scenario that was read and found right, its overrides applied."""

    name: str
    description: str
    document: Document
    base: Path
    """The directory that files named in it are relative to."""
    sets: tuple[str, ...]
    controls: Controls | None
    """The controls that it was checked against; None: it was not."""
    plan_json: str

    def checked(self, controls: Controls) -> Scenario:
        """The same with its controls checked, if they were not; raises ScenarioErrors."""
        if self.controls is not None:
            return self
        return from_document(self.document, self.base, self.sets, controls)

    def located(self, where: str, message: str) -> ScenarioError | None:
        """A mistake at what a place in its plan, such as `flows.bulk.cc`, comes from, if it does."""
        return self.document.located(where, message, list(self.sets))


def load(source: str | Path, sets: Sequence[str] = (), controls: Controls | None = None) -> Scenario:
    """The scenario in a file (a path) or a YAML text (a str with a line break), with overrides applied.

    Files that it names are relative to the scenario's directory, or to the working directory for a text.
    Controls are checked against `controls`, if given. Raises `ScenarioErrors` with every mistake found.
    """
    if isinstance(source, str) and "\n" in source:
        return from_document(read_text(source, "<text>"), Path(), sets, controls)
    return from_document(read(source), Path(source).parent, sets, controls)


def from_data(
    data: Mapping[str, Any],
    base: Path | None = None,
    sets: Sequence[str] = (),
    controls: Controls | None = None,
) -> Scenario:
    """The scenario in Python data of the same shape; named files are relative to `base`.

    Raises `ScenarioErrors`, whose errors have no line.
    """
    from tcplab._core import Document

    try:
        document = Document.of(plain(data), "scenario")
    except ValueError as problem:
        raise ScenarioErrors.of_file("scenario", str(problem)) from None
    return from_document(document, base or Path(), sets, controls)


def from_document(
    document: Document, base: Path, sets: Sequence[str] = (), controls: Controls | None = None
) -> Scenario:
    """The scenario in a document; named files are relative to `base`. Raises `ScenarioErrors`."""
    plan = document.plan(base, list(sets), controls)
    for warning in document.renamed_keys(list(sets)):
        _warn_once(warning)
    named = json.loads(plan)
    return Scenario(named["name"], named["description"], document, base, tuple(sets), controls, plan)


@cache
def _warn_once(text: str) -> None:
    """Log a warning, once however often the scenario is read: a study reads it for each cell."""
    logging.getLogger("tcplab.scenario").warning("%s", text)


def read(file: str | Path) -> Document:
    """The document in a YAML file; raises `ScenarioErrors`."""
    try:
        with Path(file).open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        raise unreadable(file, problem) from None
    return read_text(text, str(file))


def unreadable(file: object, problem: OSError | ValueError) -> ScenarioErrors:
    """The error of a file that cannot be read."""
    reason = str(getattr(problem, "strerror", None) or problem)
    is_missing = isinstance(problem, FileNotFoundError)
    return ScenarioErrors.of_file(file, reason if is_missing else f"cannot be read: {reason}")


def read_text(text: str | bytes, name: str) -> Document:
    """The document of a YAML text that messages call `name`; raises `ScenarioErrors`."""
    from tcplab._core import Document

    # Surrogates, which UTF-8 cannot encode, are rejected like any other invalid byte.
    return Document(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"), name)


def declares_scenario(text: bytes) -> bool:
    """Whether a file says that it is a scenario, by its key `tcplab`; messages quote no other file."""
    return re.search(rb"""^[\s{]*["']?tcplab["']?\s*:""", text, re.MULTILINE) is not None


def expand(scenario: Scenario) -> Plan:
    """The plan: every default filled in, every shorthand expanded, base units."""
    plan: Plan = json.loads(scenario.plan_json)
    return plan
