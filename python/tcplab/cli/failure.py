"""Exit codes, and the one place where an exception becomes a message."""

from __future__ import annotations

import errno
import functools
import os
import select
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TextIO, TypeVar

import typer

from tcplab.safe_text import visible

if TYPE_CHECKING:
    from tcplab.engine.base import Problem

P = ParamSpec("P")
R = TypeVar("R")


class Code(IntEnum):
    """Meaning of the exit code."""

    DONE = 0
    NO = 1
    """A check or an expectation failed."""
    INPUT = 2
    """Wrong input."""
    MACHINE = 3
    """The machine cannot do it."""
    FAILED = 4
    """A run failed."""
    BUG = 70
    """tcplab is wrong (EX_SOFTWARE of sysexits.h)."""
    INTERRUPTED = 130
    UNREAD = 128 + 13
    """The reader of the output has left: what a shell says of a program that SIGPIPE ended."""


def code_of(problems: Iterable[Problem]) -> Code:
    """The code for what keeps an engine from running; DONE where nothing does."""
    fatal = [problem for problem in problems if problem.fatal]
    if any(problem.is_input for problem in fatal):
        return Code.INPUT
    return Code.MACHINE if fatal else Code.DONE


class CommandError(Exception):
    """Ends the command with a message, an exit code and, where there is one, what to do about it."""

    def __init__(self, message: str, code: Code, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Let `command` end with one clear message instead of a traceback (`TCPLAB_DEBUG=1` shows it)."""

    @functools.wraps(command)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                return command(*args, **kwargs)
            finally:
                # Left to the interpreter's exit, an error would be Python's report and no exit code of ours.
                sys.stdout.flush()
        except typer.Exit:
            raise
        except BaseException as problem:
            if isinstance(problem, (SystemExit, GeneratorExit)):
                raise
            raise typer.Exit(report(problem)) from None

    return call


def report(problem: BaseException) -> Code:
    """Say what ended the command, except to a reader that has left; returns the exit code.

    Raises the exception itself if `TCPLAB_DEBUG` asks for tracebacks.
    """
    has_left = isinstance(problem, BrokenPipeError) and _readers_left()
    if os.environ.get("TCPLAB_DEBUG") and not has_left:
        raise problem
    message, code = ("", Code.UNREAD) if has_left else _explain(problem)
    _drop_unwritten(sys.stdout)
    complain(visible(message, lines=True) + "\n" if message else "")
    return code


def complain(text: str) -> None:
    """Write to standard error, where it can be written."""
    with suppress(OSError):
        sys.stderr.write(text)
    _drop_unwritten(sys.stderr)


def _readers_left() -> bool:
    """Whether the other end of standard output or standard error is closed, as by `head` that has enough."""
    ends = select.poll()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            ends.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in ends.poll(0))


def _drop_unwritten(stream: TextIO) -> None:
    """Drop what a stream does not take: Python would try once more at its exit, and complain."""
    try:
        stream.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _explain(problem: BaseException) -> tuple[str, Code]:
    if isinstance(problem, CommandError):
        interrupted = problem.code is Code.INTERRUPTED
        return (f"tcplab: {problem}" if interrupted else _error(str(problem), problem.hint)), problem.code
    if isinstance(problem, KeyboardInterrupt):
        return "tcplab: interrupted", Code.INTERRUPTED
    if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
        return _error(f"{problem.strerror}", "raise the limit: ulimit -n 1024"), Code.MACHINE
    if isinstance(problem, OSError) and problem.errno in _DISK:
        where = f" {problem.filename}" if problem.filename else ""
        return _error(f"cannot write{where}: {problem.strerror}"), Code.MACHINE
    if isinstance(problem, FileNotFoundError) and not problem.filename and _is_nowhere():
        return _error("the working directory does not exist any more"), Code.INPUT
    if isinstance(problem, OSError) and problem.errno in _PATH and problem.filename:
        return _error(f"{problem.filename}: {problem.strerror}"), Code.INPUT
    if isinstance(problem, MemoryError):
        return _error("out of memory", "sample less often, or run fewer at a time (--jobs)"), Code.MACHINE
    known = _known(problem)
    if known is not None:
        return (mistakes_text(problem) if known is Code.INPUT else _error(str(problem))), known
    kind = type(problem).__name__
    first = str(problem).strip().splitlines()[0] if str(problem).strip() else "no message"
    return _error(f"internal error: {kind}: {first}", _REPORT), Code.BUG


def _is_nowhere() -> bool:
    """Whether the working directory has been removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def mistakes_text(problem: Any) -> str:
    """The mistakes of `ScenarioErrors`: in a compiler's form, or as any error if they are a whole file's."""
    return "\n".join(
        str(mistake) if mistake.line or mistake.path else _error(str(mistake), _missing(mistake))
        for mistake in problem.errors
    )


def _missing(mistake: Any) -> str:
    """The hint for a file that is not there."""
    from difflib import get_close_matches

    from tcplab.shipped import scenario_names

    if mistake.message != os.strerror(errno.ENOENT):
        return ""
    near = get_close_matches(mistake.file, scenario_names(), n=1)
    if near:
        return f"the shipped scenario with the nearest name is {near[0]}"
    return "tcplab examples list shows the shipped scenarios"


_REPORT = (
    "this is a bug in tcplab: report it with this command, its scenario, the output of `tcplab --version`, "
    "and what the command prints with TCPLAB_DEBUG=1"
)


def _error(message: str, hint: str = "") -> str:
    return f"tcplab: error: {message}" + (f"\nhint: {hint}" if hint else "")


# A path that someone gave.
_PATH = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP}
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG, errno.ENFILE, errno.EMFILE}


def is_full(problem: BaseException | None) -> bool:
    """Whether a disk could not take what was written."""
    return isinstance(problem, OSError) and problem.errno in _DISK


def _known(problem: BaseException) -> Code | None:
    """The code for our own errors. If their module is not loaded, none of them was raised."""
    for module, name, code in _OURS:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(problem, kind):
            return code
    return None


_OURS = (
    ("tcplab.scenario.errors", "ScenarioErrors", Code.INPUT),
    ("tcplab.results.errors", "ResultsError", Code.MACHINE),
)
