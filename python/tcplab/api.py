"""The Python library: the commands' verbs as functions, and a run with its summary and figures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab import results
from tcplab.engine.base import ATTEMPTS, Status

if TYPE_CHECKING:
    from tcplab.engine.base import Problem
    from tcplab.figures.runs.plot import Plot
    from tcplab.present.comparison import Comparison
    from tcplab.present.summary_table import SummaryTable
    from tcplab.scenario import Scenario


class Run(results.Run):
    """A run's results, with its summary and its figures."""

    def summary(self, *, omit: int | str | None = None, level: float = 0.95) -> SummaryTable:
        """Steady-state figures per flow, with intervals; see `tcplab.analysis.summaries.summary`."""
        from tcplab.present.summary_table import summary

        return summary(self, omit=omit, level=level)

    @property
    def plot(self) -> Plot:
        """Figures: `run.plot.timeseries()`, `run.plot.cdf()`."""
        from tcplab.figures.runs.plot import Plot

        return Plot(self)

    def _repr_html_(self) -> str:
        from tcplab.present.notebook import notebook_html

        return notebook_html(self)


class RunFailedError(RuntimeError):
    """A run failed: why, and where what it recorded is."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message

    def __reduce__(self) -> tuple[type[RunFailedError], tuple[Path, str]]:
        """Let it leave the process: pickle would make it from its message alone."""
        return type(self), (self.path, self.message)


def compare(
    *runs: results.Run | str | os.PathLike[str], level: float = 0.95, omit: int | str | None = None
) -> Comparison:
    """Compare results with the first of them, flow by flow: runs, or their directories.

    `level` is the confidence level; `omit` is the warm-up as in `Run.summary`. Raises ValueError for fewer
    than two results, and ResultsError.
    """
    from tcplab.present.comparison import compare as compared

    loaded = [run if isinstance(run, results.Run) else load(Path(run)) for run in runs]
    return compared(loaded, level=level, omit=omit)


def load(path: Path | str) -> Run:
    """Load a result directory (every repetition) or one run directory.

    Raises ResultsError when the path holds neither.
    """
    found = results.load(path)
    return Run(found.path, found.run_dirs)


def write_report(
    run: results.Run,
    path: Path | str | None = None,
    *,
    omit: int | str | None = None,
    level: float = 0.95,
) -> Path:
    """Write a run's report, by default as report.html in its directory; returns the file.

    `omit` is the warm-up as in `Run.summary`, `level` the confidence level.

    Raises ResultsError when it cannot be written.
    """
    from tcplab.captures.capture_comparison import capture_part
    from tcplab.present.report import write_report as write

    return write(run, path, omit=omit, level=level, captures=capture_part(run))


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    engine: str = "sim",
    at: Mapping[str, str] | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 - the command line's word for it
    repeat: int | None = None,
    seed: int | None = None,
    output: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    attempts: int = ATTEMPTS,
    progress: bool = False,
    yes: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Run:
    """Run a scenario and return its results.

    The scenario is a file, the name of a shipped one, a YAML text, a dictionary of the same shape, or one
    that is loaded. `at` says where its hosts are for the engine `remote`, as {"left": "ssh://left.example"}.
    `set` changes settings by path, as {"flows.bulk.cc": "reno"}. `repeat` runs take the seeds
    from `seed` on and go on `jobs` cores at a time. A kernel run that is overloaded is made again, `attempts`
    times at most, and the best is kept. Results go to `output`, or to a new directory in `runs`. `yes` runs
    even what this machine seems to have too little memory or disk for. `out` is the old name of `output`.

    Raises ScenarioErrors when the scenario is wrong, UnsupportedError when the engine cannot run it, and
    ResultsError when results cannot be written. A run that failed raises RunFailedError, one that was
    interrupted KeyboardInterrupt; `tcplab.load` then gives what was recorded.
    """
    from tcplab import engine as engines
    from tcplab import runner
    from tcplab.progress import watcher

    repeat, seed, jobs, _ = runner.required(repeat=repeat, seed=seed, jobs=jobs, attempts=attempts)
    target = runner.output_of(output, out)
    loaded, source, text = _loaded(scenario, set)
    chosen = engines.load(engine, at)
    prepared = runner.prepare(loaded, source=source, text=text, engine=chosen, repeat=repeat, seed=seed)
    refused = runner.refusals([prepared], target or runner.RUNS, jobs=jobs, yes=yes)
    if any(problem.fatal for problem in refused):
        raise runner.UnsupportedError(prepared.source, chosen.name, refused)
    path = runner.claim(prepared, target)
    with watcher(quiet=not progress) as display:
        (finished,) = runner.execute([(prepared, path)], watcher=display, jobs=jobs, attempts=attempts)
    if finished.status is Status.INTERRUPTED:
        raise KeyboardInterrupt(f"what was recorded is in {path}")
    if finished.status is Status.FAILED:
        raise RunFailedError(path, finished.message)
    return load(path)


def check(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    engine: str = "sim",
    set: Mapping[str, object] | None = None,  # noqa: A002 - the command line's word for it
) -> list[Problem]:
    """Problems of running a scenario with this engine on this machine; empty if there are none.

    Raises ScenarioErrors when the scenario itself is wrong.
    """
    from tcplab import engine as engines
    from tcplab import runner
    from tcplab.scenario import expand

    loaded, _, _ = _loaded(scenario, set)
    return runner.problems_of(loaded, engines.load(engine), expand(loaded))


def _loaded(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario, settings: Mapping[str, object] | None
) -> tuple[Scenario, str, str]:
    """The scenario, what messages call it, and its text."""
    from tcplab.plan.yaml_text import dump_plan_yaml
    from tcplab.scenario import Scenario, from_data, load
    from tcplab.scenario.plain_data import overrides, plain
    from tcplab.shipped import located
    from tcplab.testbed.known_controls import Controls

    sets = overrides(settings)
    if isinstance(scenario, Scenario):
        if sets:
            raise TypeError("`set` changes a scenario before it is loaded: give it to tcplab.scenario.load")
        return scenario, scenario.name, f"# {scenario.name} was loaded in Python: plan.yaml says what ran\n"
    if isinstance(scenario, Mapping):
        loaded = from_data(scenario, sets=sets, controls=Controls())
        return loaded, "scenario", dump_plan_yaml(plain(scenario))
    source = os.fspath(scenario)
    if not source:
        raise ValueError("scenario='': the path is empty")
    if "\n" not in source:
        source = str(located(Path(source)))
    loaded = load(source, sets, Controls())
    if "\n" in source:
        return loaded, "<text>", source
    return loaded, source, Path(source).read_text(encoding="utf-8")
