"""Reading a study file: its structure, its axes, and the plan of every cell; all mistakes in one go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

from tcplab.plan.types import Plan
from tcplab.scenario import ScenarioError, ScenarioErrors, expand, from_document, read, read_text
from tcplab.scenario.plain_data import as_yaml
from tcplab.scenario.quantity import show
from tcplab.scenario.reading import declares_scenario, unreadable
from tcplab.study.definition import AXES_NEEDED, RESERVED, StudyFile, of_document
from tcplab.study.expect import ExpectationError, Statement, figures, parse
from tcplab.study.grid import AxisValues, Cell, Value, cell_of, cells, label_of
from tcplab.study.metrics import METRICS
from tcplab.testbed.known_controls import Controls

if TYPE_CHECKING:
    from tcplab._core import Document

Path = Sequence[str | int]
"""Keys and numbers of items, from the top of a document."""

# Without a `quick` of its own a study's runs last a fifth as long, but no less than this, ns.
_MIN_QUICK = 2_000_000_000
_QUICK_SHARE = 5
# Where these keys are wrong, there are no cells to look at.
# Titles of axes without a `label`.
_TITLES = {"cc": "CC", "ecn": "ECN", "mss": "MSS", "mtu": "MTU", "rtt": "RTT"}
_DECIDE_CELLS = ("engine", "cells", "quick")
_MAX_SEED = 2**64 - 1


@dataclass(frozen=True)
class Asked:
    """Changes of a study's file by the command line."""

    engines: tuple[str, ...] = ()
    """Instead of the file's."""
    sets: tuple[str, ...] = ()
    """Settings of the scenario in every cell."""
    repeat: int | None = None
    seed: int | None = None
    quick: bool = False
    """Shorter and fewer runs."""

    def over(self, before: Asked) -> Asked:
        """These changes, and those of `before` where these say nothing."""
        return Asked(
            self.engines or before.engines,
            self.sets or before.sets,
            before.repeat if self.repeat is None else self.repeat,
            before.seed if self.seed is None else self.seed,
            self.quick or before.quick,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data, as `from_json` takes it back."""
        return {**vars(self), "engines": list(self.engines), "sets": list(self.sets)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Asked:
        """The changes that `to_json` wrote."""
        known = {name: data[name] for name in ("repeat", "seed", "quick") if name in data}
        return cls(tuple(data["engines"]), tuple(data["sets"]), **known)


@dataclass(frozen=True)
class Study:
    """A study that has been read and can be executed."""

    file: StudyFile
    source: str
    """The file's path as given."""
    text: str
    """The file as given."""
    axes: tuple[AxisValues, ...]
    cells: tuple[Cell, ...]
    plans: Mapping[str, Plan]
    """Plan by the cell's id."""
    expectations: tuple[Statement, ...]
    scenario: Document
    base: File
    """The directory that files named in the scenario are relative to."""
    sets: tuple[str, ...] = ()
    """Settings of the scenario for every cell, from the command line and `--quick`."""
    asked: Asked = Asked()
    left_out: tuple[Cell, ...] = ()
    """Cells of which an engine would execute no other plan than of one before them."""

    @property
    def quick(self) -> bool:
        """Whether it was shortened."""
        return self.asked.quick

    @property
    def name(self) -> str:
        """The study's name."""
        return self.file.study

    @property
    def repeat(self) -> int:
        """Runs of each cell."""
        return self.file.repeat

    def axis(self, name: str) -> AxisValues | None:
        """The axis of this name."""
        return next((axis for axis in self.axes if axis.name == name), None)

    def plan_of(self, cell: Cell) -> Plan:
        """The plan of a cell, one of its own or another; raises ScenarioErrors."""
        known = self.plans.get(cell.id)
        return known if known is not None else _plan(self.scenario, self.base, self.sets, cell, self.file)

    def cell(self, engine: str, values: Mapping[str, str]) -> Cell:
        """The cell of these labels by axis, whether it is among the study's or not."""
        chosen = [
            (axis, found)
            for axis in self.axes
            if axis.name in values and (found := axis.value(values[axis.name])) is not None
        ]
        return cell_of(engine, chosen, with_engine=len(engines_of(self.file)) > 1)


def engines_of(file: StudyFile) -> list[str]:
    """The engines a study runs on."""
    return list(file.engine)


def varied_axes(study: Study) -> list[str]:
    """The axes with more than one value; `engine` among them where there are several."""
    return _varied(study.file, study.axes)


def _varied(file: StudyFile, axes: Sequence[AxisValues]) -> list[str]:
    several = ["engine"] if len(engines_of(file)) > 1 else []
    return [*(axis.name for axis in axes if len(axis.values) > 1), *several]


def load(source: str | File, asked: Asked | None = None) -> Study:
    """The study in a file, with what the command line changes.

    Raises `ScenarioErrors` with every mistake found.
    """
    try:
        text = File(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as problem:
        raise unreadable(source, problem) from None
    return load_text(text, source, asked)


def load_text(text: str, source: str | File, asked: Asked | None = None) -> Study:
    """The study that the file `source` has, or will have, as its text.

    Raises `ScenarioErrors` with every mistake found, and `UnknownEngineError` for an engine of `asked`.
    """
    asked = asked or Asked()
    path = File(source)
    document = read_text(text, str(source))
    file = _changed(of_document(document), asked)
    axes = _axes(file)
    found = list(_sense(file, axes, document))
    statements = []
    flows: list[tuple[Path, str | None]] = [
        (("plots", index, "flow"), plot.flow) for index, plot in enumerate(file.plots)
    ]
    for index, expectation in enumerate(file.expect):
        where = _inner(document, ("expect", index), "that")
        try:
            statement = parse(expectation.that, expectation.finding)
        except ExpectationError as problem:
            found.append(document.mistake(where, str(problem), problem.suggestion))
            continue
        statements.append(statement)
        for figure in (*figures(statement.left), *figures(statement.right)):
            found += _selected(document, where, dict(figure.where), axes)
            flows.append((where, figure.flow))
    if any(error.path.partition(".")[0] in _DECIDE_CELLS for error in found):
        raise ScenarioErrors(found)
    if asked.quick:
        file = replace(file, quick=file.quick.among(engines_of(file)))
        axes = _without(axes, file.quick.skip)
        file = _skipped(file, axes)
    scenario, base = _scenario_document(file, document, path)
    settings = [*(_quick_sets(file, scenario, base, asked.sets) if asked.quick else ()), *asked.sets]
    every = cells(axes, file.cells, engines_of(file))
    plans = {}
    refused: dict[ScenarioError, list[Cell]] = {}
    for cell in every:
        try:
            plans[cell.id] = _plan(scenario, base, settings, cell, file)
        except ScenarioErrors as mistakes_of_cell:
            for error in mistakes_of_cell.errors:
                refused.setdefault(_placed(error, cell, axes, document, settings), []).append(cell)
    found += [_explained(error, where, len(every)) for error, where in refused.items()]
    # A quick run may leave out the cells that have a flow.
    if not refused and not asked.quick:
        found += _flows(document, flows, plans.values())
    if found:
        raise ScenarioErrors(found)
    alike = _alike(every, plans)
    every = [cell for cell in every if cell not in alike]
    return Study(
        file=file,
        source=str(source),
        text=text,
        axes=tuple(axes),
        cells=tuple(every),
        plans=plans,
        expectations=tuple(statements),
        scenario=scenario,
        base=base,
        sets=tuple(settings),
        asked=asked,
        left_out=tuple(alike),
    )


def _alike(every: Sequence[Cell], plans: Mapping[str, Plan]) -> list[Cell]:
    """Cells whose difference from one before them their engine leaves to the world.

    So it is with the rate of a path between real hosts: the figures would be another cell's.
    """
    from tcplab import engine

    first: dict[tuple[str, str], Plan] = {}
    found = []
    for cell in every:
        plan = plans[cell.id]
        executed = engine.load(cell.engine).executed(plan)
        known = first.setdefault((cell.engine, json.dumps(executed, sort_keys=True)), plan)
        if known != plan and executed != plan:
            found.append(cell)
    return found


def description_of(path: File) -> str:
    """A study file's description; empty when it has none, or cannot be read."""
    try:
        return of_document(read(path)).description
    except ScenarioErrors:
        return ""


def _require_known(engines: Iterable[str]) -> None:
    from tcplab import engine

    for name in engines:
        if name not in engine.names():
            raise engine.UnknownEngineError(name)


def _changed(file: StudyFile, asked: Asked) -> StudyFile:
    changes: dict[str, Any] = {}
    if asked.engines:
        _require_known(asked.engines)
        changes["engine"] = asked.engines
    if asked.quick:
        quick = file.quick.among(asked.engines or file.engine)
        changes |= {"repeat": min(file.repeat, quick.repeat), "gap": 0}
    if asked.repeat is not None:
        changes["repeat"] = asked.repeat
    if asked.seed is not None:
        changes["seed"] = asked.seed
    return replace(file, **changes)


def _axes(file: StudyFile) -> list[AxisValues]:
    short = [key.rsplit(".", 1)[-1] for key in file.grid]
    found = []
    for (key, axis), last in zip(file.grid.items(), short, strict=True):
        paths = axis.set or (key,)
        name = last if short.count(last) == 1 else key
        if isinstance(axis.values, dict):
            values = tuple(Value(label, tuple(sets.items())) for label, sets in axis.values.items())
        else:
            values = tuple(
                Value(label_of(value), tuple((path, value) for path in paths)) for value in axis.values
            )
        found.append(AxisValues(name, axis.label or _TITLES.get(name, name), values))
    return found


def _sense(file: StudyFile, axes: Sequence[AxisValues], document: Document) -> Iterator[ScenarioError]:
    """Checks beyond the schema."""
    from tcplab import engine

    names = [axis.name for axis in axes]
    by_name = {axis.name: axis for axis in axes}
    for key, axis in zip(file.grid, axes, strict=True):
        if axis.name in RESERVED or axis.name in METRICS:
            yield document.mistake(
                ("grid", key), f"results have a column {show(axis.name)} already: give the axis another name"
            )
    for name in engines_of(file):
        if name not in engine.names():
            yield document.mistake(("engine",), f"unknown engine {show(name)}", _near(name, engine.names()))
    for key, axis in zip(file.grid, axes, strict=True):
        labels = [value.label for value in axis.values]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            yield document.mistake(("grid", key), f"the value {show(label)} stands here twice")
    if file.seed + file.repeat - 1 > _MAX_SEED:
        message = f"{file.repeat} repetitions from seed {file.seed} go beyond 2^64 - 1"
        yield document.mistake(("seed",), message, "1")
    if file.cells == "zip" and len({len(axis.values) for axis in axes}) > 1:
        counts = ", ".join(f"{axis.name} has {len(axis.values)}" for axis in axes)
        yield document.mistake(("cells",), f"`zip` takes axes of the same length: {counts}")
    if isinstance(file.cells, list):
        for index, item in enumerate(file.cells):
            for key, wanted in item.items():
                if key != "group":
                    yield from _values(document, ("cells", index, key), key, wanted, by_name)
    for key, wanted in file.baseline.items():
        if key != "engine":
            yield from _values(document, ("baseline", key), key, wanted, by_name)
    for index, name in enumerate(file.combine.axes if file.combine else ()):
        if name not in by_name:
            yield document.mistake(
                ("combine", "axes", index), f"unknown axis {show(name)}", _near(name, names)
            )
    for index, plot in enumerate(file.plots):
        asked = (("over", plot.over), ("by", plot.by), *(("each", name) for name in plot.each))
        for key, name_or_none in asked:
            others = ("engine",) if key == "each" else (None, "engine", "flow", "group")
            if name_or_none not in (*names, *others):
                yield document.mistake(
                    ("plots", index, key),
                    f"unknown axis {show(str(name_or_none))}",
                    _near(str(name_or_none), names),
                )
        # A queue's are the figures of its discipline, too.
        if plot.kind != "queue" and plot.metric not in METRICS:
            yield document.mistake(
                ("plots", index, "metric"),
                f"unknown metric {show(plot.metric)}",
                _near(plot.metric.replace(".", "_"), list(METRICS)),
            )
        yield from _selected(document, ("plots", index, "where"), plot.where, axes)
        needed = AXES_NEEDED.get(plot.kind, 0)
        varied = {*_varied(file, axes), plot.over, plot.by} - {None, *plot.where, *plot.each}
        if len(varied) < needed:
            amount = "two axes that vary" if needed == 2 else "an axis that varies"
            yield document.mistake(
                ("plots", index, "kind"), f"a {plot.kind} needs {amount}: the study has {len(varied)}"
            )
    kernel = file.quick.kernel
    for path, skip in (("skip",), file.quick.skip), (("kernel", "skip"), kernel.skip if kernel else {}):
        for key, left_out in skip.items():
            yield from _values(document, ("quick", *path, key), key, left_out, by_name)


def _values(
    document: Document, path: Path, name: str, wanted: Any, axes: Mapping[str, AxisValues]
) -> Iterator[ScenarioError]:
    if name not in axes:
        near = _near(name, list(axes))
        yield document.mistake(path, f"unknown axis {show(name)}", near, at_key=True)
        return
    for value in wanted if isinstance(wanted, list) else [wanted]:
        if axes[name].value(value) is None:
            labels = [known.label for known in axes[name].values]
            yield document.mistake(
                path, f"the axis {name} has no value {show(label_of(value))}", _near(label_of(value), labels)
            )


def _selected(
    document: Document, path: Path, wanted: Mapping[str, Any], axes: Sequence[AxisValues]
) -> Iterator[ScenarioError]:
    """Mistakes in a choice of cells by the values of axes."""
    from tcplab import engine

    by_name = {axis.name: axis for axis in axes}
    for name, label in wanted.items():
        if name == "engine" and label not in engine.names():
            yield document.mistake(
                path, f"unknown engine {show(str(label))}", _near(str(label), engine.names())
            )
        elif name not in RESERVED:
            yield from _values(document, path, name, label, by_name)


def _flows(
    document: Document, asked: Iterable[tuple[Path, str | None]], plans: Iterable[Plan]
) -> Iterator[ScenarioError]:
    """Mistakes in the names of flows, which a cell at least must have."""
    names = sorted({flow["name"] for plan in plans for flow in plan["flows"]})
    for path, name in asked:
        if name is not None and name not in names:
            yield document.mistake(path, f"unknown flow {show(name)}", _near(name, names))


def _near(word: str, words: Sequence[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(word, words, n=1, cutoff=0.4)), words[0] if words else "")


def _without(axes: Sequence[AxisValues], skip: Mapping[str, list[Any]]) -> list[AxisValues]:
    kept = []
    for axis in axes:
        left_out = {label_of(value) for value in skip.get(axis.name, ())}
        kept.append(replace(axis, values=tuple(v for v in axis.values if v.label not in left_out)))
    return kept


def _skipped(file: StudyFile, axes: Sequence[AxisValues]) -> StudyFile:
    """The file with listed cells lessened by the values that `quick` leaves out."""
    if not isinstance(file.cells, list) or not file.quick.skip:
        return file
    by_name = {axis.name: axis for axis in axes}
    kept: list[dict[str, Any]] = []
    for item in file.cells:
        lessened: dict[str, Any] = {}
        for key, wanted in item.items():
            if key == "group":
                lessened[key] = wanted
                continue
            values = wanted if isinstance(wanted, list) else [wanted]
            lessened[key] = [value for value in values if by_name[key].value(value) is not None]
        if all(value for value in lessened.values()):
            kept.append(lessened)
    return replace(file, cells=kept)


def _scenario_document(file: StudyFile, document: Document, path: File) -> tuple[Document, File]:
    inside = document.part(["scenario"])
    if isinstance(file.scenario, dict) and inside is not None:
        return inside, path.parent
    found = path.parent / str(file.scenario)
    try:
        with found.open("rb") as stream:
            text = stream.read((1 << 20) + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ScenarioErrors(
            [document.mistake(("scenario",), f"the scenario {show(str(found))} cannot be read: {reason}")]
        ) from None
    if not declares_scenario(text):
        message = f"{show(str(found))} is not a scenario: it has no key `tcplab`"
        raise ScenarioErrors([document.mistake(("scenario",), message)])
    return read_text(text, str(found)), found.parent


def _quick_sets(file: StudyFile, scenario: Document, base: File, sets: Sequence[str]) -> Iterable[str]:
    if file.quick.set:
        return [f"{path}={as_yaml(value)}" for path, value in file.quick.set.items()]
    duration = int(expand(from_document(scenario, base, list(sets)))["duration"])
    return [f"duration={max(duration // _QUICK_SHARE, min(duration, _MIN_QUICK))} ns"]


def _plan(scenario: Document, base: File, sets: Sequence[str], cell: Cell, file: StudyFile) -> Plan:
    # Settings of `--quick` come before a cell's own, those of the command line before both.
    plan = expand(from_document(scenario, base, [*cell.sets, *sets], Controls()))
    # Each repetition is a run of its own here; its number must not change what the plan is recognised by.
    return {**plan, "seed": file.seed, "repeat": 1}


def _placed(
    error: ScenarioError,
    cell: Cell,
    axes: Sequence[AxisValues],
    document: Document,
    settings: Sequence[str],
) -> ScenarioError:
    """The mistake at the value in the study file that causes it."""
    if error.file == "--set" and error.source not in settings:
        for key, axis in zip(_grid_keys(document), axes, strict=False):
            label = cell.labels.get(axis.name)
            value = axis.value(label) if label is not None else None
            if value is None or not any(error.source == f"{p}={as_yaml(v)}" for p, v in value.settings):
                continue
            where = _value_path(document, key, axis, value)
            return document.mistake(where, f"{error.path}: {error.message}", error.suggestion)
    return error


def _explained(error: ScenarioError, where: Sequence[Cell], count: int) -> ScenarioError:
    """The mistake with the cells that have it; none named for one of the grid or of all cells."""
    if error.file == "--set" or error.path.startswith("grid.") or len(where) == count:
        return error
    cells = f"the cell {where[0].title}" if len(where) == 1 else f"{len(where)} of {count} cells"
    return replace(error, message=f"{error.message} (in {cells})")


def _grid_keys(document: Document) -> list[str]:
    return list(document.plain(["grid"]) or {})


def _value_path(document: Document, key: str, axis: AxisValues, value: Value) -> Path:
    for path in (("grid", key, "values"), ("grid", key)):
        values = document.plain(path)
        if isinstance(values, list):
            for index, item in enumerate(values):
                if label_of(item) == value.label:
                    return (*path, index)
        if isinstance(values, dict) and value.label in values:
            return (*path, value.label)
    return ("grid", key)


def _inner(document: Document, path: Path, key: str) -> Path:
    return (*path, key) if document.holds((*path, key)) else path
