"""Feed broken scenarios to the loader: it may refuse them with `ScenarioErrors`, and nothing else.

Shipped and bad files are mutated byte by byte and word by word. Whatever is read must also expand, print its
warnings and survive YAML, each within a bounded time. `python fuzz_scenario.py --seconds 60 [--seed N]`
prints the mutant that breaks a rule and exits with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
import traceback
from pathlib import Path

from tcplab.plan.yaml_text import dump_plan_yaml, load_plan_yaml
from tcplab.scenario import ScenarioErrors, expand, load, warnings

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
SLOW = 10.0
WORD = re.compile(r"[A-Za-z_]+|\d+|\s+|.", re.DOTALL)
SPICE = [
    "0", "-1", "1e99", "1e-30", "9" * 19, "9" * 400, "0x7f", "nan", ".inf", "~", "null", "on",
    "off", "true", "unlimited", "auto", "BDP", "%", "packets", "Gbit/s", "h", "ns", "{}", "[]",
    "[[", "{{", "- ", ": ", "&a ", "*a", "<<: *a", "!!int ", "!x ", "|", ">", "'", "\"", "\t", "\n",
    "\r", "\u0000", "\x85", "\u2028", "\ud800", "😀", "---\n", "...\n", "%YAML 1.1\n", "? ", "# ",
    "@", "`", "../", "/dev/zero", "/dev/null", ".c", "\u001b[0m",
]  # fmt: skip


def main() -> int:
    """Fuzz for the time asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=None)
    asked = arguments.parse_args()
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    chance = random.Random(seed)
    bad = ROOT / "python" / "tcplab" / "scenario" / "tests" / "bad"
    # Good files more often than bad ones: what lies behind a mutant that loads is tried too.
    files = [*sorted(SCENARIOS.glob("*.yaml")) * 5, *sorted(bad.glob("*.yaml"))]
    corpus = [file.read_text(encoding="utf-8") for file in files]
    words = sorted({word for text in corpus for word in WORD.findall(text)}) + SPICE
    # Files that a scenario names are relative to the working directory.
    os.chdir(SCENARIOS)
    end = time.monotonic() + asked.seconds
    tried = accepted = 0
    slowest = 0.0
    while time.monotonic() < end:
        text = mutant(chance, corpus, words)
        started = time.monotonic()
        try:
            accepted += is_accepted(text)
        except Exception:  # the rule under test: nothing else may come out
            traceback.print_exc()
            say(f"seed {seed}, mutant {tried}:\n{text!r}")
            return 1
        spent = time.monotonic() - started
        slowest = max(slowest, spent)
        if spent > SLOW:
            say(f"seed {seed}, mutant {tried} took {spent:.1f} s:\n{text!r}")
            return 1
        tried += 1
    say(f"{tried} mutants, {accepted} accepted, slowest {slowest:.2f} s, seed {seed}")
    return 0


def say(line: str) -> None:
    """A line on standard output."""
    sys.stdout.write(line + "\n")


def mutant(chance: random.Random, corpus: list[str], words: list[str]) -> str:
    """A file with a few changes."""
    text = chance.choice(corpus)
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        text = chance.choice((_byte, _word, _word, _line, _slice))(chance, text, words)
    # `load` takes a text with a line break for the scenario itself.
    return text + "\n"


def _byte(chance: random.Random, text: str, words: list[str]) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass")) or bytearray(b"x")
    place = chance.randrange(len(data))
    data[place] = chance.choice((data[place] ^ 1 << chance.randrange(8), chance.randrange(256)))
    return data.decode("utf-8", chance.choice(("replace", "ignore")))


def _word(chance: random.Random, text: str, words: list[str]) -> str:
    parts = WORD.findall(text) or [""]
    place = chance.randrange(len(parts))
    change = chance.randrange(3)
    if change == 0:
        parts[place] = chance.choice(words)
    elif change == 1:
        parts.insert(place, chance.choice(words))
    else:
        del parts[place]
    return "".join(parts)


def _line(chance: random.Random, text: str, words: list[str]) -> str:
    lines = text.split("\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    if chance.random() < 0.5:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(one, lines[other])
    return "\n".join(lines)


def _slice(chance: random.Random, text: str, words: list[str]) -> str:
    start = chance.randrange(len(text) + 1)
    stop = min(len(text), start + chance.randrange(1, 30))
    return text[:start] + text[start:stop] * chance.choice((0, 0, 2, 3, 300)) + text[stop:]


def is_accepted(text: str) -> bool:
    """Read, expand, warn and print a scenario; false if it was refused."""
    try:
        plan = expand(load(text))
    except ScenarioErrors as refused:
        if not refused.errors or not str(refused):
            raise AssertionError("refused without a reason") from refused
        return False
    warnings(plan)
    yaml = dump_plan_yaml(plan)
    yaml.encode("utf-8")
    if len(yaml) < 10_000 and json.dumps(load_plan_yaml(yaml)) != json.dumps(plan):
        raise AssertionError("the plan does not survive YAML")
    return True


if __name__ == "__main__":
    sys.exit(main())
