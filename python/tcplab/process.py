"""Settings of a process that is only ours: the command, or a worker of a study."""

from __future__ import annotations

import atexit
import gc
import os


def settle() -> None:
    """Leave out what a short command would spend a fifth of its time on; call it before importing numpy."""
    # Each thread of OpenBLAS spins for 0.05 s before it sleeps, and no matrix here is worth one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Modules and most data stay to the end. The garbage collector would look through them again and again,
    gc.set_threshold(100_000)
    # and once more at the exit.
    atexit.register(gc.freeze)
