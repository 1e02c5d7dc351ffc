"""The simulator: exact, deterministic, and many times faster than real time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.cc.apart import Apart
from tcplab.cc.errors import ControlCrashError
from tcplab.cc.plans import libraries, obstacles
from tcplab.engine import accelerators
from tcplab.engine.base import Outcome, Problem, Progress, Status
from tcplab.engine.errors import PlanError

if TYPE_CHECKING:
    from tcplab import _core
    from tcplab.plan.types import Flow, Plan

# How long the simulator goes on between two looks at Ctrl-C and the progress display, milliseconds.
_STEP = 50


class SimEngine:
    """Runs plans in `tcplab._core`, which does not hold the interpreter's lock meanwhile.

    A plan that names C files runs in a process of its own, for they may do anything.
    """

    name = "sim"
    exclusive = False

    def executed(self, plan: Plan) -> Plan:
        """All of it."""
        return plan

    def check(self, plan: Plan) -> list[Problem]:
        """Say what the simulator does not do, and what it ignores."""
        problems = [*_flows(plan), *_nodes(plan), *_emulator(plan), *_capture(plan)]
        return problems if any(problem.fatal for problem in problems) else [*problems, *_built(plan)]

    def preparing(self, plans: Sequence[Plan]) -> AbstractContextManager[None]:
        """Its runs have nothing in common."""
        return nullcontext()

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        """Simulate the plan; KeyboardInterrupt out of `progress` ends it early with what there is.

        A control of the user's own that crashes or does not return makes it FAILED.
        """
        from tcplab import _core
        from tcplab.results.parts import TableParts

        began = time.monotonic()
        state = Progress(0, plan["duration"])
        status, message = Status.DONE, ""
        facts: dict[str, Any] = {"engine_version": _core.version()}
        warnings: list[str] = []
        try:
            with (
                TableParts(run_dir, plan) as parts,
                _simulation(plan, run_dir, lambda: progress(state)) as simulation,
            ):
                try:
                    done = False
                    while not done:
                        now = simulation.advance(_STEP)
                        for name, data in simulation.take_full().items():
                            parts.add(name, data)
                        done, state = now.done, Progress(now.time, now.duration, now.goodput)
                        progress(state)
                except KeyboardInterrupt:
                    status = Status.INTERRUPTED
                    message = f"stopped at {state.time / 1e9:.3f} s of {state.duration / 1e9:g} s"
                facts |= simulation.facts()
                for number, *counts in facts.pop("accelerators"):
                    node = plan["nodes"][number]["name"]
                    counted = dict(zip(("accepted", "refused", "passed"), counts, strict=True))
                    facts.setdefault("nodes", {})[node] = {"accelerator": counted}
                    warnings += accelerators.full(node, counted, "its `connections` or its `memory`")
                parts.finish(simulation.finish())
        except ControlCrashError as problem:
            # The recorded tables were in the process that is gone.
            message = f"{message}; {problem}" if message else str(problem)
            status = Status.FAILED if status is Status.DONE else status
        facts["wall_time"] = time.monotonic() - began
        return Outcome(status, message, tuple(warnings), facts)


@contextmanager
def _simulation(plan: Plan, run_dir: Path, waiting: Callable[[], None]) -> Iterator[_core.Simulation | Apart]:
    """The simulation of a plan: in this process, or, where it names C files, in one of its own."""
    from tcplab import _core

    files = libraries(plan)
    if not files:
        yield _core.Simulation(json.dumps(plan), str(run_dir))
        return
    with Apart(files, waiting) as apart:
        apart.open(json.dumps(plan), str(run_dir), files)
        yield apart


def _flows(plan: Plan) -> Iterator[Problem]:
    from tcplab import _core

    controls = sorted(_core.controls())
    for flow in plan["flows"]:
        where = f"flows.{flow['name']}"
        if flow.get("generator", "native") != "native":
            yield Problem(
                f"{where}.generator",
                f"{flow['generator']} is a program and needs a real network stack",
                "leave `generator` out",
            )
        cc = flow.get("cc")
        if cc is not None and not cc.get("file") and cc["name"].removeprefix("tl_") not in controls:
            message = f"the simulator has no control called {cc['name']!r}"
            yield Problem(f"{where}.cc", message, f"use one of {', '.join(controls)}, or a C file: ./mine.c")
    for problem in obstacles(plan):
        yield Problem(*problem)


def _built(plan: Plan) -> Iterator[Problem]:
    """Problems found only by building it: parameters that a control does not have, or not with this value.

    Nothing of a user's file runs for it: `obstacles` has looked at those, and Reno stands in for them.
    """
    from tcplab import _core

    def built_in(flow: Flow) -> Flow:
        cc = flow.get("cc")
        return {**flow, "cc": {"name": "reno", "params": {}}} if cc and cc.get("file") else flow

    try:
        flows = [built_in(flow) for flow in plan["flows"]]
        _core.Simulation(json.dumps({**plan, "flows": flows, "capture": None}))
    except PlanError as refused:
        yield Problem(refused.where, refused.message, refused.hint)


def _nodes(plan: Plan) -> Iterator[Problem]:
    for node in plan["nodes"]:
        for key, what in (
            ("sysctls", "it has no kernel to apply them to"),
            ("cpus", "nothing is pinned in it"),
        ):
            if node.get(key):
                yield Problem(
                    f"nodes.{node['name']}.{key}", f"the simulator ignores {key}: {what}", fatal=False
                )


def _emulator(plan: Plan) -> Iterator[Problem]:
    if plan["emulator"] != "tcplab":
        yield Problem("emulator", "the simulator ignores emulator: its links are its own", fatal=False)


def _capture(plan: Plan) -> Iterator[Problem]:
    capture = plan.get("capture")
    if not capture or capture["at"] != "host":
        return
    for node in plan["nodes"]:
        if node["name"] in capture["nodes"] and (node.get("tcp") or {}).get("gro"):
            yield Problem(
                "capture.at",
                f"{node['name']} merges incoming segments (gro), but its capture shows them one by one, as "
                "they came; only what it sends is captured as super-packets",
                fatal=False,
            )
