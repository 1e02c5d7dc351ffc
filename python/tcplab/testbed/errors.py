"""Errors of a testbed."""

from __future__ import annotations


class TestbedError(Exception):
    """A network could not be built or a process in it has failed."""

    __test__ = False

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint


class InputFileError(TestbedError):
    """A file that the scenario names is wrong."""
