"""tcplab: a laboratory for TCP performance.

    import tcplab

    run = tcplab.run("scenario.yaml", set={"flows.bulk.cc": "reno"}, repeat=3)
    run.flows                      # polars frames, one for each table
    run.plot.timeseries()

Names are imported when first used, so `import tcplab` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

# `typing` would take a third of the time until Ctrl-C is handled.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tcplab import captures, study
    from tcplab.api import Run, RunFailedError, check, compare, load, run
    from tcplab.results import ResultsError
    from tcplab.runner import UnsupportedError
    from tcplab.scenario import Scenario, ScenarioErrors

__all__ = [
    "ResultsError",
    "Run",
    "RunFailedError",
    "Scenario",
    "ScenarioErrors",
    "UnsupportedError",
    "captures",
    "check",
    "compare",
    "load",
    "run",
    "study",
]

_HOMES = {
    "ResultsError": "tcplab.results",
    "Run": "tcplab.api",
    "RunFailedError": "tcplab.api",
    "Scenario": "tcplab.scenario",
    "ScenarioErrors": "tcplab.scenario",
    "UnsupportedError": "tcplab.runner",
    "check": "tcplab.api",
    "compare": "tcplab.api",
    "load": "tcplab.api",
    "run": "tcplab.api",
}


# Parts of the library that are named as `tcplab.study.run`.
_MODULES = ("captures", "study")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tcplab.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
