"""Arguments and options that several commands share, and their parsing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tcplab.cli import completion
from tcplab.cli.failure import Code, CommandError, is_full

if TYPE_CHECKING:
    from tcplab.engine.base import Engine, Problem
    from tcplab.results import Run
    from tcplab.scenario import Scenario

Scenarios = Annotated[
    list[Path],
    typer.Argument(
        metavar="SCENARIO...",
        help="Scenario files, or names that `tcplab examples list` shows; - is standard input.",
        show_default=False,
        autocompletion=completion.scenarios,
    ),
]
OneRun = Annotated[Path, typer.Argument(metavar="RUN", help="A result directory.", show_default=False)]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Result directories.", show_default=False)]
# Spelled out here: the engines themselves take 0.1 s to import.
Engines = Literal["sim", "kernel", "remote"]
EngineName = Annotated[Engines, typer.Option("--engine", "-e", help="The engine that runs it.")]
At = Annotated[
    list[str] | None,
    typer.Option(
        "--at",
        metavar="NAME=ssh://[USER@]HOST[:PORT]",
        help="Address of a host of the scenario, for --engine remote. Repeatable.",
    ),
]
Level = Annotated[
    str | None,
    typer.Option("--level", metavar="LEVEL", help="Confidence level of the intervals. [default: 95 %]"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="PATH=VALUE", help="Change a setting, such as flows.bulk.cc=reno. Repeatable."
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Run even if memory or disk seem too small."),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output and nothing else.")]

ImageFormats = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="svg,png,pdf",
        help="Formats of --figures, joined by commas. [default: all]",
    ),
]


def level_of(text: str | None) -> float:
    """The confidence level: `95 %` or `0.95`; 95 % when none is given."""
    if text is None:
        return 0.95
    share = text.strip()
    try:
        level = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
    except ValueError:
        raise CommandError(f"--level {text}: not a level such as 95 %", Code.INPUT) from None
    if not 0 < level < 1:
        meant = f"; write {share} %" if 1 < level < 100 else ""
        raise CommandError(f"--level {text}: a level must be between 0 and 100 %{meant}", Code.INPUT)
    return level


def engine_called(name: str, at: list[str] | None = None) -> Engine:
    """The engine of this name; the remote engine with the addresses of its hosts."""
    from tcplab import engine

    try:
        return engine.load(name, _urls(at or []) if at or name == "remote" else None)
    except engine.UnknownEngineError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
    except ValueError as problem:
        raise CommandError(f"--at: {problem}", Code.INPUT) from None


def _urls(at: list[str]) -> dict[str, str]:
    from tcplab.engine.remote.place import urls_of

    return urls_of(at)


def readable(directory: Path) -> None:
    """Fail if a directory is not there, or cannot be read."""
    from tcplab.results import ResultsError

    if not directory.is_dir():
        reason = "is a file, not a directory" if directory.exists() else "no such directory"
        raise CommandError(f"{directory}: {reason}", Code.INPUT)
    try:
        os.scandir(directory).close()
    except OSError as error:
        raise CommandError(str(ResultsError.unreadable(directory, error)), Code.INPUT) from None


def fits(problems: list[Problem]) -> None:
    """Fail if this machine has too little memory or disk, or warn with --yes."""
    from tcplab.cli.output import warn

    fatal = [problem for problem in problems if problem.fatal]
    if fatal:
        said = "; ".join(f"{problem.where}: {problem.message}" for problem in fatal)
        raise CommandError(f"not enough on this machine: {said}", Code.MACHINE, fatal[0].fix)
    for problem in problems:
        warn(f"tcplab: warning: {problem.where}: {problem.message}")


def scenario(path: Path, settings: list[str] | None) -> tuple[Scenario, str]:
    """The scenario in a file or pipe, a shipped one by name, or `-` for standard input, with its text.

    Raises ScenarioErrors.
    """
    from tcplab.scenario import from_document, load, read_text
    from tcplab.scenario.reading import MAX_BYTES
    from tcplab.shipped import located
    from tcplab.testbed.known_controls import Controls

    sets, controls = settings or (), Controls()
    path = located(path)
    is_input = path == Path("-")
    if not is_input and not path.is_fifo():
        return load(path, sets, controls), path.read_text(encoding="utf-8")
    # A pipe, such as bash makes of `<(command)`, can be read only once.
    with nullcontext(sys.stdin.buffer) if is_input else path.open("rb") as stream:
        text = stream.read(MAX_BYTES + 1)
    document = read_text(text, "<stdin>" if is_input else str(path))
    return from_document(document, Path(), sets, controls), text.decode("utf-8-sig")


def scenarios(paths: list[Path], settings: list[str] | None) -> list[tuple[Scenario, str]]:
    """Load every scenario, with its text; the errors of all of them are reported together."""
    from tcplab.scenario import ScenarioErrors

    loaded: list[tuple[Scenario, str]] = []
    mistakes = []
    for path in paths:
        try:
            loaded.append(scenario(path, settings))
        except ScenarioErrors as problem:
            mistakes.extend(problem.errors)
    if mistakes:
        raise ScenarioErrors(mistakes)
    return loaded


def _where_from(paths: list[Path]) -> str:
    """Where results come from, for names that are not there, and for studies; empty when all are results."""
    from tcplab.results.listing import is_study
    from tcplab.shipped import scenario_names, study_names

    for path in paths:
        if is_study(path):
            return f"{path} is a study; results of its cells: {path}/cells"
        if path.exists():
            continue
        if str(path) in study_names():
            return f"{path} is a study: tcplab study run {path}, then tcplab study report DIRECTORY"
        if str(path) in scenario_names():
            return f"{path} is a scenario: tcplab run {path} makes a result in runs/"
        return "tcplab list shows the results in runs/"
    return ""


@contextmanager
def results(paths: list[Path]) -> Iterator[list[Run]]:
    """Load result directories; errors in them, found now or when they are read, are bad input."""
    import polars as pl

    from tcplab.results import ResultsError, load

    try:
        loaded = [load(path) for path in paths]
        for run in loaded:
            # Read now, so that an error names its file.
            _ = run.manifests, run.plan
        yield loaded
    except ResultsError as problem:
        code = Code.MACHINE if is_full(problem.__cause__) else Code.INPUT
        hint = "" if isinstance(problem.__cause__, PermissionError) else _where_from(paths)
        raise CommandError(str(problem), code, hint) from None
    except (*_CONTRADICTIONS, pl.exceptions.PolarsError) as problem:
        if os.environ.get("TCPLAB_DEBUG"):
            raise
        which = ", ".join(map(str, paths))
        reason = str(problem).strip().partition("\n")[0]
        raise CommandError(
            f"{which}: plan and tables do not match: {type(problem).__name__}: {reason} "
            "(damaged or changed since the run? TCPLAB_DEBUG=1 shows where)",
            Code.INPUT,
        ) from None


# Errors of arithmetic on results that no engine writes.
_CONTRADICTIONS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)
