"""Congestion controls for the scenario language: which there are, and their parameters."""

from __future__ import annotations

import platform
from pathlib import Path

from tcplab.cc.compiler import Source
from tcplab.cc.describe import ALIASES, Description, describe, described_file, known_as, shipped
from tcplab.cc.errors import ControlFileError, NoCompilerError
from tcplab.scenario.reading import Known


class Controls:
    """tcplab's own controls, those of this machine's kernel, and C files.

    Each is looked at once: a scenario may have a flow between every two of many hosts.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str, Path], Known | str | bool | None] = {}

    def known(self, name: str, folder: Path) -> Known | str | bool | None:
        """See `tcplab.scenario.reading.Controls`."""
        asked = (name, folder)
        if asked not in self._answers:
            self._answers[asked] = _known(name, folder)
        return self._answers[asked]

    def names(self) -> list[str]:
        """Every name that a scenario may give."""
        from tcplab.testbed import controls

        own = [*shipped(), *ALIASES]
        return [*own, *(f"tl_{one}" for one in own), *controls.available()]


def _known(name: str, folder: Path) -> Known | str | bool | None:
    if name.endswith(".c"):
        try:
            return _answer(described_file(Source.read(folder / name)))
        except ControlFileError as problem:
            return "\n".join([problem.what, *problem.details()])
        except NoCompilerError:
            return True  # only an engine knows
    if known_as(name) in shipped():
        return _answer(describe(name))
    return True if _is_the_kernels(name) else None


def _answer(control: Description) -> Known:
    # A value within half a step of an end is taken for the end.
    return control.name, [
        (p.name, p.minimum - p.step / 2, p.maximum + p.step / 2, p.range) for p in control.parameters
    ]


def _is_the_kernels(name: str) -> bool:
    """Whether the running kernel has a control of this name, or a module of it."""
    # Most scenarios name none but tcplab's own: the kernel's take time to import.
    from tcplab.testbed import controls

    known = controls.kernel_name(name)
    return known in controls.available() or known in controls.loadable(platform.release())
