"""A study file: a scenario, a grid over it, repetitions, and expectations.

`crates/scenario/src/language/study.rs` describes the keys and fills in defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab._core import Document

Scalar = str | int | float | bool
Settings = dict[str, Any]
"""Paths in the scenario, and what each is set to."""

RESERVED = (
    *("engine", "group", "cell", "repetition", "status", "message", "overload", "wall", "flow", "kind"),
    "limited_by",
)
"""Columns of the results, which no axis may be called."""

AXES_NEEDED = {"curve": 1, "laws": 1, "heatmap": 2, "map": 2}
"""How many axes a figure of this kind needs; those it does not name are chosen."""


@dataclass(frozen=True)
class Axis:
    """One parameter that varies."""

    set: tuple[str, ...] | None
    """The paths in the scenario that get each value; None: the axis' name, or what `values` say."""
    values: list[Any] | dict[str, Settings]
    """The values; or, by label, what to set."""
    label: str
    """Its label in figures and tables; empty: its name."""


@dataclass(frozen=True)
class Expectation:
    """A statement about the results that is judged."""

    that: str
    finding: str
    """The finding it stands for, in words."""


@dataclass(frozen=True)
class Combine:
    """One more cell at the end: the best value of each axis, taken together."""

    axes: tuple[str, ...]
    goal: str
    """The metric to maximize."""
    minimum: bool
    """Its minimum is sought instead."""


@dataclass(frozen=True)
class Plot:
    """A figure of the report."""

    kind: str
    metric: str = "goodput"
    over: str | None = None
    """The axis along the figure."""
    by: str | None = None
    """The axis that colours tell apart."""
    each: tuple[str, ...] = ()
    """The axes of which one value is shown at a time: a figure for each combination of their values."""
    flow: str | None = None
    """The flow whose metric it is; None: all flows together."""
    where: Mapping[str, Scalar] = field(default_factory=dict)
    """Only the cells with these values."""


@dataclass(frozen=True)
class Quick:
    """Changes by `--quick`."""

    repeat: int
    set: Settings
    skip: dict[str, list[Any]]
    """Values of axes that are left out."""
    kernel: QuickOnKernel | None

    def among(self, engines: Sequence[str]) -> Quick:
        """The changes for these engines, all alike so that they stay comparable."""
        if self.kernel is None or "kernel" not in engines:
            return self
        repeat = self.repeat if self.kernel.repeat is None else self.kernel.repeat
        skip = {**self.skip, **self.kernel.skip}
        return Quick(repeat, {**self.set, **self.kernel.set}, skip, kernel=None)


@dataclass(frozen=True)
class QuickOnKernel:
    """Further changes by `--quick` where the engine `kernel` takes part."""

    repeat: int | None
    set: Settings
    skip: dict[str, list[Any]]


@dataclass(frozen=True)
class StudyFile:
    """A scenario over a grid of parameters, with repetitions, a baseline and expectations."""

    study: str
    """Its name."""
    description: str
    scenario: str | dict[str, Any]
    """A file, relative to the study's, or the scenario itself."""
    engine: tuple[str, ...]
    grid: dict[str, Axis]
    cells: str | list[dict[str, Any]]
    """`full`, `zip`, or a list of grids."""
    repeat: int
    seed: int
    order: str
    """`random` or `given`."""
    gap: int
    """Pause between two runs on real systems, ns."""
    baseline: dict[str, Scalar]
    combine: Combine | None
    expect: tuple[Expectation, ...]
    plots: tuple[Plot, ...]
    quick: Quick


def of_document(document: Document) -> StudyFile:
    """The study in a document; raises ScenarioErrors with every mistake of its own keys."""
    read: dict[str, Any] = json.loads(document.study())
    del read["tcplab"]
    grid = {name: Axis(**{**axis, "set": _paths(axis["set"])}) for name, axis in read["grid"].items()}
    combine = read["combine"]
    kernel = read["quick"]["kernel"]
    return StudyFile(
        **{
            **read,
            "engine": tuple(read["engine"]),
            "grid": grid,
            "combine": combine and Combine(tuple(combine["axes"]), combine["goal"], combine["minimum"]),
            "expect": tuple(Expectation(**one) for one in read["expect"]),
            "plots": tuple(Plot(**{**one, "each": tuple(one["each"])}) for one in read["plots"]),
            "quick": Quick(**{**read["quick"], "kernel": kernel and QuickOnKernel(**kernel)}),
        }
    )


def _paths(set_: list[str] | None) -> tuple[str, ...] | None:
    return None if set_ is None else tuple(set_)
