"""Settings of a process that is only ours: the command, or a worker of a study."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys

# Each thread of OpenBLAS spins for 0.05 s before it sleeps, and no matrix here is worth one.
_SETTING = "OPENBLAS_NUM_THREADS"
_is_ours = False


def settle() -> None:
    """Leave out what a short command would spend a fifth of its time on; call it before importing numpy."""
    global _is_ours
    _is_ours = _is_ours or _SETTING not in os.environ
    os.environ.setdefault(_SETTING, "1")
    # Modules and most data stay to the end. The garbage collector would look through them again and again,
    gc.set_threshold(100_000)
    # and once more at the exit.
    atexit.register(_leave_out_last_collection)


def _leave_out_last_collection() -> None:
    # DuckDB prints a report of all its objects that this collection has not freed.
    if "duckdb" not in sys.modules:
        gc.freeze()


def open_streams() -> None:
    """Let every standard stream be there, and standard output take any text and have a width."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # It was closed (`>&-`). A file opened later would get its number, and what is printed.
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    # A locale without ± or µ gets a question mark, not an error: the locale C has `surrogateescape`.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors in ("strict", "surrogateescape"):
        sys.stdout.reconfigure(errors="replace")
    # A terminal of unknown size has COLUMNS=0 in some shells; rich takes it at its word, and prints nothing.
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, and SIGHUP unless nohup(1) has it ignored: they end a command as Ctrl-C does."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return (signal.SIGTERM,)
    return (signal.SIGTERM, signal.SIGHUP)


def given_environment() -> dict[str, str]:
    """The environment that this process was given, for programs of the user's own."""
    return {name: value for name, value in os.environ.items() if name != _SETTING or not _is_ours}
