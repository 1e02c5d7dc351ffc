"""Engines by name. They are imported when asked for, so that naming them costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
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
        super().__init__(f"unknown engine {name!r} (engines: {', '.join(names())})")
        self.name = name

    def __reduce__(self) -> tuple[type[UnknownEngineError], tuple[str]]:
        """Let it leave the process: pickle would make it from its message alone."""
        return type(self), (self.name,)


def names() -> list[str]:
    """The engines there are."""
    return list(_ENGINES)


def load(name: str, at: Mapping[str, str] | None = None) -> Engine:
    """The engine called `name`; that of real hosts with the URL of each, by its name in the scenario.

    Without `at`, addresses of hosts can only stand in the scenario. Raises `UnknownEngineError`, and
    `ValueError` for hosts that it does not understand or have.
    """
    if name not in _ENGINES:
        raise UnknownEngineError(name)
    module, kind = _ENGINES[name]
    made = getattr(importlib.import_module(module), kind)
    if at is not None and not (isinstance(at, Mapping) and all(isinstance(url, str) for url in at.values())):
        raise TypeError(f"at={at!r}: expected a dictionary, such as {{'left': 'ssh://left.example'}}")
    if at and not hasattr(made, "at"):
        raise ValueError(f"the engine {name} has no real hosts: use remote")
    engine: Engine = made() if at is None or not hasattr(made, "at") else made.at(at)
    return engine
