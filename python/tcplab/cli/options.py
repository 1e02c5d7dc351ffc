"""Arguments and options that several commands share, and how what they give is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcplab.cli.failure import Code, CommandError

if TYPE_CHECKING:
    from tcplab.engine.base import Engine
    from tcplab.results import Run
    from tcplab.scenario import Scenario

Scenarios = Annotated[
    list[Path], typer.Argument(metavar="SCENARIO", help="Scenario files.", show_default=False)
]
OneRun = Annotated[Path, typer.Argument(metavar="RUN", help="A result directory.", show_default=False)]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Result directories.", show_default=False)]
EngineName = Annotated[str, typer.Option("--engine", "-e", help="The engine that runs it.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="PATH=VALUE", help="Change a setting, as flows.bulk.cc=reno. Repeatable."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output and nothing else.")]


def engine_called(name: str) -> Engine:
    """The engine of this name."""
    from tcplab import engine

    try:
        return engine.load(name)
    except engine.UnknownEngineError as problem:
        raise CommandError(str(problem), Code.INPUT) from None


def scenarios(paths: list[Path], settings: list[str] | None) -> list[Scenario]:
    """Load every scenario; the mistakes of all of them are reported together."""
    from tcplab.cc.parameters import mistakes as of_controls
    from tcplab.scenario import ScenarioErrors, load

    loaded: list[Scenario] = []
    mistakes = []
    for path in paths:
        try:
            loaded.append(load(path, settings or (), (of_controls,)))
        except ScenarioErrors as problem:
            mistakes.extend(problem.errors)
    if mistakes:
        raise ScenarioErrors(mistakes)
    return loaded


def results(paths: list[Path]) -> list[Run]:
    """Load result directories."""
    from tcplab.results import ResultsError, load

    try:
        return [load(path) for path in paths]
    except ResultsError as problem:
        raise CommandError(str(problem), Code.INPUT) from None
