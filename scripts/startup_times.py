"""How long `tcplab check` and `tcplab run --no-report` take, start-up included: medians of alternating calls.

`scripts/startup_times.py [OTHER]` measures OTHER's environment (another tree's .venv) too, in turn.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_SCENARIO = _ROOT / "scenarios/one-cubic.yaml"
_TIMES = 5


def main() -> None:
    """Print a line for each command and environment."""
    environments = [Path(sys.executable).parent, *(Path(name) / "bin" for name in sys.argv[1:])]
    commands = {"check": ("check",), "run --no-report": ("run", "--no-report")}
    taken: dict[tuple[str, Path], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as where:
        for number in range(_TIMES):
            for name, words in commands.items():
                for place in environments:
                    out = (
                        ("--output", f"{where}/{number}-{len(taken)}-{place.parts[-3]}")
                        if name != "check"
                        else ()
                    )
                    call = [place / "tcplab", *words, _SCENARIO, *out]
                    taken.setdefault((name, place), []).append(_timed(call, where))
    for (name, place), times in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        sys.stdout.write(f"tcplab {name:<16} {wall:.3f} s wall, {cpu:.3f} s CPU  ({place.parts[-3]})\n")


def _timed(call: list[str | Path], where: str) -> tuple[float, float]:
    """Wall and CPU time of a command, s."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(call, cwd=where, check=True, capture_output=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
