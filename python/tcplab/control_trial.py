"""Everything that shows whether a control is fit for use: step by step, each with its reason."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any

from tcplab.cc import smoke
from tcplab.cc.compiler import Source, ebpf, native
from tcplab.cc.describe import described_file
from tcplab.cc.errors import ControlFileError, NoCompilerError
from tcplab.testbed.control_loading import Held, RefusedError
from tcplab.testbed.controls import Ours, loader
from tcplab.testbed.errors import TestbedError

# Both engines carry the same goodput within this factor, or else the control is not the same in them.
_APART = 1.5


class Verdict(StrEnum):
    """The outcome of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class Outcome(Enum):
    """The simulator's verdict on a file."""

    RUNS = auto()
    FAILED = auto()
    NO_CONTROL = auto()
    """The other half would say the same."""
    UNKNOWN = auto()


@dataclass(frozen=True)
class Step:
    """One thing that was tried."""

    name: str
    verdict: Verdict
    message: str = ""
    details: tuple[str, ...] = ()
    """More lines: a compiler's messages, the end of the verifier's log."""


def steps(file: Path) -> Iterator[Step]:
    """Try a control out. A step that needs one that failed is left out."""
    source = Source.read(file)
    outcome, simulated = yield from _simulator(source)
    if outcome is not Outcome.NO_CONTROL:
        yield from _kernel(source, simulated, runs=outcome is not Outcome.FAILED)


def _simulator(source: Source) -> Generator[Step, None, tuple[Outcome, smoke.Smoke | None]]:
    name = "compiles for the simulator"
    try:
        native(source)
        control = described_file(source)
    except ControlFileError as problem:
        yield _wrong(name, problem)
        return Outcome.NO_CONTROL, None
    except NoCompilerError as problem:
        yield Step(name, Verdict.SKIPPED, str(problem))
        return Outcome.UNKNOWN, None
    parameters = ", ".join(f"{one.name} {one.usual} ({one.range})" for one in control.parameters)
    said = [f"{control.name}; phases {', '.join(control.phases)}" if control.phases else control.name]
    said += [f"parameters {parameters}"] if parameters else []
    shows = ", ".join(one.label for one in control.gauges)
    said += [f"shows {shows}"] if shows else []
    yield Step(name, Verdict.OK, "; ".join(said))
    name = f"runs {smoke.SECONDS} s in the simulator"
    try:
        done = smoke.simulated(source)
    except smoke.SmokeError as problem:
        yield Step(name, Verdict.FAILED, str(problem))
        return Outcome.FAILED, None
    yield Step(name, Verdict.OK, _came_to(done.goodput, done.retransmits, done.phases))
    return Outcome.RUNS, done


def _kernel(source: Source, simulated: smoke.Smoke | None, *, runs: bool) -> Iterator[Step]:
    name = "compiles for the kernel"
    try:
        ebpf(source)
    except ControlFileError as problem:
        yield _wrong(name, problem)
        return
    except NoCompilerError as problem:
        yield Step(name, Verdict.SKIPPED, str(problem))
        return
    yield Step(name, Verdict.OK)
    name = "loads into the kernel"
    obstacle = loader()["obstacle"]
    if obstacle is not None:
        yield Step(name, Verdict.SKIPPED, f"{obstacle['message']} ({obstacle['hint']})")
        return
    try:
        with Held(Ours(source.file.name, source=source)) as held:
            registered, other = held.registered, held.other
    except RefusedError as problem:
        yield _refused(name, problem)
        return
    except TestbedError as problem:
        yield Step(name, Verdict.FAILED, str(problem))
        return
    taken = f", for another process offers a {other}" if other else ""
    yield Step(name, Verdict.OK, f"as {registered}{taken}")
    name = f"runs {smoke.SECONDS} s on the kernel"
    if runs:
        step, ran = _run(name, source)
        yield step
        if ran and simulated:
            yield _agreement(simulated, ran)


@dataclass(frozen=True)
class _Ran:
    """The outcome of the run on the kernel."""

    goodput: float
    """Of the whole run, bit/s."""
    overload: str
    """Why the run says little; empty if it does not."""


def _agreement(simulated: smoke.Smoke, ran: _Ran) -> Step:
    """Whether both engines had the same of it."""
    name = "does the same on both"
    if ran.overload:
        return Step(name, Verdict.SKIPPED, f"the machine was overloaded: {ran.overload}")
    less, more = sorted((simulated.goodput, ran.goodput))
    if more > _APART * less:
        said = (
            f"{simulated.goodput / 1e6:.2f} Mbit/s in the simulator, {ran.goodput / 1e6:.2f} on the kernel: "
            "look for variables without a value, and for what the two treat differently (docs/controls.md)"
        )
        return Step(name, Verdict.FAILED, said)
    return Step(name, Verdict.OK)


def _run(name: str, source: Source) -> tuple[Step, _Ran | None]:
    from tcplab import engine, runner
    from tcplab.progress import watcher
    from tcplab.results import load
    from tcplab.scenario import from_data

    scenario = from_data(smoke.scenario(source.file))
    chosen = engine.load("kernel")
    try:
        prepared = runner.prepare(scenario, source="smoke", engine=chosen)
    except runner.UnsupportedError as problem:
        first = problem.problems[0]
        said = f"{first.message} ({first.fix})" if first.fix else first.message
        return Step(name, Verdict.SKIPPED, said), None
    with tempfile.TemporaryDirectory(prefix="tcplab-cc-") as folder:
        place = Path(folder) / "run"
        runner.claim(prepared, place)
        with watcher(quiet=True) as display:
            (finished,) = runner.execute([(prepared, place)], watcher=display)
        if finished.message or finished.status.value != "done":
            return Step(name, Verdict.FAILED, finished.message or finished.status.value), None
        run: Any = load(place)
        received = int(run.flows["bytes_received"].sum())
        phases = tuple(dict.fromkeys(run.sockets["phase"].drop_nulls().to_list()))
        retransmitted = int(run.flows["retransmits"].sum())
        overload = next((one.overload for one in run.manifests.values() if one.overload), "")
    if not received:
        return Step(name, Verdict.FAILED, "nothing arrived"), None
    goodput = received * 8 / smoke.SECONDS
    return Step(name, Verdict.OK, _came_to(goodput, retransmitted, phases)), _Ran(goodput, overload)


def _came_to(goodput: float, retransmits: int, phases: tuple[str, ...]) -> str:
    went = f"; {', '.join(phases)}" if phases else ""
    return f"{goodput / 1e6:.2f} Mbit/s of 20, {retransmits} retransmits{went}"


def _wrong(name: str, problem: ControlFileError) -> Step:
    return Step(name, Verdict.FAILED, f"{Path(problem.file).name} {problem.what}", tuple(problem.details()))


def _refused(name: str, problem: RefusedError) -> Step:
    refusal = problem.refusal
    if refusal is None:
        return Step(name, Verdict.FAILED, str(problem))
    place = f"{Path(refusal['file']).name}:{refusal['line']}: " if refusal["file"] else ""
    words = refusal["meaning"] or refusal["verdict"]
    said = f"rejected by the verifier. {place}{words}"
    quoted = [f"    {refusal['source']}"] if refusal["source"] else []
    log = [f"  | {line}" for line in refusal["log"].splitlines()]
    return Step(name, Verdict.FAILED, said, (*quoted, "  end of the verifier's log:", *log))
