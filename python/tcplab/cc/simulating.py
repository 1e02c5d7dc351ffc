"""The other end of `tcplab.cc.apart`: the process that runs a user's controls."""

from __future__ import annotations

import json
import os
import resource
import struct
from typing import Any

from tcplab.cc.watch import RunningOperations

_NOTHING = os.devnull


def main(watch: str, stall: str) -> None:
    """Obey the commands on standard input until it ends."""
    commands, answers = os.dup(0), os.dup(1)
    # Controls may write what they like.
    os.dup2(2, 1)
    nothing = os.open(_NOTHING, os.O_RDONLY)
    os.dup2(nothing, 0)
    _Server(commands, answers, int(watch), int(stall)).serve()


class _Server:
    def __init__(self, commands: int, answers: int, watch: int, stall: int) -> None:
        self._commands = os.fdopen(commands, "rb")
        self._answers = os.fdopen(answers, "wb")
        self._watch_fd = watch
        self._stall = stall
        self._watch: RunningOperations | None = None
        self._simulation: Any = None

    def serve(self) -> None:
        while head := self._commands.read(8):
            command = json.loads(self._commands.read(struct.unpack("!Q", head)[0]))
            tables: dict[str, bytes] = {}
            try:
                answer = getattr(self, f"_{command.pop('do')}")(tables, **command)
            except OSError as problem:
                # The loader of libraries gives a text alone.
                known = [problem.errno, problem.strerror, problem.filename]
                answer = {"error": str(problem)} if problem.errno is None else {"errno": known}
            except ValueError as problem:
                answer = {"error": str(problem)}
            data = json.dumps(answer).encode()
            self._answers.write(struct.pack("!Q", len(data)) + data)
            for table in tables.values():
                self._answers.write(table)
            self._answers.flush()

    def _attach(self, _: dict[str, bytes], libraries: list[str]) -> dict[str, Any]:
        from tcplab import _core

        # Before any of theirs runs.
        assert _core
        self._limit(self._stall)
        self._watch = RunningOperations(map(str, range(len(libraries))), self._watch_fd)
        for place, library in enumerate(libraries):
            self._watch.attach(place, library)
        return {"pid": os.getpid()}

    def _open(
        self, _: dict[str, bytes], plan: str, capture_dir: str | None, libraries: dict[str, str]
    ) -> dict[str, Any]:
        from tcplab import _core

        self._limit(None)
        self._simulation = _core.Simulation(plan, capture_dir, libraries)
        return {}

    def _advance(self, _: dict[str, bytes], wall_ms: int) -> dict[str, Any]:
        self._limit(self._stall)
        state = self._simulation.advance(wall_ms)
        return {
            "time": state.time,
            "duration": state.duration,
            "done": state.done,
            "goodput": state.goodput,
        }

    def _facts(self, _: dict[str, bytes]) -> dict[str, Any]:
        return dict(self._simulation.facts())

    def _take_full(self, tables: dict[str, bytes]) -> dict[str, Any]:
        self._limit(None)
        tables |= self._simulation.take_full()
        return {"tables": {name: len(table) for name, table in tables.items()}}

    def _finish(self, tables: dict[str, bytes]) -> dict[str, Any]:
        self._limit(None)
        tables |= self._simulation.finish()
        return {"tables": {name: len(table) for name, table in tables.items()}}

    def _limit(self, seconds: int | None) -> None:
        """From now on so much CPU time, after which the kernel ends this process (SIGXCPU)."""
        _, maximum = resource.getrlimit(resource.RLIMIT_CPU)
        limit = maximum
        if seconds is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
            if maximum != resource.RLIM_INFINITY:
                limit = min(limit, maximum)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, maximum))
