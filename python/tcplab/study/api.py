"""Studies from Python: run one, look at its results.

from tcplab import study

found = study.run("tuning", quick=True)
found.results                  # a polars frame: a row for each run and flow
found.summary().to_text()
found.query("SELECT cell, avg(goodput) FROM results WHERE flow IS NULL GROUP BY cell")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.quantities import plural
from tcplab.results.errors import ResultsError
from tcplab.scenario.plain_data import overrides
from tcplab.study.execute import Outcome, execute, reopened, require_possible, work
from tcplab.study.grid import Cell, label_of
from tcplab.study.judge import Judgement, judge
from tcplab.study.load import Asked, Study, load
from tcplab.study.shipped import find
from tcplab.study.store import Store
from tcplab.study.task import Made

if TYPE_CHECKING:
    import polars as pl

    from tcplab.figures.model import Chart, Heatmap
    from tcplab.study.figures import Family
    from tcplab.study.pairs import Pair
    from tcplab.study.summary import StudySummary


class StudyResults:
    """A study that was run."""

    def __init__(self, study: Study, store: Store, outcome: Outcome, *, level: float = 0.95) -> None:
        self.study = study
        self.store = store
        self.outcome = outcome
        self.level = level
        """The confidence level of its intervals and judgements."""
        self._summaries: dict[tuple[str | None, float], StudySummary] = {}

    @property
    def path(self) -> Path:
        """The study's directory."""
        return self.store.path

    @cached_property
    def results(self) -> pl.DataFrame:
        """A row for each run and flow, and one for all flows of a run together, whose `flow` is null."""
        return self.store.results()

    def summary(self, *, flow: str | None = None, level: float | None = None) -> StudySummary:
        """Every cell with intervals, and its change from the baseline: of all flows, or of one."""
        from tcplab.study.summary import summary

        asked = flow, level or self.level
        if asked not in self._summaries:
            cells = self.outcome.cells
            self._summaries[asked] = summary(self.study, cells, self.results, flow=flow, level=asked[1])
        return self._summaries[asked]

    @cached_property
    def judgements(self) -> list[Judgement]:
        """The study's expectations, judged."""
        file, cells = self.study.file, self.outcome.cells
        baseline = {axis: str(value) for axis, value in file.baseline.items()}
        skip = file.quick.skip if self.study.quick else {}
        left_out = {axis: [label_of(value) for value in values] for axis, values in skip.items()}
        return [
            judge(statement, cells, self.results, baseline=baseline, level=self.level, left_out=left_out)
            for statement in self.study.expectations
        ]

    def figures(self) -> list[Chart | Heatmap]:
        """The figures of its report; `tcplab.figures.draw_plotly.draw` makes plotly's of them."""
        from tcplab.study.figures import figures

        return figures(self.study, lambda flow: self.summary(flow=flow), self.results, self.store)

    def families(self) -> list[Family]:
        """The figures of its report by plot, some of which are shown one at a time."""
        from tcplab.study.figures import families

        return families(self.study, lambda flow: self.summary(flow=flow), self.results, self.store)

    def pairs(self, metric: str = "goodput") -> list[Pair]:
        """Every two cells that differ in one axis alone, compared in a metric."""
        from tcplab.study.pairs import pairs

        return pairs(self.summary(), metric)

    def __repr__(self) -> str:
        counts = f"{plural(len(self.outcome.cells), 'cell')}, {plural(len(self.outcome.done), 'run')}"
        return f"<StudyResults {self.study.name!r}: {counts}, {self.outcome.status}>"

    def _repr_html_(self) -> str:
        from tcplab.present.notebook import study_html

        summary = self.summary()
        return study_html(self.study.name, self.outcome.status, summary.grid(), summary.notes)

    def query(self, sql: str) -> pl.DataFrame:
        """Ask in SQL; see `tcplab.study.query.query`."""
        from tcplab.study.query import query

        return query(self.store, sql)


def run(
    source: str | Path,
    *,
    engines: str | Sequence[str] = (),
    set: Mapping[str, object] | None = None,  # noqa: A002 - the command line's word for it
    repeat: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    output: str | Path | None = None,
    jobs: int | None = None,
    cluster: Any = None,
    storage: str | None = None,
    out: str | Path | None = None,
) -> StudyResults:
    """Run a study, a file or a shipped one by name, or go on with one that `output` holds.

    `cluster` spreads its simulations: the address of a Dask scheduler, or a cluster object (of
    dask-jobqueue, dask-kubernetes and the like); `storage` is where its workers put results. `out` is the
    old name of `output`. Raises ScenarioErrors, UnsupportedError when no cell can run on this machine,
    ClusterError, ResultsError, and KeyboardInterrupt when it was interrupted.
    """
    from tcplab import runner

    repeat, seed, jobs = runner.required(repeat=repeat, seed=seed, jobs=jobs)
    sets = overrides(set)
    named = (engines,) if isinstance(engines, str) else tuple(engines)
    study = load(find(str(source)), Asked(named, tuple(sets), repeat, seed, quick))
    chosen = runner.output_of(output, out)
    store = Store(runner.place(study.name, chosen, several=False))
    require_possible(study, work(study, store))
    store = Store(runner.reserve(store.path, chosen=chosen is not None))
    store.create(study)
    executor = None
    if cluster is not None:
        from tcplab.study.cluster import DaskCluster

        executor = DaskCluster(cluster, store, storage=storage)
    outcome = execute(study, store, watcher=_Silent(), jobs=jobs, executor=executor)
    if outcome.interrupted:
        raise KeyboardInterrupt(f"what was recorded is in {store.path}")
    return StudyResults(study, store, outcome)


def open_results(path: str | Path, *, level: float = 0.95) -> StudyResults:
    """A study that was run before, `level` being the confidence level of its intervals.

    Raises ResultsError where there is none, and ScenarioErrors.
    """
    store = Store(Path(path))
    if not store.taken:
        raise ResultsError(store.path, "not the directory of a study")
    study = asked_for(store)
    return StudyResults(study, store, reopened(study, store), level=level)


def asked_for(store: Store) -> Study:
    """The study that a directory was begun for; raises ResultsError and ScenarioErrors."""
    return load(store.source(), Asked.from_json(store.index()["asked"]))


class _Silent:
    def ended(self, cell: Cell, made: Made, number: int, of: int) -> None:
        pass
