"""From axes to cells: every combination that a study runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tcplab.scenario.plain_data import as_yaml

Labels = dict[str, str]
"""Axis name to the value's label; an axis that a cell leaves alone is absent."""


@dataclass(frozen=True)
class Value:
    """One value of an axis."""

    label: str
    settings: tuple[tuple[str, Any], ...]
    """Paths in the scenario and what they are set to."""


@dataclass(frozen=True)
class AxisValues:
    """One axis with its values in the order given."""

    name: str
    title: str
    values: tuple[Value, ...]

    def value(self, label: object) -> Value | None:
        """The value with this label."""
        wanted = label_of(label)
        return next((value for value in self.values if value.label == wanted), None)


@dataclass(frozen=True)
class Cell:
    """One combination of values, on one engine."""

    engine: str
    labels: Labels
    settings: tuple[tuple[str, Any], ...] = ()
    group: str = ""
    id: str = field(default="", compare=False)
    """Name of its directory: readable, unique in the study, the same whenever the values are the same."""

    @property
    def title(self) -> str:
        """As tables and messages name it."""
        return ", ".join(f"{axis} {label}" for axis, label in self.labels.items()) or "the unchanged scenario"

    def titled_without(self, axes: Container[str]) -> str:
        """Its title beside others that have the same values of these axes."""
        own = {axis: label for axis, label in self.labels.items() if axis not in axes}
        if len(own) == 1:
            return next(iter(own.values()))
        return ", ".join(f"{axis} {label}" for axis, label in own.items()) or self.title

    @property
    def sets(self) -> list[str]:
        """Its settings as `--set` takes them."""
        return [f"{path}={as_yaml(value)}" for path, value in self.settings]


def label_of(value: object) -> str:
    """The label of a value: as a person writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        named = next((key for key in ("name", "kind") if key in value), None)
        rest = [f"{key} {label_of(item)}" for key, item in value.items() if key != named]
        return " ".join([str(value[named]), *rest] if named else rest)
    if isinstance(value, list):
        return " ".join(label_of(item) for item in value)
    return str(value)


def cells(
    axes: Sequence[AxisValues],
    how: str | Sequence[Mapping[str, Any]],
    engines: Sequence[str],
) -> list[Cell]:
    """The cells of a study, each once, in the order of the file.

    `how` is `full`, `zip`, or a list of grids (axis name to one label or several, and perhaps `group`).
    Axes and labels are those there are: the loader has checked them.
    """
    combinations: Iterator[tuple[str, tuple[tuple[AxisValues, Value], ...]]]
    if how == "full":
        combinations = (("", found) for found in _product(axes))
    elif how == "zip":
        rows = zip(*(axis.values for axis in axes), strict=True)
        combinations = (("", tuple(zip(axes, row, strict=True))) for row in rows)
    else:
        combinations = _listed(axes, [item for item in how if isinstance(item, Mapping)])
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Cell] = {}
    for (group, chosen), engine in itertools.product(combinations, engines):
        cell = cell_of(engine, chosen, group, with_engine=len(engines) > 1)
        # A cell that two lists name (often the baseline) is run once.
        found.setdefault((engine, tuple(cell.labels.items())), cell)
    return list(found.values())


def cell_of(
    engine: str, chosen: Iterable[tuple[AxisValues, Value]], group: str = "", *, with_engine: bool = False
) -> Cell:
    """The cell of these values."""
    chosen = list(chosen)
    labels = {axis.name: value.label for axis, value in chosen}
    settings = tuple(setting for _, value in chosen for setting in value.settings)
    if with_engine:
        labels["engine"] = engine
    return Cell(engine, labels, settings, group, _id(engine, labels))


def baseline_of(cell: Cell, cells: Sequence[Cell], baseline: Mapping[str, object]) -> Cell | None:
    """The cell that `cell` is compared with; none when there is no such cell.

    That is the one that differs from it only in having the baseline's values (`{cc: cubic}` compares at
    each RTT). Where there is none, it is the one that has just the baseline's values.
    """
    values = {axis: label_of(value) for axis, value in baseline.items()}
    alone = {**_engine_of(cell), **values}
    for wanted in ({**cell.labels, **values}, alone) if values else (alone,):
        found = next((other for other in cells if other.labels == wanted), None)
        if found is not None:
            return found
    return None


def _engine_of(cell: Cell) -> Labels:
    return {"engine": cell.engine} if "engine" in cell.labels else {}


def _product(axes: Sequence[AxisValues]) -> Iterator[tuple[tuple[AxisValues, Value], ...]]:
    for row in itertools.product(*(axis.values for axis in axes)):
        yield tuple(zip(axes, row, strict=True))


def _listed(
    axes: Sequence[AxisValues], items: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[tuple[AxisValues, Value], ...]]]:
    by_name = {axis.name: axis for axis in axes}
    for item in items:
        named = [by_name[name] for name in by_name if name in item]
        wanted = [item[axis.name] for axis in named]
        values = [
            [found for label in (want if isinstance(want, list) else [want]) if (found := axis.value(label))]
            for axis, want in zip(named, wanted, strict=True)
        ]
        for row in itertools.product(*values):
            yield str(item.get("group", "")), tuple(zip(named, row, strict=True))


def _id(engine: str, labels: Labels) -> str:
    text = json.dumps([engine, labels], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{slug(labels) or 'scenario'}-{digest}"


def slug(labels: Labels) -> str:
    """The values as a part of a file's name, which others may have, too."""
    words = [re.sub(r"[^A-Za-z0-9.+]+", "-", label).strip("-") for label in labels.values()]
    return "_".join(word for word in words if word)[:60].strip("-_")
