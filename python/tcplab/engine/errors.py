"""Errors of engines."""

from __future__ import annotations


class PlanError(ValueError):
    """The simulator cannot run a plan; `tcplab._core.Simulation` raises it."""

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}")
        self.where = where
        """Path in the plan, such as `flows.bulk.cc`."""
        self.message = message
        self.hint = hint
        """The setting that fixes it; empty where the message says it."""
