"""Mistakes of a scenario's controls: unknown ones, unknown parameters, values outside their ranges."""

from __future__ import annotations

import difflib
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path as File

from tcplab.cc.compiler import Source
from tcplab.cc.describe import ALIASES, Description, describe, described_file, known_as, shipped
from tcplab.cc.errors import ControlFileError, NoCompilerError
from tcplab.scenario.document import Path
from tcplab.scenario.errors import ScenarioError
from tcplab.scenario.model import Scenario
from tcplab.scenario.where import Where
from tcplab.testbed import controls


def mistakes(scenario: Scenario, refused: Iterable[Path] = ()) -> list[ScenarioError]:
    """Every one of them; `refused` are paths that were refused before, where something else stands in."""
    where = Where(scenario)
    gone = [path[:3] for path in refused]
    found: list[ScenarioError] = []
    for index, flow in enumerate(scenario.flows):
        cc = getattr(flow, "cc", None)
        path: Path = ("flows", index, "cc")
        if cc is None or path in gone or path[:2] in gone:
            continue
        try:
            described = _described(cc.name, scenario.base)
        except ControlFileError as problem:
            message = "\n".join([problem.what, *problem.details()])
            found.append(where.error((*path, "name"), f"{cc.name} {message}"))
            continue
        if described is None and not cc.name.endswith(".c") and not _is_the_kernels(cc.name):
            found.append(_unknown(where, (*path, "name"), cc.name))
        if described is not None:
            found += _parameters(where, path, described, cc.params)
    return found


def _is_the_kernels(name: str) -> bool:
    """Whether the running kernel has a control of this name, or a module of it."""
    known = controls.kernel_name(name)
    return known in controls.available() or known in controls.loadable(platform.release())


def _unknown(where: Where, path: Path, name: str) -> ScenarioError:
    own = [*shipped(), *ALIASES]
    near = difflib.get_close_matches(name, [*own, *(f"tl_{one}" for one in own), *controls.available()], n=1)
    message = f"there is no congestion control `{name}`: `tcplab cc list` shows those there are"
    return where.error(path, message, next(iter(near), ""))


def _described(name: str, base: File) -> Description | None:
    """None where only the engine can tell: a control of the kernel's, a machine without a compiler."""
    if not name.endswith(".c"):
        return describe(name) if known_as(name) in shipped() else None
    file = base / name
    if not file.is_file():
        return None  # told already
    try:
        return described_file(Source.read(file))
    except NoCompilerError:
        return None


def _parameters(
    where: Where, path: Path, control: Description, params: dict[str, float]
) -> Iterator[ScenarioError]:
    known = {parameter.name: parameter for parameter in control.parameters}
    for name, value in params.items():
        place = (*path, "params", name)
        if name not in known:
            near = next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), "")
            has = f"; it has {', '.join(known)}" if known and not near else "" if known else "; it has none"
            message = f"{control.name} has no parameter `{name}`{has}"
            yield where.error(place, message, near, at_key=True)
        elif not known[name].holds(value):
            yield where.error(place, f"{value:g} is outside {known[name].range}")
