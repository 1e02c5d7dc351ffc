"""Settings of a process that is only ours: the command, or a worker of a study."""

from __future__ import annotations

import atexit
import gc
import os


def settle() -> None:
    """Have the process spend its time on its work; to be called before numpy is imported.

    A short command spends a fifth of its time less then.
    """
    # Each thread of OpenBLAS spins for 0.05 s before it sleeps, and no matrix here is worth one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Modules and most figures stay to the end: the collector would look through them again and again,
    gc.set_threshold(100_000)
    # and once more as the process ends.
    atexit.register(gc.freeze)
