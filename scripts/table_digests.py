"""A digest of every table of every shipped scenario, simulated: a change of structure leaves them equal.

`scripts/table_digests.py [SCENARIO…] > before`, the change, the same `> after`, `diff before after`.
Each line is a digest (SHA-256 of the Parquet file), the scenario and the table, in order of name.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tcplab
from tcplab.engine import load as engine_called
from tcplab.scenario import expand, load

_SCENARIOS = Path(__file__).parents[1] / "scenarios"


def main() -> None:
    """Print the digests of the scenarios named, else of those shipped that the simulator takes."""
    named = [Path(word) for word in sys.argv[1:]]
    simulator = engine_called("sim")
    for scenario in named or sorted(_SCENARIOS.glob("*.yaml")):
        if any(problem.fatal for problem in simulator.check(expand(load(scenario)))):
            sys.stderr.write(f"{scenario.stem}: not simulated\n")
            continue
        for table, digest in _digests(scenario):
            sys.stdout.write(f"{digest}  {scenario.stem} {table}\n")
            sys.stdout.flush()


def _digests(scenario: Path) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        tcplab.run(scenario, output=Path(folder) / "run", engine="sim")
        # One run, or the repetitions below it.
        for path in sorted(Path(folder).glob("run/**/*.parquet")):
            table = path.relative_to(Path(folder) / "run").with_suffix("")
            yield str(table), hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
