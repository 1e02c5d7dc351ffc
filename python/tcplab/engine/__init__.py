"""Engines by name. They are imported when asked for, so that naming them costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcplab.engine.base import Engine

_ENGINES = {
    "sim": ("tcplab.engine.sim", "SimEngine"),
    "kernel": ("tcplab.engine.kernel", "KernelEngine"),
    "remote": ("tcplab.engine.remote", "RemoteEngine"),
}


class UnknownEngineError(ValueError):
    """There is no engine of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no engine is called {name!r}: there is {', '.join(names())}")
        self.name = name


def names() -> list[str]:
    """The engines there are."""
    return list(_ENGINES)


def load(name: str) -> Engine:
    """The engine called `name`; raises `UnknownEngineError`."""
    if name not in _ENGINES:
        raise UnknownEngineError(name)
    module, kind = _ENGINES[name]
    engine: Engine = getattr(importlib.import_module(module), kind)()
    return engine
