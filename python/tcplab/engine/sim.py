"""The simulator: exact, deterministic, and many times faster than real time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcplab.cc.plans import libraries, obstacles
from tcplab.engine.base import Outcome, Plan, Problem, Progress, Status

if TYPE_CHECKING:
    import polars as pl

# How long the simulator goes on between two looks at Ctrl-C and the progress display, milliseconds.
_STEP = 50


class SimEngine:
    """Runs plans in `tcplab._core`, which does not hold the interpreter's lock meanwhile."""

    name = "sim"
    exclusive = False

    def check(self, plan: Plan) -> list[Problem]:
        """Say what the simulator does not do, and what it ignores."""
        problems = [*_flows(plan), *_nodes(plan), *_emulator(plan), *_capture(plan)]
        return problems if any(problem.fatal for problem in problems) else [*problems, *_built(plan)]

    def run(self, plan: Plan, run_dir: Path, progress: Callable[[Progress], None]) -> Outcome:
        """Simulate the plan; KeyboardInterrupt out of `progress` ends it early with what there is."""
        from tcplab import _core
        from tcplab.results import write_table

        began = time.monotonic()
        simulation = _core.Simulation(json.dumps(plan), str(run_dir), libraries(plan))
        status, message = Status.DONE, ""
        done = False
        try:
            while not done:
                state = simulation.advance(_STEP)
                done = state.done
                progress(Progress(state.time, state.duration, state.goodput))
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            message = f"stopped at {state.time / 1e9:.3f} s of {state.duration / 1e9:g} s"
        facts = {**simulation.facts(), "wall_time": time.monotonic() - began}
        for name, frame in _tables(simulation.finish()):
            write_table(run_dir, name, frame)
        return Outcome(status, message, facts={**facts, "engine_version": _core.version()})


def _tables(written: dict[str, bytes]) -> Iterator[tuple[str, pl.DataFrame]]:
    import polars as pl

    for name, data in written.items():
        yield name, pl.read_ipc(BytesIO(data))


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
        cc: dict[str, Any] | None = flow.get("cc")
        if cc is not None and not cc.get("file") and cc["name"].removeprefix("tl_") not in controls:
            message = f"the simulator has no control called {cc['name']!r}"
            yield Problem(f"{where}.cc", message, f"use one of {', '.join(controls)}, or a C file: ./mine.c")
    for problem in obstacles(plan):
        yield Problem(*problem)


def _built(plan: Plan) -> Iterator[Problem]:
    """What only building it finds: parameters that a control does not have, or not with this value."""
    from tcplab import _core

    try:
        # One stream of each flow is as good as a hundred thousand, and takes no gigabytes.
        flows = [{**flow, "streams": min(flow["streams"], 1)} for flow in plan["flows"]]
        _core.Simulation(json.dumps({**plan, "flows": flows, "capture": None}), libraries=libraries(plan))
    except ValueError as error:
        where, _, message = str(error).partition(": ")
        yield Problem(where, message, "change it or leave it out")


def _nodes(plan: Plan) -> Iterator[Problem]:
    for node in plan["nodes"]:
        for key, what in (
            ("sysctls", "it has no kernel to set them in"),
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
