"""The controls that a plan names by their files: what an engine needs of them, and what a result keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.cc.compiler import Source, native
from tcplab.cc.describe import described_file
from tcplab.cc.errors import ControlFileError, NoCompilerError

if TYPE_CHECKING:
    from tcplab.plan.types import Plan


def source_of(cc: Mapping[str, Any]) -> Source | None:
    """The file of a plan's `cc`; none for a control that is called by its name."""
    return Source(Path(cc["file"]), str(cc["source"])) if cc.get("file") else None


def sources(plan: Plan) -> list[Source]:
    """Every file that a plan names, once."""
    found = (source_of(flow["cc"]) for flow in plan["flows"] if flow.get("cc"))
    return list(dict.fromkeys(source for source in found if source is not None))


def libraries(plan: Plan) -> dict[str, str]:
    """The shared object of each file; raises ControlFileError and NoCompilerError."""
    return {str(source.file): str(native(source)) for source in sources(plan)}


def obstacles(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Mistakes that keep the files from being controls of the simulator: where, what, and how to fix it."""
    for flow in plan["flows"]:
        source = source_of(flow["cc"]) if flow.get("cc") else None
        if source is None:
            continue
        try:
            described = described_file(source)
        except ControlFileError as problem:
            yield f"flows.{flow['name']}.cc", str(problem), ""
        except NoCompilerError as problem:
            yield f"flows.{flow['name']}.cc", f"{flow['cc']['name']}: {problem.message}", problem.hint
        else:
            for wrong in described.faults(flow["cc"].get("params") or {}):
                yield f"flows.{flow['name']}.cc", wrong, "change it or leave it out"


def keep(plan: Plan, result_dir: Path) -> None:
    """Write the plan's files into a result directory; raises ResultsError."""
    from tcplab.results.errors import ResultsError
    from tcplab.results.files import write_text
    from tcplab.results.writer import CONTROLS

    taken: set[str] = set()
    for source in sources(plan):
        file = source.file
        names = (file.name, *(f"{file.stem}-{number}.c" for number in range(2, 10_000)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        place = result_dir / CONTROLS
        try:
            place.mkdir(exist_ok=True)
        except OSError as problem:
            raise ResultsError.from_os(place, problem) from problem
        write_text(place / name, source.text)
