"""A simulation with a user's own controls, in a process of its own: all that a crash takes along."""

from __future__ import annotations

import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tcplab
from tcplab.cc import companion
from tcplab.cc.errors import ControlCrashError, printable
from tcplab.cc.watch import At, RunningOperations

STALL = 5
"""CPU time, seconds, in which 50 ms of work must be done."""
# How long it may be asleep while an answer is awaited, seconds.
_ASLEEP = 10.0
# How often whoever waits is asked whether to go on, seconds.
_TICK = 0.1
# How long what was asked before an interruption may still take, seconds.
_AFTERWARDS = 1.0
# Of what it writes to standard error the end is kept.
_WORDS = 8192
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tcplab.cc.simulating import main; main(*sys.argv[1:])"
)
_SIGNALS = {
    signal.SIGSEGV: "null or invalid pointer",
    signal.SIGBUS: "invalid pointer",
    signal.SIGFPE: "division by zero",
    signal.SIGILL: "undefined behavior",
    signal.SIGABRT: "stopped for undefined behavior",
}


@dataclass(frozen=True)
class Progress:
    """As that of `tcplab._core`."""

    time: int
    duration: int
    done: bool
    goodput: dict[str, float]


class Apart:
    """A process that simulates plans, one after the other, with the controls of `libraries`.

    `libraries` has the shared object of each C file. `waiting` is called every 0.1 s while an answer is
    awaited; what it raises stops the waiting, and from then on answers have a second. Every method raises
    ControlCrashError when the process ends, or does not go on.
    """

    def __init__(self, libraries: Mapping[str, str], waiting: Callable[[], None] = lambda: None) -> None:
        self._waiting = waiting
        self._watch = RunningOperations(Path(file).name for file in libraries)
        # `-I` leaves the environment's packages in place; only the tree this came from is added.
        root = str(Path(tcplab.__file__).parents[1])
        command = [sys.executable, "-I", "-c", _START, root, str(self._watch.fd), str(STALL)]
        self._process = companion.start(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(self._watch.fd,),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._commands = self._process.stdin.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._selector.register(self._process.stderr, selectors.EVENT_READ)
        self._buffer = bytearray()
        self._words = b""
        self._owed = 0
        self._size: int | None = None
        self._pid = 0
        try:
            answer = self._ask({"do": "attach", "libraries": list(libraries.values())})
            if "pid" not in answer:
                raise self._crash(f"it cannot be loaded: {answer.get('error') or answer['errno'][1]}")
            self._pid = int(answer["pid"])
        except BaseException:
            self.close()
            raise

    def open(self, plan: str, capture_dir: str | None, libraries: Mapping[str, str]) -> None:
        """Begin a simulation; raises ValueError and OSError as `tcplab._core.Simulation` does."""
        answer = self._ask(
            {"do": "open", "plan": plan, "capture_dir": capture_dir, "libraries": dict(libraries)}
        )
        if "errno" in answer:
            raise OSError(*answer["errno"])
        if "error" in answer:
            raise ValueError(answer["error"])

    def advance(self, wall_ms: int) -> Progress:
        """Simulate for so many milliseconds of real time, or until the run ends."""
        answer = self._ask({"do": "advance", "wall_ms": wall_ms})
        if "errno" in answer:
            raise OSError(*answer["errno"])
        return Progress(**answer)

    def facts(self) -> dict[str, Any]:
        """Progress so far."""
        return self._ask({"do": "facts"})

    def take_full(self) -> dict[str, bytes]:
        """The rows of full tables by name, as Arrow IPC files; the simulation forgets them."""
        return self._tables("take_full")

    def finish(self) -> dict[str, bytes]:
        """The tables by name, as Arrow IPC files, without rows taken before. The run need not have ended."""
        return self._tables("finish")

    def _tables(self, command: str) -> dict[str, bytes]:
        answer = self._ask({"do": command})
        if "errno" in answer:
            raise OSError(*answer["errno"])
        return {name: self._take(size) for name, size in answer["tables"].items()}

    def no_window(self) -> At | None:
        """The first operation that left the window at 0 packets; none if none did."""
        return self._watch.no_window()

    def close(self) -> None:
        """End the process."""
        companion.end(self._process)
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._watch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        self._settle()
        data = json.dumps(command).encode()
        self._send(struct.pack("!Q", len(data)) + data)
        self._owed += 1
        return self._answer()

    def _settle(self) -> None:
        while self._owed:
            self._answer()

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._commands, view) :]
        except BrokenPipeError:
            raise self._ended() from None

    def _answer(self) -> dict[str, Any]:
        # An exception from `waiting` may come between the two; the rest is read later.
        if self._size is None:
            (self._size,) = struct.unpack("!Q", self._take(8))
        answer: dict[str, Any] = json.loads(self._take(self._size))
        self._owed -= 1
        self._size = None
        return answer

    def _take(self, size: int) -> bytes:
        asleep: float | None = None
        while len(self._buffer) < size:
            ready = self._selector.select(_TICK)
            for key, _ in ready:
                data = os.read(key.fd, 1 << 20)
                if key.fileobj is self._process.stderr:
                    self._words = (self._words + data)[-_WORDS:]
                    if not data:
                        self._selector.unregister(key.fileobj)
                elif data:
                    self._buffer += data
                else:
                    raise self._ended()
            if ready:
                continue
            try:
                self._waiting()
            except BaseException:
                self._waiting = self._hurry()
                raise
            now = time.monotonic()
            asleep = (asleep or now) if self._sleeps() else None
            if asleep and now - asleep > _ASLEEP:
                raise self._crash(f"it did not return, and has been asleep for {_ASLEEP:g} s")
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _hurry(self) -> Callable[[], None]:
        """In place of who has been asked whether to go on, and does not want to."""
        deadline = time.monotonic() + _AFTERWARDS

        def waiting() -> None:
            if time.monotonic() > deadline:
                raise self._crash("it did not return")

        return waiting

    def _sleeps(self) -> bool:
        """Whether it waits for something, other than for a CPU or a disk."""
        try:
            stat = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in "STt"

    def _ended(self) -> ControlCrashError:
        """Why there is no more to read."""
        self._drain()
        code = self._process.wait()
        said = [printable(line) for line in self._words.decode(errors="replace").splitlines() if line.strip()]
        undefined = next((line for line in said if "runtime error:" in line), None)
        if undefined is not None:
            return self._crash(undefined.replace("runtime error: ", ""))
        if code == -signal.SIGXCPU:
            return self._crash(f"it did not return within {STALL} s of CPU time", signal.SIGXCPU)
        if code < 0:
            number = signal.Signals(-code)
            return self._crash(_SIGNALS.get(number, "the process was ended"), number)
        if self._watch.running() is not None or not said:
            return self._crash(f"it ended the process with exit code {code}")
        return self._crash(said[-1])

    def _drain(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        with suppress(OSError, ValueError):
            os.set_blocking(stderr.fileno(), False)
            self._words = (self._words + (stderr.read() or b""))[-_WORDS:]

    def _crash(self, what: str, number: signal.Signals | None = None) -> ControlCrashError:
        at = self._watch.running()
        return ControlCrashError(at, what, number, self._watch.names)
