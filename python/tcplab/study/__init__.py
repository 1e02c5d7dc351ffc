"""Studies: a scenario over a grid of parameters, with repetitions, statistics and expectations.

From Python: `run` and `open_results` (see `tcplab.study.api`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcplab.study.api import StudyResults, open_results, run

__all__ = ["StudyResults", "open_results", "run"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("tcplab.study.api"), name)
