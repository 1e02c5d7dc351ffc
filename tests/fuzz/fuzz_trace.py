"""Feed broken delivery traces to scenarios: they may be refused with `ScenarioErrors`, and nothing else.

What is accepted must be a trace: whole milliseconds that never go back, with a period above zero.
`python fuzz_trace.py --seconds 60 [--seed N]` prints the mutant that breaks a rule and exits with 1.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tcplab.scenario import ScenarioErrors, expand, load

TRACE = Path(__file__).parents[2] / "scenarios" / "traces" / "cellular.down"
SCENARIO = """tcplab: 1
name: fuzzed
network: {path: {trace: fuzzed, rtt: 10 ms, queue: 100 packets}}
flows: [{name: bulk, kind: tcp}]
"""
SPICE = [
    b"-1",
    b"0",
    b"1e3",
    b"9" * 12,
    b"9" * 13,
    b"9" * 5000,
    b" ",
    b"\r",
    b"\0",
    b"\xff",
    b"#",
    b"\xd9\xa3",
    b"\n\n",
]


def main() -> int:
    """Fuzz for the time asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=None)
    asked = arguments.parse_args()
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    chance = random.Random(seed)
    whole = TRACE.read_bytes()
    # Files that a scenario's text names are relative to the working directory.
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    end = time.monotonic() + asked.seconds
    tried = accepted = 0
    while time.monotonic() < end:
        text = mutant(chance, whole)
        try:
            accepted += is_accepted(text)
        except Exception:  # the rule under test: nothing else may come out
            traceback.print_exc()
            sys.stdout.write(f"seed {seed}, mutant {tried}:\n{text!r}\n")
            return 1
        tried += 1
    sys.stdout.write(f"{tried} mutants, {accepted} accepted, seed {seed}\n")
    return 0


def mutant(chance: random.Random, whole: bytes) -> bytes:
    """A piece of a trace with a few changes."""
    start = chance.randrange(len(whole))
    text = bytearray(whole[start : start + chance.randrange(1, 300)])
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(text) + 1)
        if chance.random() < 0.5:
            text[place:place] = chance.choice(SPICE)
        elif place < len(text):
            text[place] = chance.randrange(256)
    return bytes(text)


def is_accepted(text: bytes) -> bool:
    """Read a trace; false if it was refused."""
    Path("fuzzed").write_bytes(text)
    try:
        plan = expand(load(SCENARIO))
    except ScenarioErrors as refused:
        if not refused.errors or not str(refused):
            raise AssertionError("refused without a reason") from refused
        return False
    trace = plan["links"][0]["forward"]["trace"]
    times = trace["opportunities_ms"] if trace else []
    ordered = all(one <= other for one, other in itertools.pairwise(times))
    if not ordered or times[0] < 0 or times[-1] <= 0:
        raise AssertionError("accepted, but not a trace")
    return True


if __name__ == "__main__":
    sys.exit(main())
