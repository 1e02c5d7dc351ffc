"""Tuning a scenario: candidates are cells of a study, raced in the simulator, confirmed where asked."""

from __future__ import annotations

import difflib
import itertools
import math
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tcplab.plan.types import Plan
from tcplab.plan.yaml_text import dump_plan_yaml
from tcplab.results.errors import ResultsError
from tcplab.results.files import write_text
from tcplab.results.manifest import plan_digest
from tcplab.results.writer import TAKEN, in_the_way
from tcplab.runner import reserve, stopping_on_signals
from tcplab.scenario import expand, load
from tcplab.study.execute import Job, Tasks, Watcher, axes_of, collect, estimate, make_runs
from tcplab.study.expect import Expression, Statement, evaluate, figures
from tcplab.study.grid import Cell
from tcplab.study.judge import Verdict, judge
from tcplab.study.load import Asked, Study
from tcplab.study.load import load as load_study
from tcplab.study.scale import amounts
from tcplab.study.store import Done, Store, dataset, with_copies
from tcplab.tune.knobs import UNCHANGED, Knob, read
from tcplab.tune.race import ROUNDS, Array, Measured, Placed, feasible, race

# Spaces larger than this are sampled before they are raced.
MAX_RACED = 128
_CONFIRMATIONS = 3
_FILE = "tune.yaml"


@dataclass(frozen=True)
class Goal:
    """The metric to optimize, and its constraints."""

    text: str
    expression: Expression
    sign: int
    """1: maximize it; -1: minimize it."""
    constraints: tuple[Statement, ...]


class GoalError(ValueError):
    """A goal or a constraint that selects what a search does not have."""


@dataclass(frozen=True)
class Outlook:
    """The size and time of a search."""

    space: int
    """Number of candidates."""
    candidates: tuple[Mapping[str, str], ...]
    """Labels by knob of those that are raced; empty if a sampler picks them."""
    sampled: int
    """Candidates that the sampler tries; 0: all are raced."""
    runs: int
    """Of the first round; later rounds repeat the remaining candidates."""
    seconds: float
    """Of the first round on this machine, roughly."""


@dataclass(frozen=True)
class Confirmed:
    """The goal on another engine, in each repetition; the scenario as it is beside the best."""

    engine: str
    best: Array
    unchanged: Array
    message: str
    """Why a run failed; empty if none did."""
    overloaded: int
    """Runs that the machine limited, not TCP."""


@dataclass(frozen=True)
class Tuned:
    """The result of tuning."""

    path: Path
    knobs: tuple[Knob, ...]
    goal: Goal
    placed: tuple[Placed, ...]
    """Every candidate, the best first."""
    best: Placed | None
    """Of those that no other surely beats, the one with the fewest changes and the smallest amounts;
    None: none is left."""
    labels: Mapping[str, Mapping[str, str]]
    """By a candidate's cell id, its label by knob."""
    results: pl.DataFrame
    confirmed: Confirmed | None = None
    sampled: int = 0
    """Candidates that a sampler tried, of a space too large to race whole."""
    space: int = 0
    """Number of candidates."""
    interrupted: bool = False
    level: float = 0.95
    """The confidence level of its intervals and tests."""


class Tuning:
    """One search, in one study's directory."""

    def __init__(
        self,
        scenario: Path,
        over: Sequence[str],
        goal: Goal,
        path: Path,
        *,
        sets: Sequence[str] = (),
        level: float = 0.95,
        chosen: bool = True,
        resume: bool = False,
    ) -> None:
        """Prepare it; raises ScenarioErrors, KnobError, GoalError, or ResultsError if the directory is taken.

        Where `path` was not chosen and another process has made it, one beside it is taken. With `resume` the
        directory is that of the same search, whose runs are kept.
        """
        plan = expand(load(scenario, list(sets)))
        _selects_flows(goal, plan)
        self.goal = goal
        self.level = level
        self.knobs = tuple(read(over, plan))
        text, asked = _study_text(scenario, str(plan["name"]), self.knobs), Asked(sets=tuple(sets))
        _expand_each(text, asked, self.knobs)
        if resume:
            _same(Store(path), text, asked)
        else:
            if chosen and Store(path).occupied:
                raise ResultsError(path, TAKEN)
            if foreign := in_the_way(path, _FILE):
                raise ResultsError(path, foreign)
            path = reserve(path, chosen=chosen)
        self.store = Store(path)
        write_text(path / _FILE, text)
        self.study: Study = load_study(path / _FILE, asked)
        self.store.create(self.study)
        self._cells: dict[str, Cell] = {}
        self._stop = threading.Event()

    @property
    def space(self) -> int:
        """The number of candidates."""
        return math.prod(len(knob.values) for knob in self.knobs)

    def outlook(self, *, jobs: int | None = None, trials: int | None = None) -> Outlook:
        """The number of candidates, and the estimated time of the first round."""
        sampled = self._sampled(trials)
        labels = list(itertools.islice(self._combinations(), sampled or None))
        repetitions = 1 if sampled else ROUNDS[0]
        runs = tuple(
            Job(self.study.cell("sim", one), number + 1) for one in labels for number in range(repetitions)
        )
        seconds = estimate(self.study, Tasks(runs), jobs)
        return Outlook(self.space, () if sampled else tuple(labels), sampled, len(runs), seconds)

    def _sampled(self, trials: int | None) -> int:
        asked = trials or MAX_RACED
        return asked if asked < self.space else 0

    def _combinations(self) -> Iterator[dict[str, str]]:
        names = [knob.name for knob in self.knobs]
        for labels in itertools.product(*(knob.values for knob in self.knobs)):
            yield dict(zip(names, labels, strict=True))

    def run(
        self,
        *,
        watcher: Watcher,
        jobs: int | None = None,
        trials: int | None = None,
        confirm: str | None = None,
    ) -> Tuned:
        """Search; with `trials` a sampler (Optuna's TPE) first picks the candidates that are raced.

        `confirm` is an engine that runs the best and the plain scenario. Raises ResultsError.
        """
        confirmed = None
        with stopping_on_signals(self._stop), self.store.alone():
            sampled = self._sampled(trials)
            if sampled:
                candidates = self._sample(sampled, watcher, jobs)
            else:
                candidates = [self._candidate(labels) for labels in self._combinations()]
            placed = race(
                candidates,
                lambda left, n: self._measure(left, n, watcher, jobs),
                cost=self._cost,
                name=self._name,
                level=self.level,
            )
            stayed = [one for one in placed if one.left_in is None and len(one.measured.goal)]
            # One that surely meets the constraints comes before one that may.
            best = min(
                stayed,
                key=lambda one: (one.measured.feasible is not True, self._cost(one.label)),
                default=None,
            )
            if confirm is not None and best is not None and not self._stop.is_set():
                confirmed = self._confirm(best, confirm, watcher)
        cells = tuple(self._cells.values())
        self.store.write_index(self.study, cells)
        done = collect(self.study, self.store, cells)
        engine_cells = [cell for cell in cells if cell.engine == "sim"]
        results = self.store.write_results(cells, [*done], axes_of(self.study))
        return Tuned(
            self.store.path,
            self.knobs,
            self.goal,
            tuple(placed),
            best,
            {cell.id: dict(cell.labels) for cell in engine_cells},
            results,
            confirmed,
            sampled,
            self.space,
            self._stop.is_set(),
            self.level,
        )

    def _name(self, cell: str) -> str:
        """A candidate's name for people: `cc bbr1, window 1 MiB`."""
        return named(self._cells[cell].labels)

    def _cost(self, name: str) -> tuple[float, ...]:
        """How many knobs a candidate changes, then how far: sizes, counts and rates from small to large."""
        labels = self._cells[name].labels
        changes = sum(label != UNCHANGED for label in labels.values())
        return (changes, *(self._amount(knob, labels.get(knob.name, UNCHANGED)) for knob in self.knobs))

    def _amount(self, knob: Knob, label: str) -> float:
        named = [value for value in knob.values if value != UNCHANGED]
        scaled = amounts(named)
        return scaled.values[named.index(label)] if scaled is not None and label in named else 0.0

    def _candidate(self, labels: Mapping[str, str], engine: str = "sim") -> str:
        cell = self.study.cell(engine, labels)
        self._cells[cell.id] = cell
        return cell.id

    def _measure(
        self, left: Sequence[str], repetitions: int, watcher: Watcher, jobs: int | None
    ) -> dict[str, Measured]:
        missing = []
        for number in range(1, repetitions + 1):
            for name in left:
                cell = self._cells[name]
                digest = plan_digest(self.study.plan_of(cell))
                if self.store.state(cell, number, digest) != "done" and not self._failed(cell, number):
                    missing.append(Job(cell, number))
        if not self._stop.is_set():
            make_runs(self.study, self.store, missing, watcher, jobs, None, self._stop)
        return {name: self._measured(name, repetitions) for name in left}

    def _failed(self, cell: Cell, number: int) -> bool:
        """Whether a run was tried and cannot be made: trying again would not help."""
        if not self.store.run_dir(cell, number).is_dir():
            return False
        return self.store.read(cell, number).status == "failed"

    def _measured(self, name: str, repetitions: int) -> Measured:
        cell = self._cells[name]
        done = [
            self.store.read(cell, number)
            for number in range(1, repetitions + 1)
            if self.store.run_dir(cell, number).is_dir()
        ]
        failed = next((one.message for one in done if one.status == "failed"), "")
        good = with_copies([one for one in done if one.status == "done"])
        if not good:
            return Measured(np.empty(0), None, failed)
        values = np.array([self._value(one) for one in good])
        results = dataset((cell,), good, axes_of(self.study))
        reasons, verdicts = [], []
        for constraint in self.goal.constraints:
            verdict = judge(constraint, [cell], results, baseline={}, level=self.level).verdict
            verdicts.append({Verdict.HOLDS: True, Verdict.FAILS: False}.get(verdict))
            if verdict is not Verdict.HOLDS:
                how = "fails" if verdict is Verdict.FAILS else "undecided:"
                reasons.append(f"{how} {constraint.text}")
        return Measured(values[np.isfinite(values)], feasible(verdicts), "; ".join(reasons))

    def _value(self, one: Done) -> float:
        """The goal in one run; more is better."""
        found = {}
        for figure in figures(self.goal.expression):
            row = next((row for row in one.rows if row["flow"] == figure.flow), None)
            value = row[figure.metric] if row is not None else None
            found[figure] = math.nan if value is None else float(value)
        return self.goal.sign * evaluate(self.goal.expression, found)

    def _sample(self, trials: int, watcher: Watcher, jobs: int | None) -> list[str]:
        """The better candidates among `trials` that Optuna's TPE tries, one repetition each."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.study.file.seed)
        search = optuna.create_study(direction="maximize", sampler=sampler)
        tried: dict[str, float] = {}
        batch = max(1, jobs or 2)
        while len(search.trials) < trials and not self._stop.is_set():
            asked = []
            for _ in range(min(batch, trials - len(search.trials))):
                trial = search.ask()
                labels = {k.name: trial.suggest_categorical(k.name, list(k.values)) for k in self.knobs}
                asked.append((trial, self._candidate(labels)))
            found = self._measure(list(dict.fromkeys(name for _, name in asked)), 1, watcher, jobs)
            for trial, name in asked:
                goal = found[name].goal
                value = float(goal.mean()) if len(goal) and found[name].feasible is not False else -math.inf
                tried[name] = value
                search.tell(trial, value if math.isfinite(value) else -1e18)
        ranked = sorted(tried, key=lambda name: tried[name], reverse=True)
        return ranked[: max(4, len(ranked) // 4)]

    def _confirm(self, best: Placed, engine: str, watcher: Watcher) -> Confirmed:
        """The best candidate, and the scenario as it is, on another engine."""
        cells = [
            self._cells[self._candidate(labels, engine)]
            for labels in ({}, dict(self._cells[best.label].labels))
        ]
        missing = [Job(cell, n) for n in range(1, _CONFIRMATIONS + 1) for cell in cells]
        make_runs(self.study, self.store, missing, watcher, 1, None, self._stop)
        done = collect(self.study, self.store, cells)
        plain, other = (
            np.array([self.goal.sign * self._value(one) for one in done if one.cell == cell.id and one.rows])
            for cell in cells
        )
        failed = next((one.message for one in done if one.status == "failed"), "")
        return Confirmed(engine, other, plain, failed, sum(one.overload is not None for one in done))


def named(labels: Mapping[str, str]) -> str:
    """A configuration in words: `cc bbr1, window 1 MiB`."""
    return ", ".join(f"{knob} {label}" for knob, label in labels.items())


def _expand_each(text: str, asked: Asked, knobs: Sequence[Knob]) -> None:
    """Raise ScenarioErrors for a value that the scenario cannot have, before there is a directory."""
    with tempfile.TemporaryDirectory() as nowhere:
        draft = Path(nowhere) / _FILE
        write_text(draft, text)
        study = load_study(draft, asked)
        first = {knob.name: next(iter(knob.values)) for knob in knobs}
        for knob in knobs:
            for label in knob.values:
                study.plan_of(study.cell("sim", {**first, knob.name: label}))


def _same(store: Store, text: str, asked: Asked) -> None:
    """Raise ResultsError unless this search is in the store."""
    try:
        found = (store.path / _FILE).read_text(encoding="utf-8")
    except OSError as problem:
        raise ResultsError.unreadable(store.path / _FILE, problem) from problem
    if (found, store.index()["asked"]) != (text, asked.to_json()):
        raise ResultsError(store.path, "holds another search: --resume needs its scenario, --over and --set")


def _selects_flows(goal: Goal, plan: Plan) -> None:
    """Raise GoalError for a figure that is not of one candidate, or of an unknown flow."""
    known = [flow["name"] for flow in plan["flows"]]
    sides = [(goal.text, goal.expression)]
    sides += [(one.text, side) for one in goal.constraints for side in (one.left, one.right)]
    for text, expression in sides:
        for figure in figures(expression):
            if figure.where or figure.baseline:
                raise GoalError(
                    f"{text}: `{figure}` selects candidates; a goal or a constraint selects a flow only"
                )
            if figure.flow is not None and figure.flow not in known:
                near = difflib.get_close_matches(figure.flow, known, n=1)
                meant = f"; did you mean `{near[0]}`?" if near else f" (flows: {', '.join(known)})"
                raise GoalError(f"{text}: unknown flow `{figure.flow}`{meant}")


def _study_text(scenario: Path, name: str, knobs: Sequence[Knob]) -> str:
    data: dict[str, Any] = {
        "tcplab": 1,
        "study": f"tune-{name}"[:48],
        "description": f"The search for the best configuration of {name}.",
        "scenario": str(scenario.resolve()),
        "grid": {knob.name: {"values": dict(knob.values)} for knob in knobs},
        # Every candidate is one cell; which of them are run, the race decides.
        "cells": [{}],
        "repeat": 8,
    }
    return dump_plan_yaml(data)
